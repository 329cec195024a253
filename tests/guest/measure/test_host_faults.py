"""Faults of hosts, addresses and middle boxes, in the captures at both ends: TCP, SCTP, MPTCP."""

from __future__ import annotations

import functools

import pytest
from support.chain_kit import Checkout, two_hosts
from support.chain_packets import ICMP, Frame, frames, from_host
from support.run_files import RunFiles

MS, S = 1_000_000, 1_000_000_000
FAULT, BACK = 4 * S, 9 * S
DELAY = 20 * MS
NEAR = 100_000
"""A host is gone within 100 us of its event: its apps have to close their sockets."""
RST, SYN = 4, 2
ABORT, INIT, DATA, SHUTDOWN = 6, 1, 0, 7
OTHER = {"a": "b", "b": "a"}
EVENTS = {
    "stop": 'event.x = { action = "stop_reading", flow = "bulk" }',
    "host_b": 'event.x = { action = "restart", node = "b" }',
    "host_a": 'event.x = { action = "restart", node = "a" }\nflow.bulk.sender.local_port = 2905',
    "process_b": 'event.x = { action = "restart", node = "b", killed = "process" }',
    "address": 'event.x = { action = "address", node = "a", link = "p1" }',
    "mtu": 'event.x = { action = "mtu", link = "p1", mtu = "1000 B" }\nflow.bulk.message_size = "1400 B"',
    "drop": 'event.x = { action = "forget", link = "p1" }\nlink.p1.firewall = "drop"',
    "reject": 'event.x = { action = "forget", link = "p1" }\nlink.p1.firewall = "reject"',
}


def level(name: str, text: str) -> str:
    times = 'event.x.at = "4 s"' + ("" if "forget" in text else '\nevent.x.for = "5 s"')
    inside = text.replace(" }", "", 1).split("\n")
    keys = inside[0].removeprefix("event.x = { ").split(", ")
    lines = [*(f"event.x.{key}" for key in keys), *inside[1:], times]
    return f"[factor.fault.level.{name}]\n" + "\n".join(lines)


SPEC = two_hosts(
    '[factor.protocol]\nlevels = ["tcp", "sctp", "mptcp"]',
    f"[factor.fault]\nlevels = {[*EVENTS]}".replace("'", '"'),
    *(level(name, text) for name, text in EVENTS.items()),
    name="host-faults",
    duration="20 s",
    queue="100 packets",
    flow='protocol = "{protocol}"\nmessage_size = "400 B"\nsender = { interval = "4 ms", reconnect = "500 ms" }',
)


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    run = checkout.run_spec(tmp_path_factory.mktemp("host-faults"), SPEC, "--no-report")
    assert len(run.cells) == 3 * len(EVENTS)
    return run


@functools.cache
def seen(run: RunFiles, protocol: str, fault: str, node: str) -> list[Frame]:
    (capture,) = run.cell(protocol=protocol, fault=fault).captures(node, "p1")
    return frames(capture)


def sent(run: RunFiles, protocol: str, fault: str, host: str) -> list[Frame]:
    return from_host(host, seen(run, protocol, fault, host))


def metrics(run: RunFiles, protocol: str, fault: str) -> dict[str, float]:
    name = run.cell(protocol=protocol, fault=fault).cell.id
    found = (row for row in run.table("measurements") if row["cell_id"] == name and row["flow"] == "bulk")
    return {row["metric"]: float(row["value"]) for row in found if row["value"]}


def ended(frame: Frame) -> bool:
    """A packet that ends a connection at once."""
    return ABORT in frame.chunks or bool(frame.flags & RST)


PROTOCOLS = pytest.mark.parametrize("protocol", ["tcp", "sctp", "mptcp"])


@PROTOCOLS
def test_a_receiver_that_stops_reading_closes_its_window(run: RunFiles, protocol: str) -> None:
    """Its host goes on acknowledging until the buffer is full; what was sent is delivered afterwards, once."""
    found = metrics(run, protocol, "stop")
    assert found.get("zero_window_packets", 1) >= 1  # counted by subflow for MPTCP
    assert BACK - FAULT > found["outage_s"] * S > 500 * MS
    answers = [frame for frame in sent(run, protocol, "stop", "b") if FAULT + NEAR < frame.t_ns < FAULT + 50 * MS]
    assert answers
    receiver = run.cell(protocol=protocol, fault="stop").summary("bulk.receiver")
    assert receiver["corrupt_bytes"] == 0 and receiver["unique_bytes"] > 1_000_000


@PROTOCOLS
@pytest.mark.parametrize("host", ["a", "b"])
def test_a_host_that_restarts_says_nothing_and_knows_nothing_afterwards(
    run: RunFiles, protocol: str, host: str
) -> None:
    fault = f"host_{host}"
    assert not [frame for frame in sent(run, protocol, fault, host) if FAULT + NEAR < frame.t_ns < BACK]
    came = [frame for frame in from_host(OTHER[host], seen(run, protocol, fault, host)) if FAULT < frame.t_ns < BACK]
    assert came
    back = [frame for frame in sent(run, protocol, fault, host) if frame.t_ns > BACK]
    found = metrics(run, protocol, fault)
    if host == "b":  # it has no socket for what comes
        assert ended(back[0])
        if protocol == "mptcp":  # the RST is its subflow's: the connection waits for another subflow, without a word
            assert "loss_noticed_s" not in found and "outage_s" not in found
            return
        assert found["loss_noticed_s"] * S > BACK - FAULT + DELAY
        trips = 4 if protocol == "sctp" else 2
        assert found["reconnect_time_s"] == pytest.approx(found["loss_noticed_s"] + 0.5 + trips * 0.02, abs=0.01)
    else:
        assert INIT in back[0].chunks or back[0].flags & SYN
        assert found["reconnect_time_s"] * S == pytest.approx(BACK - FAULT + 2 * DELAY, abs=80 * MS)
    assert found["outage_s"] * S > BACK - FAULT


def test_an_association_restarts_from_the_same_ports(run: RunFiles) -> None:
    """RFC 9260 5.2.4: the peer still has the association, takes the INIT of its own, and tells its user."""
    told = [
        record.get("state")
        for record in run.cell(protocol="sctp", fault="host_a").app("bulk.receiver")
        if record["record"] == "notification" and record["type"] == "ASSOC_CHANGE"
    ]
    assert told[:2] == ["COMM_UP", "RESTART"]


def test_a_connection_from_the_same_port_is_challenged(run: RunFiles) -> None:
    """RFC 5961 4: the peer still has the connection and answers the SYN by an ACK; the RST it gets ends the old one."""
    after = [frame for frame in seen(run, "tcp", "host_a", "a") if frame.t_ns > BACK]
    flags = [frame.flags & 0x17 for frame in after[:5]]
    assert flags[0] == SYN and flags[1] in (0x10, 0x12)
    if flags[1] == 0x10:
        assert flags[2] & RST


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_a_process_that_is_killed_is_told_of_at_once(run: RunFiles, protocol: str) -> None:
    found = metrics(run, protocol, "process_b")
    assert found["loss_noticed_s"] < 0.1
    first = next(frame for frame in sent(run, protocol, "process_b", "b") if frame.t_ns > FAULT + NEAR)
    assert first.t_ns < FAULT + 30 * MS
    assert found["reconnect_time_s"] * S == pytest.approx(BACK - FAULT, abs=600 * MS)  # tried each half second


@PROTOCOLS
def test_an_address_vanishes_and_comes_back(run: RunFiles, protocol: str) -> None:
    """Nothing leaves without it; the connection survives, and goes on when it is back."""
    assert not [frame for frame in sent(run, protocol, "address", "a") if FAULT + NEAR < frame.t_ns < BACK]
    found = metrics(run, protocol, "address")
    assert "loss_noticed_s" not in found and "reconnect_time_s" not in found
    assert found["outage_s"] * S > BACK - FAULT


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_an_mtu_that_shrinks_is_told_of(run: RunFiles, protocol: str) -> None:
    icmp = [frame for frame in seen(run, protocol, "mtu", "a") if frame.protocol == ICMP]
    assert icmp and FAULT < icmp[0].t_ns < FAULT + 2 * DELAY
    there = from_host("a", seen(run, protocol, "mtu", "b"))
    during = [frame.ip_bytes for frame in there if FAULT + S < frame.t_ns < BACK]  # what waited still leaves
    before = [frame.ip_bytes for frame in there if frame.t_ns < FAULT]
    assert max(before) > 1400 and 900 < max(during) <= 1000
    assert metrics(run, protocol, "mtu")["outage_s"] < 0.5


def test_a_firewall_that_forgets(run: RunFiles) -> None:
    """It drops what it does not know, or refuses TCP by an RST; nftables has no ABORT for SCTP."""
    for protocol in ("tcp", "sctp"):
        for fault in ("drop", "reject"):
            environment = run.cell(protocol=protocol, fault=fault).environment
            assert environment["network"]["firewalls"]["p1.hop"]["refused_packets"] > 0
            assert any(check["check"] == "connections that p1.hop knows" for check in environment["checks"])
    reject, drop = metrics(run, "tcp", "reject"), metrics(run, "tcp", "drop")
    assert reject["loss_noticed_s"] < 0.1 and reject["reconnect_time_s"] < 1
    assert "loss_noticed_s" not in drop and "outage_s" not in drop
    assert not any(ABORT in frame.chunks for frame in seen(run, "sctp", "reject", "a") if frame.t_ns < 19 * S)


def test_equal_cells_are_equal(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory, run: RunFiles) -> None:
    again = checkout.run_spec(
        tmp_path_factory.mktemp("again"),
        SPEC,
        "--no-report",
        "--where",
        "fault=host_b",
        "--where",
        "fault=drop",
        "--where",
        "protocol=sctp",
    )
    for fault in ("host_b", "drop"):
        for node in "ab":
            one, other = (each.cell(protocol="sctp", fault=fault).captures(node) for each in (run, again))
            assert [path.read_bytes() for path in one] == [path.read_bytes() for path in other]
