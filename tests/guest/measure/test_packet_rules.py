"""Losses by the packet: rules exact to the packet against both ends' captures, bit errors against their formula."""

import math
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from support.chain_kit import Checkout
from support.chain_packets import DATA, Way, way_of
from support.run_files import CellFiles, RunFiles
from support.specs import two_hosts

MS = 1_000_000
WAY_NS = 20 * MS
NEAR_NS = 5000
"""The time that the ends' kernels take."""
BER, BYTE_ERRORS = 2e-5, 2e-3


def two_hosts_unlimited(more: str) -> str:
    """Two hosts, 20 ms between them and no rate."""
    return two_hosts(
        'name = "packet-rules"\nseed = 5\nduration = "3000 s"',
        'one_way_delay = "20 ms"',
        f'protocol = "sctp"\nsender = {{ nodelay = true }}\n{more}',
    )


RULES = two_hosts_unlimited(
    """
[flow.x]
bytes = "100 kB"
[link.p1.forward]
drop = [7, 11]
duplicate = [5, 11, 14]
delay = { 14 = "30 ms", 16 = "3 ms", 18 = "9 ms", packet = { 18 = "5 ms" }, data = { 20 = "7 ms" } }
[link.p1.backward]
drop = { sack = [2], syn_ack = [1] }
[factor.protocol]
levels = ["tcp", "sctp"]
sets = "flow.x.protocol"
"""
)
RANGES = two_hosts_unlimited(
    """
[flow.x]
bytes = "600 kB"
[link.p1.forward]
drop = { data = { every = "40 packets", from = 60, to = 300 } }
[link.p1.backward]
drop = [3, { from = 20, to = 22 }]
[factor.protocol]
levels = ["tcp", "sctp"]
sets = "flow.x.protocol"
"""
)
ERRORS = two_hosts_unlimited(
    f"""
[flow.x]
[link.p1.forward]
bit_errors = "{BER:g}"
[link.p1.backward]
byte_errors = "{BYTE_ERRORS:.0e}"
layer = "ethernet"
[factor.size]
levels = ["16 B", "400 B", "1452 B"]
[factor.size.level."16 B"]
flow.x = {{ message_size = "16 B", bytes = "160 kB", sender.interval = "5 ms" }}
[factor.size.level."400 B"]
flow.x = {{ message_size = "400 B", bytes = "800 kB", sender.interval = "50 ms" }}
[factor.size.level."1452 B"]
flow.x = {{ message_size = "1452 B", bytes = "1452 kB" }}
"""
)
LONGER = two_hosts_unlimited(
    """
[flow.fits]
message_size = "800 B"
sender.interval = "100 ms"
stop = "6 s"
[flow.longer]
message_size = "804 B"
sender.interval = "100 ms"
stop = "6 s"
[event.hole]
action = "blackhole"
link = "p1"
directions = ["forward"]
longer_than = "848 B"
at = "2.05 s"
for = "2 s"
"""
)


def direction(cell: CellFiles, host: str) -> Way:
    """One direction of p1. A packet that was still on its way when the cell ended cannot arrive: it is left out."""
    (end,) = cell.init("end")
    way = way_of(cell, host)
    in_time = [frame for frame in way.sent if frame.t_ns + WAY_NS < end["t_ns"]]
    assert way.sent[: len(in_time)] == in_time
    assert len(way.sent) - len(in_time) <= 2
    return replace(way, sent=in_time)


def arrivals(found: list[tuple[bytes, int]]) -> dict[bytes, list[int]]:
    """When each packet arrived, once or more."""
    times = defaultdict(list)
    for identity, t_ns in sorted(found):
        times[identity].append(t_ns)
    return times


@pytest.fixture(scope="module")
def rules(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Both protocols, without a rate: each packet takes 20 ms."""
    return checkout.run_spec(tmp_path_factory.mktemp("rules"), RULES, "--no-report")


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_rules_are_exact_to_the_packet(rules: RunFiles, protocol: str) -> None:
    """Two never arrive (a drop wins over a copy), two arrive twice, four late: the longer of two delays; a copy is not
    delayed; every other packet arrives once, after 20 ms."""
    way = direction(rules.cell(protocol=protocol), "a")
    with_data = [number for number, frame in enumerate(way.sent, 1) if frame.data_bytes or DATA in frame.chunks]
    late = {14: 30 * MS, 16: 3 * MS, 18: 9 * MS, with_data[19]: 7 * MS}
    assert len(late) == 4
    due = []
    for number, frame in enumerate(way.sent, 1):
        if number in {5, 14}:
            due.append((frame.identity, frame.t_ns + WAY_NS))
        if number not in {7, 11}:
            due.append((frame.identity, frame.t_ns + WAY_NS + late.get(number, 0)))
    expected, came = arrivals(due), arrivals([(frame.identity, frame.t_ns) for frame in way.arrived])
    assert expected.keys() == came.keys()
    for identity, times in expected.items():
        assert came[identity] == pytest.approx(times, abs=NEAR_NS)
    counts = {name: way.counts[name] for name in ("dropped", "duplicated", "delayed", "bit_errors", "too_long")}
    assert counts == {"dropped": 2, "duplicated": 2, "delayed": 4, "bit_errors": 0, "too_long": 0}


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_kinds_are_counted_apart(rules: RunFiles, protocol: str) -> None:
    """On the way back TCP loses its first SYN ACK and SCTP its second packet with a SACK, and nothing else."""
    way = direction(rules.cell(protocol=protocol), "b")
    sacks = [number for number, frame in enumerate(way.sent, 1) if 3 in frame.chunks]
    assert way.lost == ({1} if protocol == "tcp" else {sacks[1]})
    assert way.sent[0].flags == (0x12 if protocol == "tcp" else 0)
    assert way.counts["dropped"] == 1


@pytest.fixture(scope="module")
def ranges(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Both protocols, with periodic losses of data one way and a range of packets the other."""
    return checkout.run_spec(tmp_path_factory.mktemp("ranges"), RANGES, "--no-report")


@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_periodic_losses_and_ranges_are_exact(ranges: RunFiles, protocol: str) -> None:
    """The data packets 60, 100 ... 300 of the flow, those sent again counted like others; the packets 3 and 20 to 22
    of the way back; no other."""
    cell = ranges.cell(protocol=protocol)
    way = direction(cell, "a")
    with_data = [number for number, frame in enumerate(way.sent, 1) if frame.data_bytes or DATA in frame.chunks]
    assert len(with_data) > 300
    assert way.lost == {with_data[number - 1] for number in range(60, 301, 40)}
    assert direction(cell, "b").lost == {3, 20, 21, 22}


@pytest.fixture(scope="module")
def errors(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, CellFiles]:
    """Bit errors one way, errors of bytes (of Ethernet frames) the other, for three sizes of messages."""
    run = checkout.run_spec(tmp_path_factory.mktemp("errors"), ERRORS, "--no-report")
    return {size: run.cell(size=size) for size in ("16 B", "400 B", "1452 B")}


@pytest.mark.parametrize("host", ["a", "b"])
def test_errors_lose_by_the_packets_length(errors: dict[str, CellFiles], host: str) -> None:
    """1 - (1 - BER)^(8 L) and 1 - (1 - p)^(14 + L), within 4 sigma for every length that occurs often enough."""
    judged = set()
    for cell in errors.values():
        way = direction(cell, host)
        assert way.counts["bit_errors"] == len(way.lost)
        gone = Counter(way.sent[number - 1].ip_bytes for number in way.lost)
        for length, count in Counter(frame.ip_bytes for frame in way.sent).items():
            p = 1 - ((1 - BER) ** (8 * length) if host == "a" else (1 - BYTE_ERRORS) ** (14 + length))
            if count * p > 20:
                judged.add(length)
                assert abs(gone[length] - count * p) <= 4 * math.sqrt(count * p * (1 - p)), (length, count)
    assert judged >= ({64, 448, 1500} if host == "a" else {48})


def test_variants_meet_the_same_draws(errors: dict[str, CellFiles]) -> None:
    """The n-th packet of a cell that was lost is lost in every cell where the n-th packet is as long or longer."""
    ways = [direction(cell, "a") for cell in errors.values()]
    compared = 0
    for way in ways:
        for other in ways:
            gone = other.lost
            for number in way.lost:
                if number <= len(other.sent) and other.sent[number - 1].ip_bytes >= way.sent[number - 1].ip_bytes:
                    assert number in gone
                    compared += way is not other
    assert compared > 20


def test_a_black_hole_by_length_takes_only_longer_packets(
    checkout: Checkout, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """For 2 s every packet of more than 848 bytes vanishes, and none of 848 or less; before and after none at all."""
    run = checkout.run_spec(tmp_path_factory.mktemp("longer"), LONGER, "--no-report")
    (cell,) = run.cells.values()
    way = direction(cell, "a")
    inside = {n for n, frame in enumerate(way.sent, 1) if 2050 * MS <= frame.t_ns < 4050 * MS}
    longer = {n for n in inside if way.sent[n - 1].ip_bytes > 848}
    assert way.lost == longer
    assert way.counts["too_long"] == len(longer) >= 2
    lengths = Counter(way.sent[n - 1].ip_bytes for n in inside)
    assert lengths[852] >= 2
    assert lengths[848] >= 10
