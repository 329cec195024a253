"""Flaws of captures that others made, each in a capture of our own making; tshark is the oracle where it can be."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

import pytest
from netwarp.captures import FileSummary, summarise_points
from netwarp.captures.tcp import analyze_tcp
from scapy.layers.inet import IP, TCP
from scapy.packet import Packet
from support.captures import ISN, T, chunk, data_chunk, ether, pcap, read, sctp, segment, timed
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


def summary(tmp_path: Path, data: bytes) -> FileSummary:
    (found,) = summarise_points([[written(tmp_path, data)]])
    return found


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
    assert (flow["base"].tolist(), flow["base_known"].tolist()) == ([ISN, 7000], [True, True])
    assert flow["window_shift"].tolist() == [7, 7]
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


def test_a_lost_length_is_taken_from_the_ip_header(tmp_path: Path) -> None:
    """A converter that cut at 68 bytes and wrote 68 as the length on the wire."""
    sizes = [0, 1000, 1000, 0, 500]
    tcp = [segment(1 + sum(sizes[:n]), size) for n, size in enumerate(sizes)]
    capture = read(tmp_path, pcap([(T + n * MS, packet[:68]) for n, packet in enumerate(tcp)]))
    assert capture.segments["payload_bytes"].tolist() == sizes
    assert capture.sources["malformed"].tolist() == [0]
    assert capture.sources["truncated"].tolist() == [3]
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


def test_pure_acks_are_those_that_acknowledge_the_data(tmp_path: Path) -> None:
    story = Story().handshake()
    for n in range(5):
        story.data(41 + n, 1 + n * MSS).ack(81 + n, 1 + (n + 1) * MSS)
    connection = analyze_tcp(story.capture(tmp_path), 0)
    assert connection.totals["pure_ack_packets"] == 1  # of the handshake
    assert connection.totals["pure_acks_back"] == 5


def test_the_window_of_a_fin_closes_nothing(tmp_path: Path) -> None:
    story = Story().handshake().data(41, 1).ack(81, 1 + MSS, window=0, flags="FA")
    totals = analyze_tcp(story.capture(tmp_path), 0).totals
    assert (totals["zero_windows"], totals["zero_window_packets"]) == (0, 0)


def test_no_timeout_is_shorter_than_a_round_trip(tmp_path: Path) -> None:
    """Every segment twice, 6 us apart: the second of them is no timer's."""
    story = Story(stamps=False).handshake()
    for n in range(20):
        story.data(50 + n * 50, 1 + n * MSS).data(50.006 + n * 50, 1 + n * MSS).ack(90 + n * 50, 1 + (n + 1) * MSS)
    totals = analyze_tcp(story.capture(tmp_path), 0).totals
    assert totals["retransmitted_packets"] == 20
    assert totals["timeouts"] == 0


def test_an_unanswered_syn_is_no_handshake(tmp_path: Path) -> None:
    found = summary(tmp_path, pcap(every_ms([segment(ISN, flags="S"), segment(ISN, flags="S")])))
    assert not found.connections[0].facts["handshake_seen"]
    story = Story().handshake()
    assert summary(tmp_path, pcap(story.packets)).connections[0].facts["handshake_seen"]
