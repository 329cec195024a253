"""Agents on a router, by the captures of both hosts (tshark's reading of them) and by the sender's kernel.

A fixed host, 10 Mbit/s and 25 ms, the router, 2 Mbit/s and 10 ms, a mobile host.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Outcome
from netwarp.measure.cell_records import kernel_counters
from netwarp.store.init_records import Proc
from support.chain_kit import Checkout
from support.packet_difference import plain_captures
from support.run_files import CellFiles, RunFiles, load_run
from support.tcp_segments import AGAIN, DUPLICATE, segments

SEEDS = 5


def mobile(flow: str, more: str, *, agent: str = '"{agent}"', air: str = "", duration: str = "8 s") -> str:
    """flow, air: keys of the flow and of the last hop."""
    return f"""
format = 1
name = "agents"
seed = 3
duration = "{duration}"
[node.fh]
[node.bs]
kind = "router"
agent = {agent}
[node.mh]
[link.wired]
between = ["fh", "bs"]
rate = "10 Mbit/s"
queue = "100 packets"
one_way_delay = "25 ms"
[link.air]
between = ["bs", "mh"]
queue = "60 packets"
one_way_delay = "10 ms"
{air or 'rate = "2 Mbit/s"'}
[flow.data]
from = "fh"
to = "mh"
protocol = "tcp"
paths = [{{ sender = "wired", receiver = "air" }}]
receiver = {{ rcvbuf = "40 KiB" }}
{flow}
{more}"""


SEVEN_S = 'stop = "7 s"\nsender = { congestion = "reno" }'
TWO_IN_A_HUNDRED = 'rate = "2 Mbit/s"\nforward = { loss = "2 %" }'
LOSSY = mobile(
    SEVEN_S,
    f"""
[factor.agent]
levels = ["none", "snoop"]
[experiment.loss]
factors = ["agent"]
repetitions = {SEEDS}
""",
    air=TWO_IN_A_HUNDRED,
)
SLOW = mobile(
    'stop = "60 s"\nsender = { congestion = "reno" }', "", agent='"snoop"', air='rate = "9.6 kbit/s"', duration="61 s"
)
DYING = mobile(SEVEN_S, "", agent='{ kind = "snoop", dies_at = "3.5 s" }', air=TWO_IN_A_HUNDRED)
DYING_AWAY = mobile(
    'stop = "11 s"\nsender = { congestion = "reno" }',
    '[event.handover]\naction = "cut"\nlink = "air"\nat = "2 s"\nfor = "2 s"',
    agent='{ kind = "mtcp", dies_at = "3 s" }',
    duration="12 s",
)
TWICE_AND_LOST = mobile(
    'bytes = "5 kB"\nsender = { congestion = "reno" }',
    "",
    agent='"snoop"',
    air="""rate = "2 Mbit/s"
forward = { duplicate = { data = [2] }, delay = { data = { 2 = "20 ms" } }, drop = { data = [3] } }
backward = { drop = { ack = [3, 4] } }""",
    duration="3 s",
)
"""The second of four segments arrives twice, the second time behind the FIN; the third is lost, and so are the first
two acknowledgements that say so."""
AWAY = {"0.1 s": 0.1, "0.5 s": 0.5, "2 s": 2.0, "5 s": 5.0}
HANDOVERS = mobile(
    'stop = "8 s"\nsender = { congestion = "reno" }',
    """
[event.handover]
action = "cut"
link = "air"
at = "2 s"
for = "{away}"
[factor.agent]
levels = ["none", "mtcp"]
[factor.away]
levels = ["0.1 s", "0.5 s", "2 s", "5 s"]
""",
    duration="9 s",
)
RELAYED = mobile(
    'bytes = "60 kB"\nsender = { close = "graceful" }',
    """
[factor.dies]
levels = ["never", "in time"]
[factor.dies.level."in time"]
node.bs.agent = { kind = "itcp-proxy", buffer = "16 KiB", dies_at = "1 s" }
""",
    agent='{ kind = "itcp-proxy", buffer = "16 KiB" }',
    air='rate = "200 kbit/s"',
    duration="12 s",
)


def counters(cell: CellFiles) -> dict[str, int]:
    """What the sender's kernel counted."""
    return kernel_counters(msgspec.convert(cell.init("proc"), list[Proc]), ["fh", "bs", "mh"])["fh"]


def through(cell: CellFiles) -> dict[str, int]:
    """What the rules of the agent counted."""
    counted: dict[str, int] = cell.environment["network"]["agents"]["bs"]
    return counted


@pytest.fixture(scope="module")
def lossy(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return checkout.run_spec(tmp_path_factory.mktemp("lossy"), LOSSY, "--no-report")


def test_snoop_raises_goodput_beyond_noise(lossy: RunFiles) -> None:
    """With every seed more than without it with any seed."""
    goodput: dict[str, list[float]] = {"none": [], "snoop": []}
    for row, metrics in lossy.measured("data"):
        goodput[row["agent"]].append(metrics["goodput_bit_s"])
    assert [len(values) for values in goodput.values()] == [SEEDS, SEEDS]
    assert min(goodput["snoop"]) > max(goodput["none"]), goodput


def test_snoop_hides_the_losses_that_it_mends(lossy: RunFiles, tmp_path: Path) -> None:
    """The sender sees duplicate acknowledgements of no segment but those it has sent again itself, and the one that the
    agent repeats where the mobile host has what was sent again."""
    for cell in lossy.cells.values():
        if cell.cell.factors["agent"] == "none":
            continue
        made = {packet.ack for packet in segments(cell, "mh", tmp_path, DUPLICATE)}
        # at its stop the sender aborts the connection: the agent forgets it, and what is on the way passes
        seen = {packet.ack for packet in segments(cell, "fh", tmp_path, DUPLICATE) if packet.t_s < 7}
        repeated = segments(cell, "fh", tmp_path, AGAIN)
        again = {packet.seq for packet in repeated}
        summary = cell.summary("bs.agent")
        assert len(made) > 10, "too few losses to speak of"
        assert seen <= again | {packet.seq + packet.length for packet in repeated}, (seen, again)
        assert len(again) <= len(made) / 4
        assert summary["retransmitted"] >= len(made - seen) and summary["by_duplicates"] > 0
        assert through(cell)["suppressed"] == summary["suppressed"] > 0
        assert through(cell)["passed"] == summary["passed"]


def test_snoop_mends_a_loss_that_is_named_beside_what_came_twice(checkout: Checkout, tmp_path: Path) -> None:
    """The only acknowledgement that comes and names the loss begins with a block of what came twice (RFC 2883)."""
    cell = next(iter(checkout.run_spec(tmp_path, TWICE_AND_LOST, "--no-report").cells.values()))
    (named,) = segments(cell, "mh", tmp_path, "tcp.options.sack.count == 2")
    lost = [packet.t_s for packet in segments(cell, "mh", tmp_path) if packet.length and packet.seq == named.ack]
    # 20 ms there and back, and 6 ms for a packet at 2 Mbit/s
    assert lost == [pytest.approx(named.t_s + 0.0263, abs=0.0002)]
    summary = cell.summary("bs.agent")
    assert (summary["by_duplicates"], summary["by_timer"]) == (1, 0)
    assert len([packet for packet in segments(cell, "fh", tmp_path) if packet.length]) == 4, "the sender knows nothing"


def test_snoops_timer_learns_of_a_last_hop_that_is_slower_than_it(checkout: Checkout, tmp_path: Path) -> None:
    """A segment alone takes 1.25 s, and more behind others, so the first timeout of 1 s is too short. It is doubled
    until a segment that was not sent again gives a sample: a few are repeated, not one for each."""
    cell = next(iter(checkout.run_spec(tmp_path, SLOW, "--no-report").cells.values()))
    arrived = [packet.seq for packet in segments(cell, "mh", tmp_path) if packet.length]
    assert len(set(arrived)) > 35
    summary = cell.summary("bs.agent")
    assert 1 <= summary["by_timer"] == summary["retransmitted"] <= 5


def test_traffic_flows_on_when_snoop_dies(checkout: Checkout, tmp_path: Path) -> None:
    """Killed in the middle: the flow completes, its payload is whole; the rules say what was lost with the agent."""
    cell = next(iter(checkout.run_spec(tmp_path, DYING, "--no-report").cells.values()))
    assert [record["signal"] for record in cell.init("exit") if record["id"] == "bs.agent"] == [9]
    assert cell.checks["pattern data"]["ok"] and cell.checks["payload data"]["ok"]
    duplicates = [packet.t_s for packet in segments(cell, "fh", tmp_path, DUPLICATE)]
    assert len([t_s for t_s in duplicates if t_s > 3.5]) > len([t_s for t_s in duplicates if t_s < 3.5])
    arrived = [packet for packet in segments(cell, "mh", tmp_path) if packet.length]
    assert [packet for packet in arrived if packet.t_s > 6]
    counted = through(cell)
    (check,) = [c for c in cell.environment["checks"] if c["check"] == "packets through the agent of bs"]
    lost = counted["offered"] - counted["passed"] - counted["suppressed"]
    assert check["ok"] and check["detail"].endswith(f"{lost} lost") and 0 <= lost < 10


def test_payload_is_whole_where_mtcp_dies_with_a_closed_window(checkout: Checkout, tmp_path: Path) -> None:
    """Killed while the mobile host is away: the sender's own probes and timeouts open the way again."""
    cell = next(iter(checkout.run_spec(tmp_path, DYING_AWAY, "--no-report").cells.values()))
    assert [record["signal"] for record in cell.init("exit") if record["id"] == "bs.agent"] == [9]
    assert [packet for packet in segments(cell, "fh", tmp_path) if packet.window == 0 and 2 < packet.t_s < 3]
    assert cell.checks["pattern data"]["ok"]
    assert cell.checks["payload data"]["ok"]
    assert [packet for packet in segments(cell, "mh", tmp_path) if packet.length and packet.t_s > 4]


@pytest.fixture(scope="module")
def handovers(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return checkout.run_spec(tmp_path_factory.mktemp("handovers"), HANDOVERS, "--no-report")


@pytest.mark.parametrize("away", list(AWAY))
def test_mtcp_freezes_the_sender_and_thaws_it(handovers: RunFiles, away: str, tmp_path: Path) -> None:
    """A window of zero that acknowledges a byte more, nothing new while it is closed, no timeout that the kernel
    counts as one; opened at the return, and payload arrives within a fifth of a second. The shortest handover is over
    before the agent takes the mobile host for gone: it only sends again what was on the way."""
    cell = handovers.cell(agent="mtcp", away=away)
    back = 2 + AWAY[away]
    packets = segments(cell, "fh", tmp_path)
    assert counters(cell)["TcpExt.TCPTimeouts"] == 0
    arrived = [p.t_s for p in segments(cell, "mh", tmp_path) if p.length and p.t_s > back]
    assert arrived[0] < back + 0.2
    if away == "0.1 s":
        assert cell.summary("bs.agent")["on_return"] > 0
        return
    closed = [packet for packet in packets if packet.window == 0 and packet.flags == 0x10]
    assert closed and 2 < closed[0].t_s < back + 0.03
    before = [packet for packet in packets if packet.t_s < closed[0].t_s and packet.source == closed[0].source]
    assert closed[0].ack == before[-1].ack + 1
    opened = next(p for p in packets if p.t_s > closed[0].t_s and p.source == closed[0].source and p.window)
    assert opened.ack == closed[0].ack and opened.t_s == pytest.approx(back + 0.025, abs=0.001)
    sent = [p for p in packets if p.source != closed[0].source and p.length]
    highest = max(p.seq for p in sent if p.t_s < closed[0].t_s)
    assert [p for p in sent if closed[0].t_s < p.t_s < opened.t_s and p.seq > highest] == []


def test_mtcp_needs_less_than_the_sender_alone(handovers: RunFiles) -> None:
    """Less is sent again end to end, and the flow goes on sooner after the return."""
    for away in AWAY:
        values = {row["agent"]: m for row, m in handovers.measured("data") if row["away"] == away}
        assert values["mtcp"]["retransmitted_packets"] < values["none"]["retransmitted_packets"]
        # alone after the longest, the sender's next timeout is later than the end
        assert values["mtcp"]["recovery_time_s"] < values["none"].get("recovery_time_s", math.inf)


def test_agents_have_metrics(lossy: RunFiles, handovers: RunFiles) -> None:
    """Of the cell: the agent's own summary, and the rules' counters."""
    for row, metrics in [*lossy.measured(""), *handovers.measured("")]:
        if row["agent"] == "none":
            assert not [name for name in metrics if name.startswith("agent_")]
            continue
        summary = (lossy.cells | handovers.cells)[row["cell_id"]].summary("bs.agent")
        assert metrics["agent_suppressed_packets"] == summary["suppressed"] and metrics["agent_lost_packets"] == 0
        if row["agent"] == "snoop":
            assert metrics["agent_retransmitted_packets"] == summary["retransmitted"] > 0
        else:
            assert metrics["agent_freezes"] == summary["frozen"]


def relayed_run(checkout: Checkout, place: Path) -> RunFiles:
    """Both cells with the proxy; where it dies the flow fails, so the run exits 1."""
    (place / "spec.toml").write_text(RELAYED)
    checkout.run("run", place / "spec.toml", "--out", place / "run", "--no-report", cwd=place)
    return load_run(place / "run")


@pytest.fixture(scope="module")
def relayed(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    return relayed_run(checkout, tmp_path_factory.mktemp("relayed"))


def test_equal_cells_have_equal_captures(
    handovers: RunFiles, lossy: RunFiles, checkout: Checkout, tmp_path: Path
) -> None:
    """Packets through queues and processes, timers and raw sockets: all of it follows from the seed."""
    for name, spec, run, where in (
        ("mtcp", HANDOVERS, handovers, ("--where", "agent=mtcp", "--where", "away=0.5 s")),
        ("snoop", LOSSY, lossy, ("--where", "agent=snoop", "--repetitions", "1")),
    ):
        (tmp_path / name).mkdir()
        again = checkout.run_spec(tmp_path / name, spec, "--no-report", *where)
        (cell,) = again.cells.values()
        assert dict(plain_captures(cell.root)) == dict(plain_captures(run.cells[cell.cell.id].root))


def test_equal_cells_with_the_proxy_have_equal_captures(relayed: RunFiles, checkout: Checkout, tmp_path: Path) -> None:
    """Two sockets and a buffer between them follow from the seed too, also where the proxy is killed."""
    again = relayed_run(checkout, tmp_path)
    assert len(again.cells) == 2
    for name, cell in again.cells.items():
        found = dict(plain_captures(cell.root))
        assert len(found) == 2
        assert min(len(capture) for capture in found.values()) > 10_000
        assert found == dict(plain_captures(relayed.cells[name].root))


def test_the_proxy_acknowledges_what_the_receiver_never_gets(relayed: RunFiles, tmp_path: Path) -> None:
    """The sender has all of it acknowledged; the proxy dies with a third of it, and the receiver is none the wiser."""
    assert relayed.cell(dies="never").outcome.outcome is Outcome.COMPLETED
    cell = relayed.cell(dies="in time")
    assert cell.outcome.outcome is Outcome.FAILED and "data.sender" in cell.outcome.reason
    from_sender = segments(cell, "fh", tmp_path)
    acknowledged = max(packet.ack for packet in from_sender if packet.source != from_sender[0].source)
    arrived = max(packet.seq + packet.length for packet in segments(cell, "mh", tmp_path) if packet.length)
    assert acknowledged >= 60_001 > arrived > 20_000
    receiver = cell.summary("data.receiver")
    assert receiver["unique_bytes"] == arrived - 1 and receiver["corrupt_bytes"] == 0
