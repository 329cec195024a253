"""Lateness of steps and of senders' connections, and how agents end, as the back end judges it."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import Agent, Event, Node, Outcome
from netwarp.sandbox.cell_verdict import check_times, judge, never_connected
from netwarp.sandbox.virtual import VIRTUAL_LATENESS_NS
from netwarp.store.app_records import Error, Start, Summary
from netwarp.store.init_records import End, Exit, InitRecord, Timeline
from netwarp.store.run_dir import CellDir
from netwarp.testbed.spawning import LEAD_NS
from support.cells import two_path_cell
from support.recorded_cell import S, write


def failed(place: Path, deviation_ns: int, late_ns: int | None) -> list[str]:
    """The checks that fail for a step begun so far from its time and a sender connected so late."""
    directory = CellDir(place)
    directory.apps.mkdir(exist_ok=True)
    write(directory.apps / "ftp.sender.ndjson", [] if late_ns is None else [Start(0, late_ns, 0)])
    records: list[InitRecord] = [
        Timeline(step=8, verb="spawn", at_ns=5, t_ns=5_000_000),
        Timeline(step=9, verb="netlink", at_ns=10_000, t_ns=10_000 + deviation_ns),
        Timeline(step=10, verb="dump", at_ns=10_000, t_ns=40_000_000),  # it waited for the step before: read, not done
    ]
    checks = check_times(two_path_cell(), directory, records, VIRTUAL_LATENESS_NS)
    return [check.check for check in checks if not check.ok]


def test_on_a_machine_the_steps_of_an_instant_wait_for_its_card(tmp_path: Path) -> None:
    """The first one counts; on one machine, where nothing is a card, each does."""

    def late(on: str | None, first_ns: int) -> list[str]:
        directory = CellDir(tmp_path)
        directory.apps.mkdir(exist_ok=True)
        write(directory.apps / "ftp.sender.ndjson", [Start(0, 0, 0)])
        records: list[InitRecord] = [
            Timeline(step=9, verb="netlink", at_ns=10, t_ns=10 + first_ns, on=on),
            Timeline(step=10, verb="offload", at_ns=10, t_ns=30_000_010, on=on),
        ]
        return [check.check for check in check_times(two_path_cell(), directory, records, 10_000_000) if not check.ok]

    assert late("r", 9_000_000) == []
    assert late("r", 11_000_000) == ["timeline"]
    assert late(None, 0) == ["timeline"]


@pytest.mark.parametrize("sign", [1, -1])
def test_two_microseconds_are_allowed_and_no_more(sign: int, tmp_path: Path) -> None:
    assert failed(tmp_path, sign * 2000, sign * 2000) == []
    assert failed(tmp_path, sign * 2001, 0) == ["timeline"]
    assert failed(tmp_path, 0, sign * 2001) == ["start of ftp"]


@pytest.mark.parametrize(("node", "at", "back", "absent"), [
    ("a", -5, 20, 20), ("a", 1, 20, 0), ("a", -9, -2, 0), ("b", -5, 20, 0),
])  # fmt: skip
def test_a_sender_begins_when_its_host_is_back(node: str, at: int, back: int, absent: int, tmp_path: Path) -> None:
    """A restart that takes the start of a flow in: what is late counts from its end."""
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    cell = two_path_cell()
    start_ns = cell.flows[0].start_ns + 10**9
    flow = msgspec.structs.replace(cell.flows[0], start_ns=start_ns)
    times = (start_ns + part * 10**6 for part in (at, back))
    gone = tuple(
        Event(at_ns, "e", action, "", node=node) for at_ns, action in zip(times, ("restart", "repair"), strict=True)
    )
    cell = msgspec.structs.replace(cell, flows=(flow,), timeline=gone)
    for late_ns, ok in ((absent * 10**6 + 1500, True), (absent * 10**6 + 2001, False)):
        write(directory.apps / "ftp.sender.ndjson", [Start(0, late_ns, 0)])
        checks = check_times(cell, directory, [], 2000)
        assert [check.ok for check in checks if check.check == "start of ftp"] == [ok]


def test_a_sender_that_never_began_is_judged_elsewhere(tmp_path: Path) -> None:
    assert failed(tmp_path, 0, None) == []


def agents_outcome(place: Path, ended: dict[str, int], *, dies_ns: int | None = None) -> Outcome:
    """Of a cell whose flow ended well and whose agent ended so, at 4 s."""
    agent = Agent("snoop", "air", dies_ns=dies_ns)
    cell = two_path_cell(
        nodes=(*two_path_cell().nodes, Node("bs", "router", agent=agent)),
        links=(*two_path_cell().links, Link("air", "bs", "b", LinkImpairment(), LinkImpairment())),
    )
    directory = CellDir(place)
    directory.apps.mkdir(exist_ok=True)
    write(directory.apps / "bs.agent.ndjson", [Error("no netfilter queue")])
    records: list[InitRecord] = [
        Exit("ftp.sender", 0, None, killed=False, t_ns=3_000_000_000),
        Exit("ftp.receiver", 0, None, killed=False, t_ns=3_000_000_000),
        Exit("bs.agent", ended.get("status"), ended.get("signal"), killed=False, t_ns=4_000_000_000),
        End("completed", None, None, 4_000_000_000),
    ]
    verdict = judge(cell, directory, records, "exit status 0")
    assert verdict.outcome is Outcome.COMPLETED or "no netfilter queue" in verdict.reason
    return verdict.outcome


def test_an_agent_ends_with_its_cell_or_when_it_is_to_be_killed(tmp_path: Path) -> None:
    assert agents_outcome(tmp_path, {"status": 0}) is Outcome.COMPLETED
    assert agents_outcome(tmp_path, {"status": 1}) is Outcome.FAILED
    assert agents_outcome(tmp_path, {"status": 77}) is Outcome.UNSUPPORTED
    assert agents_outcome(tmp_path, {"signal": 9}) is Outcome.FAILED
    assert agents_outcome(tmp_path, {"signal": 9}, dies_ns=4_000_000_000) is Outcome.COMPLETED
    assert agents_outcome(tmp_path, {"signal": 9}, dies_ns=5_000_000_000) is Outcome.FAILED
    assert agents_outcome(tmp_path, {"signal": 11}, dies_ns=4_000_000_000) is Outcome.FAILED


def test_a_start_among_other_flows_may_wait_for_their_packets_on_the_virtual_clock(tmp_path: Path) -> None:
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    alone = two_path_cell()
    (flow,) = alone.flows
    other = msgspec.structs.replace(flow, name="other", port=6001, start_ns=flow.start_ns + 7)
    starting = msgspec.structs.replace(other, start_ns=flow.start_ns + LEAD_NS)
    among, beside = (msgspec.structs.replace(alone, flows=(flow, each)) for each in (other, starting))
    for cell, tolerance_ns, late_ns, ok in (
        (alone, 2000, 2001, False), (among, 2000, 9_999, True), (among, 2000, 10_001, False),
        (beside, 2000, 3864, True), (among, 10_000_000, 10_000_001, False),
    ):  # fmt: skip
        write(directory.apps / "ftp.sender.ndjson", [Start(0, late_ns, 0)])
        checks = check_times(cell, directory, [], tolerance_ns)
        assert [check.ok for check in checks if check.check == "start of ftp"] == [ok], (tolerance_ns, late_ns)


@pytest.mark.parametrize(
    ("message", "disturbed", "calm"),
    [
        ("connect: Connection refused", True, False),
        ("connect: Network is unreachable", True, False),
        ("connect: Connection timed out: not connected before its stop", True, True),
        ("bind: Cannot assign requested address", True, False),
        ("sctp_bindx: Cannot assign requested address", True, False),
        ("recvmsg: the connection ended before the page", True, False),
        ("bind: Address already in use", False, False),
    ],
)
def test_a_connection_that_a_fault_refuses_fails_no_cell(
    message: str, disturbed: bool, calm: bool, tmp_path: Path
) -> None:
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    write(directory.apps / "ftp.sender.ndjson", [Error(message)])
    cell = two_path_cell()
    faulty = msgspec.structs.replace(cell, timeline=(Event(S, "e1", "link", "p1"),))
    firewalled = msgspec.structs.replace(
        cell, timeline=(), links=tuple(msgspec.structs.replace(link, firewall="reject") for link in cell.links)
    )
    found = [never_connected(each, directory, "ftp.sender") for each in (faulty, firewalled)]
    assert found == [disturbed, disturbed]
    quiet = msgspec.structs.replace(cell, timeline=())
    assert never_connected(quiet, directory, "ftp.sender") is calm


@pytest.mark.parametrize("reason", ["peer_aborted", "peer_closed", "stalled"])
def test_a_connection_that_a_firewall_or_a_fault_ends_fails_no_cell(reason: str, tmp_path: Path) -> None:
    """A firewall that forgets its connections and rejects what it does not know resets them."""
    directory = CellDir(tmp_path)
    directory.apps.mkdir()
    cell = msgspec.structs.replace(two_path_cell(), timeline=())
    firewalled = msgspec.structs.replace(
        cell, links=tuple(msgspec.structs.replace(link, firewall="reject") for link in cell.links)
    )
    write(directory.apps / "ftp.sender.ndjson", [Summary(S, reason=reason, status=1)])
    assert never_connected(firewalled, directory, "ftp.sender")
    assert not never_connected(cell, directory, "ftp.sender")
    write(directory.apps / "ftp.sender.ndjson", [Summary(S, reason="failed", status=1)])
    assert not never_connected(firewalled, directory, "ftp.sender")
    write(directory.apps / "ftp.sender.ndjson", [Summary(S, reason="stop", status=0)])
    assert not never_connected(firewalled, directory, "ftp.sender"), "it failed without a record of how"
