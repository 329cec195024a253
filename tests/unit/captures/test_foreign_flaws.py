"""Flaws of captures that others made, each in a capture of our own making; tshark is the oracle where it can be."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.errors import CaptureError
from netwarp.present.captures.lines import detail_lines
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet
from support.captures import (
    ISN,
    T,
    association,
    chunk,
    data_chunk,
    ether,
    has,
    pcap,
    read,
    sack_chunk,
    sctp,
    segment,
    summary,
    timed,
)
from support.tcp_story import MS, MSS, Story
from support.tshark import tshark

LOCAL = "127.0.0.1"


def local(sport: int, dport: int, seq: int, flags: str = "A", ack: int = 0, payload: int = 0) -> bytes:
    tcp = TCP(sport=sport, dport=dport, seq=seq, ack=ack, flags=flags)
    return ether(IP(src=LOCAL, dst=LOCAL) / tcp / (b"x" * payload))


def written(tmp_path: Path, data: bytes, name: str = "one.pcap") -> Path:
    path = tmp_path / name
    path.write_bytes(data)
    return path


def streams(path: Path, tmp_path: Path) -> int:
    """TCP connections as tshark counts them."""
    return len({row[0][0] for row in tshark([path], tmp_path, ["tcp.stream"], "tcp")})


def every_ms(packets: Iterable[bytes]) -> list[tuple[int, bytes]]:
    return [(T + i * MS, packet) for i, packet in enumerate(packets)]


@pytest.mark.parametrize("handshake", [True, False])
@pytest.mark.parametrize("ports", [(40000, 80), (80, 40000)])
def test_a_host_with_itself_is_one_connection(tmp_path: Path, ports: tuple[int, int], handshake: bool) -> None:
    there, back = ports, ports[::-1]
    packets = [
        local(*there, ISN, "S"),
        local(*back, 7000, "SA", ISN + 1 & 0xFFFFFFFF),
        local(*there, ISN + 1 & 0xFFFFFFFF, "A", 7001, 100),
        local(*back, 7001, "A", ISN + 101 & 0xFFFFFFFF, 50),
        local(*there, ISN + 101 & 0xFFFFFFFF, "A", 7051, 100),
    ][0 if handshake else 2 :]
    data = pcap(every_ms(packets))
    capture = read(tmp_path, data)
    assert len(capture.flows) == 1 == streams(written(tmp_path, data), tmp_path)
    assert capture.flows["port"].tolist() == [list(there)]
    assert capture.flow_paths["new_bytes"].tolist() == [[200, 50]]
    assert capture.segments["direction"].tolist() == ([0, 1, 0, 1, 0] if handshake else [0, 1, 0])
    # the path's own totals: end a has the lower port
    assert sorted(capture.paths["packets"][0].tolist()) == ([2, 3] if handshake else [1, 2])


def test_sctp_between_equal_addresses_without_its_handshake(tmp_path: Path) -> None:
    def local_sctp(*chunks: bytes, tag: int, back: bool = False) -> bytes:
        frame = sctp(tag, *chunks, back=back)
        return frame[:26] + bytes([127, 0, 0, 1, 127, 0, 0, 1]) + frame[34:]

    sack = chunk(3, struct.pack("!IIHH", 100, 65536, 0, 0))
    packets = [
        local_sctp(data_chunk(100), tag=22),
        local_sctp(sack, tag=11, back=True),
        local_sctp(data_chunk(101), tag=22),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    assert capture.chunks["direction"].tolist() == [0, 1, 0]


def test_the_answer_recorded_before_its_syn(tmp_path: Path) -> None:
    story = Story().handshake()
    syn, answer, *rest = [packet for _, packet in story.flight(41, 1, 2).packets]
    data = pcap(every_ms([answer, syn, *rest]))
    capture = read(tmp_path, data)
    assert len(capture.flows) == 1 == streams(written(tmp_path, data), tmp_path)
    flow = capture.flows[0]
    has(flow, base=[ISN, 7000], base_known=[True, True], window_shift=[7, 7])
    assert capture.segments["direction"].tolist() == [1, 0, 0, 0, 0]


def test_a_syn_with_the_number_of_a_refused_one_is_the_same_attempt(tmp_path: Path) -> None:
    refused = [segment(ISN, flags="S"), segment(0, back=True, flags="RA", ack=ISN + 1)]
    data = pcap([(T + i * 500 * MS, packet) for i, packet in enumerate(refused * 3)])
    capture = read(tmp_path, data)
    assert len(capture.flows) == 1 == streams(written(tmp_path, data), tmp_path)
    assert capture.flow_paths["retransmitted_packets"].tolist()[0][0] == 2
    # another number is another attempt
    data = pcap(every_ms([*refused, segment(ISN + 9, flags="S")]))
    assert len(read(tmp_path, data).flows) == 2 == streams(written(tmp_path, data, "two.pcap"), tmp_path)


def frame(packet: Packet, ip_length: int | None = None) -> bytes:
    """In Ethernet, with another IP length."""
    raw = bytearray(ether(packet))
    if ip_length is not None:
        raw[16:18] = struct.pack("!H", ip_length)
    return bytes(raw)


def test_an_ip_length_beyond_the_frame_counts_what_is_there(tmp_path: Path) -> None:
    tcp = [
        IP(src="10.0.0.1", dst="10.0.0.2") / TCP(sport=1000, dport=80, seq=1 + 30 * n) / (b"x" * 30) for n in range(6)
    ]
    packets = [frame(packet, 20 + 20 + 90 if n % 2 else None) for n, packet in enumerate(tcp)]
    packets.append(frame(tcp[5] / (b"x" * 99)))  # one that is longer, and whole
    capture = read(tmp_path, pcap(every_ms(packets)))
    assert capture.segments["payload_bytes"].tolist() == [30] * 6 + [129]
    assert capture.packets["ip_bytes"].tolist() == [70] * 6 + [169]
    assert capture.sources["malformed"].tolist() == [3]
    assert capture.segments["is_retransmission"].sum() == 1  # the last, which begins where the one before does
    rows = tshark([written(tmp_path, pcap(every_ms(packets)))], tmp_path, ["tcp.len"])
    assert [int(row[0][0]) for row in rows] == capture.segments["payload_bytes"].tolist()


def test_whole_ethernet_frames_are_no_cut(tmp_path: Path) -> None:
    """Several are as long as the longest, as where a converter cut; an IP length beyond one of them is a lie."""
    packets = [segment(1 + 1460 * n, 1460) for n in range(6)]
    lie = bytearray(packets[3])
    lie[16:18] = struct.pack("!H", 9587)
    packets[3] = bytes(lie)
    data = pcap(every_ms(packets))
    capture = read(tmp_path, data)
    assert capture.segments["payload_bytes"].tolist() == [1460] * 6
    assert capture.sources["malformed"].tolist() == [1]
    rows = tshark([written(tmp_path, data)], tmp_path, ["tcp.len"])
    assert [int(row[0][0]) for row in rows] == capture.segments["payload_bytes"].tolist()


def test_a_lost_length_is_taken_from_the_ip_header(tmp_path: Path) -> None:
    """A converter that cut at 68 bytes and wrote 68 as the length on the wire."""
    sizes = [0, 1000, 1000, 0, 500]
    tcp = [segment(1 + sum(sizes[:n]), size) for n, size in enumerate(sizes)]
    capture = read(tmp_path, pcap([(T + n * MS, packet[:68]) for n, packet in enumerate(tcp)]))
    assert capture.segments["payload_bytes"].tolist() == sizes
    has(capture.sources, malformed=[0], truncated=[3])
    assert not capture.segments["is_retransmission"].any()


def test_pcap_22_has_its_lengths_the_other_way_round(tmp_path: Path) -> None:
    whole = segment(1, 400)
    for minor, swapped in ((2, True), (3, True), (3, False), (4, False)):
        raw = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, minor, 0, 0, 96, 1)
        for n in range(3):
            lengths = (len(whole), 96) if swapped else (96, len(whole))
            raw += struct.pack("<IIII", 1000 + n, 0, *lengths) + whole[:96]
        path = written(tmp_path, raw, f"{minor}-{swapped}.pcap")
        capture = read(tmp_path, raw)
        assert capture.packets["frame_bytes"].tolist() == [len(whole)] * 3
        assert capture.segments["payload_bytes"].tolist() == [400] * 3
        assert [int(row[0][0]) for row in tshark([path], tmp_path, ["frame.len"])] == [len(whole)] * 3


@pytest.mark.parametrize("version", [(1, 4), (2, 5), (3, 0), (543, 1)])
def test_a_version_that_nobody_knows_is_refused(tmp_path: Path, version: tuple[int, int]) -> None:
    raw = bytearray(pcap([(T, segment(1, 400))]))
    raw[4:8] = struct.pack("<HH", *version)
    with pytest.raises(CaptureError, match=rf"pcap version {version[0]}\.{version[1]}: only 2\.0 to 2\.4 are known"):
        read(tmp_path, bytes(raw))


def test_pure_acks_are_those_that_acknowledge_the_data(tmp_path: Path) -> None:
    story = Story().handshake()
    for n in range(5):
        story.data(41 + n, 1 + n * MSS).ack(81 + n, 1 + (n + 1) * MSS)
    connection = story.told(tmp_path)
    assert connection.totals["pure_ack_packets"] == 1  # of the handshake
    assert connection.totals["pure_acks_back"] == 5


def test_the_window_of_a_fin_closes_nothing(tmp_path: Path) -> None:
    story = Story().handshake().data(41, 1).ack(81, 1 + MSS, window=0, flags="FA")
    totals = story.told(tmp_path).totals
    assert (totals["zero_windows"], totals["zero_window_packets"]) == (0, 0)


def test_no_timeout_is_shorter_than_a_round_trip(tmp_path: Path) -> None:
    """Every segment twice, 6 us apart: the second of them is no timer's."""
    story = Story(stamps=False).handshake()
    for n in range(20):
        story.data(50 + n * 50, 1 + n * MSS).data(50.006 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    totals = story.told(tmp_path).totals
    has(totals, retransmitted_packets=20, timeouts=0)


def test_an_unanswered_syn_is_no_handshake(tmp_path: Path) -> None:
    found = summary(tmp_path, pcap(every_ms([segment(ISN, flags="S"), segment(ISN, flags="S")])))
    assert not found.connections[0].facts["handshake_seen"]
    story = Story().handshake()
    assert summary(tmp_path, pcap(story.packets)).connections[0].facts["handshake_seen"]


def test_a_move_of_new_data_is_no_heartbeat(tmp_path: Path) -> None:
    packets = association()
    for n, path in enumerate((1, 1, 2, 2, 1)):
        packets += [sctp(22, data_chunk(ISN + n), path=path), sctp(11, sack_chunk(ISN + n), path=path, back=True)]
    (connection,) = summary(tmp_path, pcap(timed(packets))).connections
    assert (connection.totals["path_changes"], connection.totals["heartbeats"]) == (2, 0)
    lines = dict(detail_lines(connection))
    assert lines["new data moved"] == "2 times"
    assert "heartbeats" not in lines


def test_payload_protocols_have_names(tmp_path: Path) -> None:
    """NGAP, S1AP, Diameter, M3UA by their PPIDs; one that nobody registered by none."""
    packets = association()
    for n, ppid in enumerate((60, 18, 46, 3, 60, 4711)):
        user_data = struct.pack("!IHHI", (ISN + n) % 2**32, 0, n, ppid) + b"d" * (100 + n)
        packets += [sctp(22, chunk(0, user_data, 3)), sctp(11, sack_chunk(ISN + n), back=True)]
    (connection,) = summary(tmp_path, pcap(timed(packets))).connections
    assert {row["ppid"]: row["name"] for row in connection.tables["payloads"]} == {
        60: "NGAP", 18: "S1AP", 46: "Diameter", 3: "M3UA", 4711: "",
    }  # fmt: skip
    carries = dict(detail_lines(connection))["carries"]
    assert sorted(carries.split(", ")) == ["Diameter (PPID 46)", "M3UA (PPID 3)", "NGAP (PPID 60)", "S1AP (PPID 18)"]


def twice(story: Story, *, hops: int, numbered: bool = True) -> list[tuple[int, bytes]]:
    """Every packet again 6 us later, its hop limit lower by `hops`; numbered: IPv4 numbers them."""
    packets = []
    for number, (time, raw) in enumerate(story.packets):
        for copy in (0, 1):
            data = bytearray(raw)
            data[18:20] = struct.pack("!H", number + 1 if numbered else 0)
            data[22] -= hops * copy
            packets.append((time + 6000 * copy, bytes(data)))
    return packets


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("hops", [0, 1])
def test_packets_captured_twice_are_left_out(tmp_path: Path, hops: int, numbered: bool) -> None:
    story = Story().handshake()
    for n in range(20):
        story.data(50 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    once = summary(tmp_path, pcap(story.packets))
    found = summary(tmp_path, pcap(twice(story, hops=hops, numbered=numbered)))
    assert found.facts["copies"] == len(story.packets)
    assert [note for note in found.notes if "packets are copies of" in note]
    has(found.connections[0], directions=once.connections[0].directions, totals=once.connections[0].totals)
    assert found.findings == once.findings
    assert once.facts["copies"] == 0


def test_what_a_sender_sends_again_is_no_copy(tmp_path: Path) -> None:
    """Another number, or, without numbers, later than a millisecond."""
    story = Story(stamps=False).handshake()
    for n in range(20):
        story.data(50 + n * 50, 1 + n * MSS).data(53 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    packets = []
    for number, (time, raw) in enumerate(story.packets):
        data = bytearray(raw)
        data[18:20] = struct.pack("!H", number + 1)
        packets.append((time, bytes(data)))
    for numbered in (packets, [(time, raw[:18] + b"\0\0" + raw[20:]) for time, raw in packets]):
        found = summary(tmp_path, pcap(numbered))
        assert found.facts["copies"] == 0
        assert found.connections[0].directions[0]["retransmitted_packets"] == 20


def test_a_network_that_duplicates_a_few_packets_is_believed(tmp_path: Path) -> None:
    story = Story().handshake()
    for n in range(60):
        story.data(50 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    packets = twice(story, hops=0)
    few = [packet for place, packet in enumerate(packets) if place % 2 == 0 or place % 50 == 15]
    found = summary(tmp_path, pcap(few))
    assert found.facts["copies"] == len(few) - len(story.packets)
    assert [note for note in found.notes if "counted as sent again" in note]


def test_records_out_of_order_are_sorted(tmp_path: Path) -> None:
    story = Story().handshake()
    for n in range(20):
        story.data(50 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    mixed = list(story.packets)
    random.Random(3).shuffle(mixed)
    once, found = summary(tmp_path, pcap(story.packets)), summary(tmp_path, pcap(mixed))
    has(found.connections[0], totals=once.connections[0].totals, directions=once.connections[0].directions)
    assert found.facts["first_s"] == once.facts["first_s"]
    assert [note for note in found.notes if "all are sorted by time" in note]
    assert found.stream.capture.sources["backwards"][0] > 0


def test_associations_with_equal_tags_and_ports(tmp_path: Path) -> None:
    """Hosts that count their tags from 1: two pairs of hosts have the same, with and without the handshake."""
    for handshake in (True, False):
        first = association(tsn=500_000, path=1)[0 if handshake else 4 :]
        second = association(tsn=3_000_000_000, path=2)[0 if handshake else 4 :]
        data = [
            packet
            for n in range(5)
            for path, tsn in ((1, 500_000), (2, 3_000_000_000))
            for packet in (
                sctp(22, data_chunk(tsn + n), path=path),
                sctp(11, sack_chunk(tsn + n), path=path, back=True),
            )
        ]
        mixed = [packet for pair in zip(first, second, strict=True) for packet in pair]
        capture = read(tmp_path, pcap(timed([*mixed, *data])))
        assert len(capture.flows) == 2
        assert capture.flow_paths["new_bytes"].tolist() == [[500, 0], [500, 0]]
        assert not capture.chunks["is_retransmission"].any()


def test_data_sent_again_without_its_mapping_is_mapped(tmp_path: Path) -> None:
    offer = (30, b"\0\x81" + b"k" * 8)

    def dss(dsn: int, seq: int, length: int) -> tuple[int, bytes]:
        return (30, struct.pack("!BBQIHH", 0x20, 0x0C, dsn, seq, length, 0))

    packets = [
        segment(ISN, flags="S", options=[offer]),
        segment(7000, back=True, flags="SA", ack=ISN + 1, options=[offer]),
        segment(ISN + 1, 100, ack=7001, options=[dss(5000, 1, 100)]),
        segment(ISN + 101, 100, ack=7001, options=[dss(9000, 101, 100)]),
        segment(ISN + 201, 100, ack=7001, options=[dss(9100, 201, 100)]),
        segment(ISN + 51, 50, ack=7001),
        segment(ISN + 101, 150, ack=7001),
        segment(ISN + 301, 100, ack=7001),
    ]
    rows = read(tmp_path, pcap(every_ms(packets))).segments
    mapped = (rows["options"] & 64 != 0).tolist()
    assert mapped == [False, False, True, True, True, True, True, False]
    assert rows["dsn"][2:7].tolist() == [5000, 9000, 9100, 5050, 9000]


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20), st.integers(0, 1 << 40)), min_size=1, max_size=30))
def test_mappings_are_as_a_list_of_bytes_has_them(
    tmp_path_factory: pytest.TempPathFactory, mappings: list[tuple[int, int, int]]
) -> None:
    """What was mapped first stays."""
    offer = (30, b"\0\x81" + b"k" * 8)
    packets = [
        segment(ISN, flags="S", options=[offer]),
        segment(7000, back=True, flags="SA", ack=ISN + 1, options=[offer]),
    ]
    of_byte: dict[int, int] = {}
    expected = []
    for seq, length, dsn in mappings:
        option = (30, struct.pack("!BBQIHH", 0x20, 0x0C, dsn, 1 + seq, length, 0))
        packets.append(segment(ISN + 1 + seq, length, ack=7001, options=[option]))
        for place in range(length):
            of_byte.setdefault(seq + place, dsn + place)
        expected.append(of_byte[seq])
    rows = read(tmp_path_factory.mktemp("maps"), pcap(every_ms(packets))).segments
    assert rows["dsn"][2:].tolist() == expected


def test_connections_that_one_host_refused_are_one_finding(tmp_path: Path) -> None:
    packets = []
    for port in range(1, 21):
        ends = [IP(src="10.0.0.1", dst="10.0.0.2"), IP(src="10.0.0.2", dst="10.0.0.1")]
        packets.append(ether(ends[0] / TCP(sport=4000 + port, dport=port, seq=7, flags="S")))
        packets.append(ether(ends[1] / TCP(sport=port, dport=4000 + port, ack=8, flags="RA")))
    found = summary(tmp_path, pcap(every_ms(packets)))
    assert found.findings == ("20 of 20 connections were refused by 10.0.0.2 (ports 1 to 20)",)
    assert all(connection.facts["refused"] for connection in found.connections)


def test_slow_answers_are_said(tmp_path: Path) -> None:
    slow = Story().handshake(900)
    found = summary(tmp_path, pcap(slow.data(950, 1).ack(1000, 1 + MSS).packets))
    assert "the answer to the SYN took 900 ms" in found.findings
    story = Story().handshake(40).data(50, 1)
    packets = [*story.packets, (T + 1890 * MS, segment(7001, 500, back=True, ack=ISN + 1 + MSS, window=65535))]
    found = summary(tmp_path, pcap(packets))
    totals = found.connections[0].totals
    assert totals["response_after_s"] == pytest.approx(1.84)
    assert [text for text in found.findings if "came 1.84 s after its request, 1.8 s longer" in text], found.findings
