"""Each fault's effect on a loaded link, in the captures at both ends: TCP, and SCTP over two paths."""

from __future__ import annotations

import functools
from collections import Counter

import pytest
from support.chain_kit import Checkout, two_hosts
from support.chain_packets import DATA, ICMP, IPV4, Frame, frames, from_host
from support.run_files import RunFiles

MS, S = 1_000_000, 1_000_000_000
FAULT, REPAIR = 2 * S, 7 * S // 2
DELAY = 20 * MS
RATE, LOWER = 2_000_000, 500_000
NEAR = 10_000
"""Faults are at their times within 10 us."""
MTU = 1500
OTHER = {"a": "b", "b": "a"}
PROTOCOLS = ("tcp", "sctp")

SPEC = two_hosts(
    """
[event]
outage = { link = "p1", at = "2 s", for = "1.5 s" }
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.level.sctp]
flow.bulk.paths = ["p1", "p2"]
[factor.fault]
levels = ["cut", "cut_forward", "blackhole", "link", "own_end", "change"]
[factor.fault.level.cut]
event.outage.action = "cut"
[factor.fault.level.cut_forward]
event.outage.action = "cut"
event.outage.directions = ["forward"]
[factor.fault.level.blackhole]
event.outage.action = "blackhole"
[factor.fault.level.link]
event.outage = { action = "link", end = { hop = "b" } }
[factor.fault.level.own_end]
event.outage = { action = "link", end = "a" }
[factor.fault.level.change]
event.outage = { action = "change", rate = "500 kbit/s", directions = ["forward"] }
""",
    name="faults",
    duration="8 s",
    queue="1000 packets",
    links=2,
    flow='protocol = "{protocol}"',
)


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Every fault with both protocols. The queue is so long that it drops nothing before the fault."""
    run = checkout.run_spec(tmp_path_factory.mktemp("faults"), SPEC, "--no-report")
    assert len(run.cells) == 12
    return run


@functools.cache
def seen(run: RunFiles, protocol: str, fault: str, node: str, link: str = "p1") -> list[Frame]:
    """Every frame one host saw on one link."""
    (capture,) = run.cell(protocol=protocol, fault=fault).captures(node, link)
    return frames(capture)


def sent(run: RunFiles, protocol: str, fault: str, host: str, link: str = "p1") -> list[Frame]:
    """What a host sent, as it left it."""
    return from_host(host, seen(run, protocol, fault, host, link))


def arrived(run: RunFiles, protocol: str, fault: str, host: str, link: str = "p1") -> list[Frame]:
    """What a host sent, as it arrived at the other one."""
    return from_host(host, seen(run, protocol, fault, OTHER[host], link))


def between(found: list[Frame], start: int, stop: int) -> list[Frame]:
    """Those with start < time < stop."""
    return [frame for frame in found if start < frame.t_ns < stop]


def goes_on_after_the_repair(run: RunFiles, protocol: str, fault: str, host: str) -> None:
    """After the repair packets cross again, and the first to do so were sent after it."""
    after = [frame for frame in arrived(run, protocol, fault, host) if frame.t_ns > REPAIR]
    sent_after = {frame.identity for frame in sent(run, protocol, fault, host) if frame.t_ns >= REPAIR}
    assert after
    assert after[0].t_ns >= REPAIR + DELAY
    assert {frame.identity for frame in after} <= sent_after


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_link_is_full_when_it_fails(run: RunFiles, protocol: str) -> None:
    """Else nothing below would show anything: packets are on their way, and many more wait, in every cell."""
    for fault in ("cut", "cut_forward", "blackhole", "link", "own_end", "change"):
        on_their_way = between(sent(run, protocol, fault, "a"), FAULT - DELAY, FAULT)
        before = len(between(sent(run, protocol, fault, "a"), 0, FAULT))
        assert len(on_their_way) >= 2
        assert before - len(between(arrived(run, protocol, fault, "a"), 0, FAULT)) > 30
        assert between(sent(run, protocol, fault, "b"), FAULT - DELAY, FAULT)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(("fault", "hosts"), [("cut", "ab"), ("cut_forward", "a")])
def test_nothing_leaves_after_a_cut(run: RunFiles, protocol: str, fault: str, hosts: str) -> None:
    """What was queued and in flight dies with the link."""
    for host in hosts:
        assert between(arrived(run, protocol, fault, host), FAULT + NEAR, REPAIR + DELAY) == []
        goes_on_after_the_repair(run, protocol, fault, host)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_other_direction_is_not_cut(run: RunFiles, protocol: str) -> None:
    """What b had sent when the forward direction was cut arrives, all of it."""
    before = [frame.identity for frame in sent(run, protocol, "cut_forward", "b") if frame.t_ns < REPAIR]
    there = [frame for frame in arrived(run, protocol, "cut_forward", "b") if frame.t_ns < REPAIR + DELAY]
    assert len(between(there, FAULT + NEAR, FAULT + DELAY + MS)) >= 1
    assert [frame.identity for frame in there[: len(before)]] == before


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("host", ["a", "b"])
def test_queued_packets_leave_through_a_blackhole(run: RunFiles, protocol: str, host: str) -> None:
    """Exactly what was sent before it arrives, long after it began; what is sent into it is lost."""
    out, there = sent(run, protocol, "blackhole", host), arrived(run, protocol, "blackhole", host)
    before = Counter(frame.identity for frame in out if frame.t_ns < FAULT)
    assert Counter(frame.identity for frame in there if frame.t_ns < REPAIR) == before
    if host == "a":
        assert len(between(there, FAULT + DELAY + NEAR, REPAIR)) > 30
        assert between(out, FAULT + NEAR, REPAIR)
    goes_on_after_the_repair(run, protocol, "blackhole", host)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_link_that_goes_down(run: RunFiles, protocol: str) -> None:
    """The hop's end towards b: its queue is thrown away at once, b cannot send, and a is told by ICMP."""
    assert between(arrived(run, protocol, "link", "a"), FAULT + NEAR, REPAIR + DELAY) == []
    assert between(sent(run, protocol, "link", "b"), FAULT + NEAR, REPAIR) == []
    late = [frame for frame in arrived(run, protocol, "link", "b") if FAULT + NEAR < frame.t_ns < REPAIR + DELAY]
    b_sent = {frame.identity for frame in sent(run, protocol, "link", "b") if frame.t_ns < FAULT + NEAR}
    assert {frame.identity for frame in late} <= b_sent
    told = [frame for frame in seen(run, protocol, "link", "a") if frame.protocol == ICMP]
    assert told
    assert {frame.source.rpartition(".")[2] for frame in told} == {"2"}
    assert all(FAULT < frame.t_ns < REPAIR for frame in told)
    for host in "ab":
        goes_on_after_the_repair(run, protocol, "link", host)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hosts_own_end_that_goes_down(run: RunFiles, protocol: str) -> None:
    """a neither sends nor hears; what had left it arrives; its capture goes on behind the repair."""
    assert between(seen(run, protocol, "own_end", "a"), FAULT + NEAR, REPAIR) == []
    before = Counter(frame.identity for frame in sent(run, protocol, "own_end", "a") if frame.t_ns < FAULT)
    there = arrived(run, protocol, "own_end", "a")
    assert Counter(frame.identity for frame in there if frame.t_ns < REPAIR) == before
    for host in "ab":
        goes_on_after_the_repair(run, protocol, "own_end", host)


@pytest.mark.parametrize("fault", ["cut", "blackhole", "link", "own_end"])
def test_sctp_goes_on_over_the_other_path(run: RunFiles, fault: str) -> None:
    """No fault of p1 touches p2: the first retransmission crosses it while p1 is dead, and arrives when it must."""
    out, there = (what(run, "sctp", fault, "a", "p2") for what in (sent, arrived))
    assert [frame for frame in between(there, FAULT, REPAIR) if DATA in frame.chunks]
    assert [frame.identity for frame in there] == [frame.identity for frame in out[: len(there)]]
    first = next(index for index, frame in enumerate(there) if frame.t_ns > FAULT)
    wanted = out[first].t_ns + DELAY + 8 * S * out[first].ip_bytes // RATE
    assert abs(there[first].t_ns - wanted) <= NEAR


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_change_of_rate(run: RunFiles, protocol: str) -> None:
    """Every packet of the cell arrives when plain arithmetic says: delay line, then queue and rate; a change holds for
    the packets whose sending begins from then on."""
    out, there = sent(run, protocol, "change", "a"), arrived(run, protocol, "change", "a")
    assert [frame.identity for frame in out[: len(there)]] == [frame.identity for frame in there]
    free = 0
    off: list[int] = []
    rates = Counter[int]()
    for leaving, coming in zip(out, there, strict=False):
        queued = leaving.t_ns + DELAY
        begins = max(free, queued)
        rate = LOWER if FAULT <= begins < REPAIR else RATE
        rates[rate] += 1
        free = begins + 8 * S * leaving.ip_bytes // rate
        off.append(coming.t_ns - free)
    assert min(off) >= -NEAR
    assert max(off) <= NEAR
    assert min(rates.values()) > 30


def test_captures_hold_nothing_else(run: RunFiles) -> None:
    """No ARP, no IPv6, no frame above the MTU: on any interface of any cell."""
    found = [frame for path in run.root.glob("cells/*/capture/*.zst") for frame in frames(path)]
    assert len(found) > 5000
    assert {frame.ethertype for frame in found} == {IPV4}
    assert max(frame.length for frame in found) == MTU + 14


def test_read_backs_are_verified(run: RunFiles) -> None:
    """environment.json: every comparison is there and right; qdiscs at the start, after fault and repair, at end."""
    handles = {"cut": [1, 3, 5, 5], "cut_forward": [1, 3, 5, 5], "own_end": [1, 1]}  # own_end touches no hop
    for cell in run.cells.values():
        checks = cell.environment["checks"]
        assert [check for check in checks if not check["ok"]] == []
        names = [check["check"] for check in checks]
        roots = [name for name in names if name in [f"qdisc {handle}: on b of p1.hop" for handle in (1, 3, 5)]]
        assert roots == [f"qdisc {n}: on b of p1.hop" for n in handles.get(cell.cell.factors["fault"], [1, 1, 1, 1])]
        for begin in ("sysctl ", "offloads off on ", "link p1 of a", "addresses of ", "permanent neighbours of "):
            assert any(name.startswith(begin) for name in names), begin
        assert "static routes of b" in names
        assert "timeline" in names
        assert "start of bulk" in names
        downed = {"link": "p1.hop", "own_end": "a"}.get(cell.cell.factors["fault"])
        for node in ("a", "b", "p1.hop"):  # at the start, and where an end came up again
            for what in ("static routes", "permanent neighbours", "addresses"):
                assert names.count(f"{what} of {node}") == (2 if node == downed else 1), (what, node)
