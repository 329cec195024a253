"""Captures of a part: a clock that is set back, one direction, silence, ICMP. Each is drawn or built from a story whose
truth is known.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from netwarp.captures.explanation import explain
from scapy.layers.inet import ICMP, IP, TCP
from scapy.layers.inet6 import ICMPv6DestUnreach, ICMPv6PacketTooBig, ICMPv6TimeExceeded, IPv6
from scapy.layers.l2 import Ether
from scapy.packet import Packet
from support import sctp_story
from support.captures import T, Timed, association, chunk, pcap, sctp, segment, summary, timed
from support.sctp_story import data, sack
from support.tcp_story import MSS, Story
from transformations import Frames, read_frames, set_back

MS = 1_000_000


def transfer(draw: random.Random) -> Story:
    story = Story(stamps=draw.random() < 0.5).handshake()
    for number in range(60):
        at = 50 + number * 20 + draw.random()
        story.data(at, 1 + number * MSS).ack(at + 40, 1 + (number + 1) * MSS)
    story.packets.sort(key=lambda packet: packet[0])
    return story


def as_frames(tmp_path: Path, packets: list[Timed]) -> Frames:
    file = tmp_path / "story.pcap"
    file.write_bytes(pcap(packets))
    return read_frames(file)


@pytest.mark.parametrize("seed", range(12))
def test_a_clock_that_is_set_back_reorders_nothing(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    once = as_frames(tmp_path, transfer(draw).packets)
    by_ns = draw.choice([80 * MS, 500 * MS, 2_000 * MS, 86_400_000 * MS])
    changed = set_back(once, draw.uniform(0.2, 0.8), by_ns)
    found, plain = summary(tmp_path, changed.pcap()), summary(tmp_path, once.pcap())
    totals, expected = found.connections[0].totals, plain.connections[0].totals
    for name in ("new_bytes", "retransmitted_packets", "out_of_order_packets", "timeouts", "duplicate_acks"):
        assert totals[name] == expected[name], name
    assert set(found.findings) <= set(plain.findings)
    assert totals["rtt_min_s"] is None or totals["rtt_min_s"] >= 0.0399
    assert [note for note in found.notes if "clock was set back" in note]


@pytest.mark.parametrize("seed", range(6))
def test_files_in_the_wrong_order_are_sorted(tmp_path: Path, seed: int) -> None:
    """The later half of a capture comes first: times go back, and so do the numbers."""
    draw = random.Random(seed)
    once = as_frames(tmp_path, transfer(draw).packets)
    middle = len(once.frames) // 2
    found = summary(tmp_path, once.of([*once.frames[middle:], *once.frames[:middle]]).pcap())
    assert found.connections[0].totals == summary(tmp_path, once.pcap()).connections[0].totals
    assert [note for note in found.notes if "all are sorted by time" in note]


def sctp_life() -> list[Timed]:
    """An association with data, HEARTBEATs both ways and an outage."""
    packets = [*sctp_story.handshake()]
    for number in range(12):
        packets += [data(300 + 100 * number, number), sack(400 + 100 * number, number)]
    packets += [data(1600, 12), data(2600, 12), sack(2700, 12)]
    for number in range(4):
        at = 3000 + 500 * number
        tag, other = (22, 11) if number % 2 else (11, 22)
        packets.append((at * MS, sctp(tag, chunk(4, b"beat%d" % number), back=not number % 2)))
        packets.append(((at + 100) * MS, sctp(other, chunk(5, b"beat%d" % number), back=bool(number % 2))))
    return [(T + at, packet) for at, packet in packets]


@pytest.mark.parametrize("end", [0, 1])
def test_one_direction_of_an_association(tmp_path: Path, end: int) -> None:
    """No sentence says what the other end did not do."""
    source = bytes([10, 1, 0, 1 + end])
    found = summary(tmp_path, [(at, packet) for at, packet in sctp_life() if packet[26:30] == source])
    unseen = ("10.1.0.2:80", "10.1.0.1:1000")[end]
    told = found.findings
    assert f"no packet of {unseen} is in this capture: what it received and answered is unknown" in told
    assert not [text for text in told if "no answer" in text or "T3" in text]
    connection = found.connections[0]
    assert not connection.totals["heartbeats_unanswered"]
    assert not [event for event in connection.events if "outage" in event["what"] or "unanswered" in event["what"]]
    (explained,) = explain([found], 1)
    assert not [moment for moment in explained.moments if "never" in moment.text or "without answer" in moment.text]


@pytest.mark.parametrize("left_ms", [0, 50, 900])
def test_a_heartbeat_just_before_the_end_may_have_been_answered(tmp_path: Path, left_ms: int) -> None:
    packets = [*sctp_life(), (T + 6000 * MS, sctp(22, chunk(4, b"last")))]
    packets += [(T + (6000 + left_ms) * MS, segment(1, 10))] if left_ms else []
    found = summary(tmp_path, packets)
    assert not [text for text in found.findings if "HEARTBEAT" in text]
    late = [*packets, (T + 8000 * MS, segment(11, 10))]
    assert [text for text in summary(tmp_path, late).findings if "1 HEARTBEAT of 3 got no answer" in text]


@pytest.mark.parametrize(("rest_s", "told"), [(0, False), (4, False), (60, True)])
def test_silence_to_the_end_is_told_of_what_it_is(tmp_path: Path, rest_s: int, told: bool) -> None:
    packets = sctp_life()
    if rest_s:
        packets.append((packets[-1][0] + rest_s * 1000 * MS, segment(1, 10)))
    found = summary(tmp_path, packets)
    assert bool([text for text in found.findings if f"the capture goes on for {rest_s} s" in text]) == told
    explained = explain([found], 2)
    ends = [each.moments[-1].text for each in explained if each.connection.protocol == "sctp"]
    assert ends[0].startswith("its last packet: the capture goes on" if rest_s else "the capture ends")


def test_a_closed_association_is_not_silent(tmp_path: Path) -> None:
    packets = [*sctp_life(), (T + 9000 * MS, sctp(22, chunk(6)))]
    packets.append((T + 90_000 * MS, segment(1, 10)))
    assert not [text for text in summary(tmp_path, packets).findings if "goes on" in text]


def frame(packet: Packet) -> bytes:
    return bytes(Ether(src="02:00:00:00:00:03", dst="02:00:00:00:00:02") / packet)


def quoted(packet: bytes, size: int = 28) -> bytes:
    """What an error quotes: the IP header and eight bytes."""
    return packet[14 : 14 + size]


ICMP4 = {
    (3, 0): "network unreachable", (3, 1): "host unreachable", (3, 2): "protocol unreachable",
    (3, 3): "port unreachable", (3, 13): "administratively prohibited", (11, 0): "time exceeded in transit",
}  # fmt: skip


@pytest.mark.parametrize(("kind", "words"), ICMP4.items(), ids=ICMP4.values())
@pytest.mark.parametrize("protocol", ["tcp", "sctp"])
def test_icmp_about_a_handshake(tmp_path: Path, protocol: str, kind: tuple[int, int], words: str) -> None:
    asked = segment(1000, flags="S", window=1000) if protocol == "tcp" else association()[0]
    ends = ("10.0.0.1:1000", "10.0.0.1") if protocol == "tcp" else ("10.1.0.1:1000", "10.1.0.1")
    error = frame(IP(src="10.9.9.9", dst=ends[1]) / ICMP(type=kind[0], code=kind[1]) / quoted(asked))
    packets = [(T, asked), (T + 5 * MS, error), (T + 1000 * MS, asked), (T + 1005 * MS, error)]
    found = summary(tmp_path, packets)
    assert found.findings == (f"10.9.9.9 answered {ends[0]} with 2 ICMP errors, from 0.005 s on: {words}",)
    (explained,) = explain([found], 1)
    assert [moment for moment in explained.moments if f"10.9.9.9 answers {ends[0]} by ICMP: {words}" in moment.text]


def test_icmp_too_big(tmp_path: Path) -> None:
    """IPv4 with the MTU of the next hop, IPv6; and an error about nothing of the capture is of no connection."""
    story = Story().handshake().flight(50, 1, 3)
    large = story.packets[-1][1]
    error = ICMP(type=3, code=4, nexthopmtu=1400)
    story.packets.append((T + 51 * MS, frame(IP(src="10.0.0.254", dst="10.0.0.1") / error / quoted(large))))
    other = quoted(segment(5, 10))[:12] + bytes([9, 9, 9, 9, 9, 9, 9, 8]) + quoted(segment(5, 10))[20:]
    story.packets.append((T + 52 * MS, frame(IP(src="10.0.0.254", dst="9.9.9.9") / ICMP(type=3, code=3) / other)))
    found = summary(tmp_path, story.packets)
    (event,) = [event for event in found.connections[0].events if event["what"] == "icmp"]
    assert (event["error"], event["mtu_bytes"], event["direction"]) == ("fragmentation needed", 1400, 0)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ICMPv6DestUnreach(code=4), "port unreachable"),
        (ICMPv6PacketTooBig(mtu=1280), "packet too big"),
        (ICMPv6TimeExceeded(code=0), "time exceeded in transit"),
    ],
)
def test_icmpv6(tmp_path: Path, error: Packet, words: str) -> None:
    tcp = TCP(sport=1000, dport=80, seq=7, flags="S")
    asked = frame(IPv6(src="2001:db8::1", dst="2001:db8::2") / tcp)
    told = frame(IPv6(src="2001:db8::fe", dst="2001:db8::1") / error / asked[14:])
    found = summary(tmp_path, [(T, asked), (T + MS, told), (T + 1000 * MS, asked)])
    assert found.findings == (f"2001:db8::fe answered [2001:db8::1]:1000 with 1 ICMP error, from 0.001 s on: {words}",)


def test_errors_captured_several_times_are_one(tmp_path: Path) -> None:
    asked = association()[0]
    error = frame(IP(src="10.1.0.2", dst="10.1.0.1") / ICMP(type=3, code=2) / quoted(asked))
    found = summary(tmp_path, [(T, asked), *[(T + 5 * MS + copy * 3000, error) for copy in range(4)]])
    assert "with 1 ICMP error," in found.findings[0]


def test_a_jumbogram(tmp_path: Path) -> None:
    """RFC 2675: the length is in a hop-by-hop option; one that lies, or is cut, is no crash."""
    tcp = bytes(TCP(sport=1000, dport=80, seq=7, ack=1, flags="A"))
    body = tcp + b"x" * 70_000
    address = [bytes.fromhex("20010db8") + bytes(11) + bytes([end]) for end in (1, 2)]
    for jumbo in (8 + len(body), 2**32 - 1, 10):
        option = struct.pack("!BBBBI", 6, 0, 0xC2, 4, jumbo)
        ip = struct.pack("!IHBB", 6 << 28, 0, 0, 64) + b"".join(address)
        packet = b"\2\0\0\0\0\2\2\0\0\0\0\1\x86\xdd" + ip + option + body
        found = summary(tmp_path, timed([packet]))
        if jumbo == 8 + len(body):
            assert found.connections[0].directions[0]["new_bytes"] == 70_000


def test_simultaneous_inits_and_repeated_ones(tmp_path: Path) -> None:
    """Only the initiator's own INITs tell its timer."""
    init, answer, echo, done = association()
    back = sctp(0, association(tag=22, tsn=9000)[0][-32:], back=True)
    both = [(0, init), (3 * MS, back), (20 * MS, answer), (21 * MS, echo), (40 * MS, done)]
    found = summary(tmp_path, [(T + at, packet) for at, packet in both])
    (explained,) = explain([found], 1)
    assert not {"rto_initial", "init_attempts"} & {known.name for known in explained.settings}
    again = [(0, init), (3000 * MS, init), (3020 * MS, answer), (3021 * MS, echo), (3040 * MS, done)]
    (explained,) = explain([summary(tmp_path, [(T + at, packet) for at, packet in again])], 1)
    assert {"rto_initial", "init_attempts"} <= {known.name for known in explained.settings}


def test_evidence_of_an_association(tmp_path: Path) -> None:
    """Its COOKIE ACK is missing: the first chunk that an association alone has shows it, and is named."""
    packets = [packet for packet in sctp_life() if packet[1] != association()[3]]
    found = summary(tmp_path, packets)
    (explained,) = explain([found], 1)
    assert explained.moments[1].text.startswith("the association is up, after ")
    assert "the capture has no COOKIE ACK" in explained.moments[1].text


def test_a_heartbeat_interval_without_the_handshake(tmp_path: Path) -> None:
    """Pauses of answered HEARTBEATs of an idle path bound the interval from above wherever they are captured."""
    packets = []
    for number in range(6):
        at = number * 31_000 + 7 * number % 5
        packets.append((T + at * MS, sctp(22, chunk(4, b"beat%d" % number))))
        packets.append((T + (at + 20) * MS, sctp(11, chunk(5, b"beat%d" % number), back=True)))
    (explained,) = explain([summary(tmp_path, packets)], 1)
    (known,) = [setting for setting in explained.settings if setting.name == "heartbeat_interval"]
    assert known.low is None and known.high is not None and 30 <= known.high <= 31.1


def test_very_many_stalls_are_counted_once(tmp_path: Path) -> None:
    """`analyze` and `explain` tell the same number of T3 expiries."""
    packets = [*sctp_story.handshake(20)]
    for number in range(530):
        at = 1000 + 3000 * number
        packets += [data(at, number), data(at + 1000, number), sack(at + 1020, number)]
    found = summary(tmp_path, [(T + at, packet) for at, packet in packets])
    assert found.connections[0].totals["t3_expiries"] == 530
    assert [text for text in found.findings if "530 T3 expiries" in text]
    (explained,) = explain([found], 1)
    texts = [moment.text for moment in explained.moments]
    assert "30 more stalls of 10.1.0.1:1000 after these; T3 expires 530 times in all" in texts
