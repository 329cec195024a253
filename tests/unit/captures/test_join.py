"""Joined captures: recorded ones against another tool's view of them, made ones against what was put in."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from netwarp.captures import Join, join_captures
from netwarp.captures.hop_joins import NOWHERE, match_packets
from netwarp.core.errors import CaptureError, SpecError
from netwarp.engine.captures import analyze_captures
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Raw
from support.captures import DATA, Timed, data_chunk, ether, has, pcap, recorded, sack_chunk, sctp

T = 1_700_000_000_000_000_000
MS = 1_000_000
FIELDS = ["ip.src", "ip.dst", "ip.id", "sctp.checksum", "tcp.checksum", "frame.time_epoch"]


def seen_by_tshark(path: Path) -> dict[tuple[str, str, str, str], float]:
    """Packets by what tshark can tell them apart by: addresses, IPv4 identification, the transport's checksum."""
    command = ["tshark", "-n", "-r", str(path), "-T", "fields", *(word for field in FIELDS for word in ("-e", field))]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    rows = [row for line in lines if (row := line.split("\t"))[0]]  # not ARP
    found = {(row[0], row[1], row[2], row[3] + row[4]): float(row[5]) for row in rows}
    assert len(found) == len(rows), "tshark's keys are not unique: no oracle"
    return found


@pytest.mark.parametrize(("name", "link"), [("sctp", "p1"), ("sctp", "p2"), ("tcp", "p1"), ("mptcp", "p1"),
                                            ("mptcp", "p2"), ("bundle", "p1")])  # fmt: skip
def test_recorded_captures_as_tshark_sees_them(name: str, link: str) -> None:
    files = [*recorded(name, "a", [link]), *recorded(name, "b", [link])]
    found = join_captures(files, one_clock=True, whole=True)
    oracle = [seen_by_tshark(file) for file in files]
    assert found.alone == ()
    assert len(found.hops) == 2
    lost = 0
    for hop in found.hops:
        before, after = oracle if hop.before == f"{name}-a-{link}" else oracle[::-1]
        way = (hop.source, hop.destination)
        sent = {key: time for key, time in before.items() if key[:2] == way}
        delays = sorted(after[key] - time for key, time in sent.items() if key in after)
        # the last packets may have no time left to be seen: they are unknown, not lost
        assert hop.packets + hop.unknown_packets == len(sent)
        assert hop.packets - hop.lost_packets <= len(delays) <= hop.packets - hop.lost_packets + hop.unknown_packets
        has(
            hop,
            unseen_packets=len([key for key in after if key[:2] == way and key not in before]),
            by_time_packets=0,
            again_packets=0,
            negative_packets=0,
            routers=1,
        )
        np.testing.assert_allclose(
            [hop.delay_min_s, hop.delay_median_s, hop.delay_max_s],
            [delays[0], float(np.median(delays)), delays[-1]], atol=1e-6,
        )  # fmt: skip
        assert sum(length * count for length, count in hop.bursts.items()) == hop.lost_packets
        lost += hop.lost_packets
    assert (lost > 0) == (name != "mptcp" or link == "p2")


def packet(number: int, *, ttl: int = 64, back: bool = False, ecn: int = 0, payload: bytes = b"x" * 100) -> bytes:
    """A TCP segment with a TTL; a router changes TTL, TOS and the IP checksum, and nothing else."""
    ends = ("10.0.0.2", "10.0.0.1", 80, 1000) if back else ("10.0.0.1", "10.0.0.2", 1000, 80)
    header = IP(src=ends[0], dst=ends[1], ttl=ttl, id=number % 65536, tos=ecn)
    return ether(header / TCP(sport=ends[2], dport=ends[3], seq=number * 100, flags="A") / payload)


def joined(tmp_path: Path, *points: list[Timed], **options: bool) -> Join:
    files = []
    for number, packets in enumerate(points):
        files.append(tmp_path / f"p{number}.pcap")
        files[-1].write_bytes(pcap(packets))
    return join_captures(files, **options)


def test_loss_delay_bursts_reordering_and_unknown_packets(tmp_path: Path) -> None:
    here = [(T + i * MS, packet(i)) for i in range(100)]
    there = [(T + i * MS + 5 * MS + i * 1000, packet(i, ttl=63, ecn=3)) for i in range(100) if i not in (7, 20, 21, 22)]
    there[50], there[51] = (there[50][0], there[51][1]), (there[51][0], there[50][1])
    (hop,) = joined(tmp_path, here, there).hops[:1]
    # the capture there ends with packet 99's arrival; 99 itself was sent 5.099 ms before, so is known to have arrived
    has(
        hop,
        before="p0",
        after="p1",
        source="10.0.0.1",
        destination="10.0.0.2",
        packets=100,
        lost_packets=4,
        unknown_packets=0,
        unseen_packets=0,
        bursts={1: 1, 3: 1},
        burst_mean_packets=2,
        reordered_packets=1,
        routers=1,
        delay_min_s=pytest.approx(0.004054 if there[50][0] else 0, abs=1e-3),
    )
    assert np.isnan(hop.packet_delay_s).sum() == 4
    cut = joined(tmp_path, here, there[:40]).hops[0]
    assert cut.lost_packets == 4
    assert cut.packets + cut.unknown_packets == 100
    assert cut.unknown_packets >= 100 - 44 - 6
    whole = joined(tmp_path, here, there[:40], whole=True).hops[0]
    assert whole.lost_packets > 50


def test_three_points_in_any_order_of_files(tmp_path: Path) -> None:
    """Hop limits order the points even where a clock is an hour ahead; its delays are shown as they are."""
    ahead = 3600 * 1000 * MS
    a = [(T + i * MS, packet(i)) for i in range(50)]
    a += [(T + i * MS + 30 * MS, packet(i, ttl=62, back=True)) for i in range(50)]
    r = [(T + i * MS + 10 * MS - ahead, packet(i, ttl=63)) for i in range(50) if i != 9]
    r += [(T + i * MS + 20 * MS - ahead, packet(i, ttl=63, back=True)) for i in range(50)]
    b = [(T + i * MS + 15 * MS, packet(i, ttl=62)) for i in range(50) if i not in (9, 10)]
    b += [(T + i * MS + 15 * MS, packet(i, back=True)) for i in range(50)]
    points = [sorted(one) for one in (b, a, r)]
    found = joined(tmp_path, *points, whole=True)
    ways = [(hop.before, hop.after, hop.lost_packets) for hop in found.hops if hop.source == "10.0.0.1"]
    assert ways == [("p1", "p2", 1), ("p2", "p0", 1)]
    back = [(hop.before, hop.after, hop.lost_packets) for hop in found.hops if hop.source == "10.0.0.2"]
    assert back == [("p0", "p2", 0), ("p2", "p1", 0)]
    first = found.hops[[hop.before for hop in found.hops].index("p1")]
    has(
        first,
        negative_packets=49,
        delay_median_s=pytest.approx(0.010 - 3600),
        clock_offset_if_symmetric_s=pytest.approx(-3600),
    )


def test_a_direction_that_loses_everything_is_a_hop_that_does(tmp_path: Path) -> None:
    a = sorted(
        [(T + i * MS, packet(i)) for i in range(20)]
        + [(T + i * MS + 9 * MS, packet(i, ttl=63, back=True)) for i in range(20)]
    )
    b = [(T + i * MS + 2 * MS, packet(i, back=True)) for i in range(20)]
    hops = {(hop.before, hop.after): hop for hop in joined(tmp_path, a, b, whole=True).hops}
    has(hops["p0", "p1"], lost_packets=20, packets=20, delay_median_s=None)
    assert hops["p1", "p0"].lost_packets == 0


def test_equal_packets_are_distinguished_by_time(tmp_path: Path) -> None:
    """SCTP without an IPv4 identification sends the very same packet again; the first copy is the lost one."""
    packets = [sctp(5, data_chunk(i)) for i in range(20)]
    here = [(T + i * MS, one) for i, one in enumerate(packets)] + [
        (T + 200 * MS, packets[3]),
        (T + 300 * MS, packets[4]),
    ]
    there = [(time + 10 * MS, one) for time, one in here if (time, one) not in (here[3], here[21])]
    hop = joined(tmp_path, here, there, whole=True).hops[0]
    assert (hop.packets, hop.lost_packets, hop.by_time_packets) == (21, 1, 4)
    assert hop.packet_s[np.isnan(hop.packet_delay_s)].tolist() == pytest.approx([0.003])
    assert hop.delay_max_s == pytest.approx(0.010)


MATCHED = np.dtype([("fingerprint", "u8"), ("time_ns", "i8"), ("ip_bytes", "u4")])


def matched(
    sent: list[tuple[int, int, int]], came: list[tuple[int, int, int]], least_ns: list[int] | None = None
) -> list[int]:
    """Packets of (fingerprint, time in us, IP bytes) at two points: for each of the first its place in the second."""
    here, there = (np.array([(mark, t * 1000, size) for mark, t, size in rows], MATCHED) for rows in (sent, came))
    return match_packets(here, there, None if least_ns is None else np.array(least_ns)).place.tolist()


def test_an_equal_packet_may_be_faster_than_every_longer_one() -> None:
    """Of two equal resets of 40 bytes the first is lost. No other packet is so short, so none takes so little time."""
    sent = [(1, 0, 60), (2, 1000, 1500), (9, 5000, 40), (9, 9000, 40)]
    came = [(1, 160, 60), (2, 2600, 1500), (9, 9140, 40)]
    assert matched(sent, came) == [0, 1, NOWHERE, 2]
    assert matched(sent, came, [160_000, 1_600_000, 140_000, 140_000]) == [0, 1, NOWHERE, 2]
    assert matched(sent, came, [160_000, 1_600_000, 141_000, 141_000]) == [0, 1, 2, NOWHERE]


def test_each_equal_packet_that_came_is_one_of_those_sent() -> None:
    """The latest that can have come is the same of two that came: the other one came too."""
    sent = [(1, 0, 40), (9, 1000, 40), (9, 2000, 40), (9, 3000, 40)]
    assert matched(sent, [(1, 100, 40), (9, 5000, 40), (9, 5001, 40)]) == [0, NOWHERE, 1, 2]
    assert matched(sent, [(1, 100, 40), (9, 1100, 40), (9, 2100, 40)]) == [0, 1, 2, NOWHERE]


def test_equal_packets_keep_the_order_of_the_others_where_these_do() -> None:
    """A packet that was sent between two equal ones waited for as long: what came before it was sent before it."""
    sent = [(1, 0, 40), (9, 1000, 40), (2, 2000, 40), (9, 3000, 40), (3, 4000, 40)]
    came = [(1, 100, 40), (9, 8000, 40), (2, 8001, 40), (3, 8002, 40)]
    assert matched(sent, came) == [0, 1, 2, NOWHERE, 3]
    overtaken = [(1, 100, 40), (9, 8000, 40), (3, 8001, 40), (2, 8002, 40)]
    assert matched(sent, overtaken) == [0, NOWHERE, 3, 1, 2]


def test_copies_of_equal_packets() -> None:
    """More came than were sent: each that was sent is the first that came after it."""
    sent = [(1, 0, 40), (9, 1000, 40), (9, 5000, 40)]
    assert matched(sent, [(1, 100, 40), (9, 1100, 40), (9, 1101, 40), (9, 5100, 40)]) == [0, 1, 3]


def test_a_packet_duplicated_on_the_way(tmp_path: Path) -> None:
    here = [(T + i * MS, packet(i)) for i in range(20)]
    there = sorted([(time + 2 * MS, one) for time, one in here] + [(here[5][0] + 2 * MS + 9, here[5][1])])
    hop = joined(tmp_path, here, there).hops[0]
    assert (hop.lost_packets, hop.again_packets, hop.unseen_packets) == (0, 1, 0)


def test_other_protocols_and_truncated_packets_join_too(tmp_path: Path) -> None:
    def udp(i: int) -> bytes:
        return ether(IP(src="10.0.0.1", dst="10.0.0.2", id=i) / UDP(sport=1, dport=2) / Raw(bytes([i]) * 300))

    here = [(T + i * MS, udp(i)[:110], 342) for i in range(30)]
    there = [(T + i * MS + MS, udp(i), 342) for i in range(30) if i % 10]
    assert joined(tmp_path, here, there, whole=True).hops[0].lost_packets == 3  # type: ignore[arg-type]


def test_a_direction_without_packets_makes_no_hop(tmp_path: Path) -> None:
    here = [(T + i * MS, packet(i)) for i in range(20)]
    (hop,) = joined(tmp_path, here, [(time + MS, one) for time, one in here]).hops
    assert hop.source == "10.0.0.1"


def test_captures_that_cannot_be_joined_are_refused_with_the_reason(tmp_path: Path) -> None:
    here = [(T + i * MS, packet(i)) for i in range(20)]
    with pytest.raises(CaptureError, match=r"p1 begins 59\.981 s after p0 ends"):
        joined(tmp_path, here, [(T + 60_000 * MS, packet(77))])
    with pytest.raises(CaptureError, match="Address translation"):
        joined(tmp_path, here, [(T + 3 * MS, sctp(1, sack_chunk(1)))])
    with pytest.raises(CaptureError, match="empty: p1"):
        joined(tmp_path, here, [])
    with pytest.raises(CaptureError, match="two captures"):
        joined(tmp_path, here)
    path = tmp_path / "p0.pcap"
    with pytest.raises(CaptureError, match="given twice"):
        join_captures([path, tmp_path / "." / "p0.pcap"])


def test_a_capture_that_shares_nothing_is_named(tmp_path: Path) -> None:
    here = [(T + i * MS, packet(i)) for i in range(20)]
    there = [(time + MS, one) for time, one in here]
    found = joined(tmp_path, here, there, [(T, sctp(1, sack_chunk(1)))])
    assert found.alone == ("p2",)
    assert Counter(hop.lost_packets for hop in found.hops) == {0: len(found.hops)}


def test_joined_captures_are_not_merged_too() -> None:
    with pytest.raises(SpecError, match="merge the files of each node alone, without --join"):
        analyze_captures([DATA / "tcp-a-p1.pcap.zst", DATA / "tcp-b-p1.pcap.zst"], join=True, merge=True)
