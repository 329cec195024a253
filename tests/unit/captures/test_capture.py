"""The C core on packets put together by hand: connections, associations, what was sent before."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

from netwarp.captures import read_captures
from netwarp.captures.native import UNKNOWN, CoreHandle, layouts
from scapy.layers.inet import ICMP, IP, TCP, UDP, fragment
from support.capture_bytes import assert_same_tables
from support.captures import (
    ISN,
    T,
    association,
    chunk,
    data_chunk,
    ether,
    has,
    init_chunk,
    pcap,
    read,
    recorded,
    sack_chunk,
    sctp,
    segment,
    summary,
    tcp_transfer,
    timed,
)
from support.checkout import ROOT


def test_sctp_chunks_over_two_paths(tmp_path: Path) -> None:
    packets = [
        *association(),
        sctp(22, data_chunk(ISN, 100), data_chunk(ISN + 1, 57, stream=3, ssn=9)),
        sctp(22, data_chunk(ISN + 2)),
        sctp(11, sack_chunk(ISN, [(2, 2)], [ISN, ISN]), back=True),
        sctp(22, data_chunk(ISN + 1, 57, stream=3, ssn=9), path=2),
        sctp(22, data_chunk(ISN + 2)),
        sctp(22, chunk(4, b"info"), path=2),
        sctp(11, chunk(5, b"info"), path=2, back=True),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    flow = capture.flows[0]
    has(flow, tag=[11, 22], base=[ISN, 9000], tag_known=[True, True], base_known=[True, True])
    data = capture.chunks[capture.chunks["type"] == 0]
    has(
        data,
        tsn=[0, 1, 2, 1, 2],
        user_bytes=[100, 57, 100, 57, 100],
        length=[116, 73, 116, 73, 116],
        stream=[0, 3, 0, 3, 0],
        message=[0, 9, 0, 9, 0],
        is_retransmission=[False, False, False, True, True],
        on_other_path=[False, False, False, True, False],
    )
    assert capture.packets["chunks"].tolist() == [1, 1, 1, 1, 2, 1, 1, 1, 1, 1, 1]
    assert capture.packets["new_bytes"].tolist()[4:] == [157, 100, 0, 0, 0, 0, 0]
    assert capture.packets["on_other_path"].tolist()[7:9] == [True, False]
    sack = capture.sacks[0]
    assert (sack["cumulative_tsn"], sack["gap_blocks"], sack["duplicate_tsns"], sack["direction"]) == (0, 1, 2, 1)
    assert capture.blocks[["start", "end", "kind"]].tolist() == [(2, 3, 0), (0, 1, 1), (0, 1, 1)]
    by_path = {int(row["path"]): row for row in capture.flow_paths}
    assert by_path[0]["retransmitted_chunks"].tolist() == [1, 0]
    has(by_path[1], retransmitted_chunks=[1, 0], heartbeats=[1, 0], heartbeat_acks=[0, 1])
    assert by_path[0]["sacks"].tolist() == [0, 1]


def test_init_parameters(tmp_path: Path) -> None:
    parameters = struct.pack("!HH4s", 5, 8, bytes([10, 2, 0, 1])) + struct.pack("!HHH", 0x8000, 6, 1) + b"\0\0"
    parameters += struct.pack("!HH16s", 6, 20, b"\xfd" + b"\0" * 14 + b"\1")
    capture = read(tmp_path, pcap([(T, sctp(0, init_chunk(11, 5, parameters=parameters)))]))
    init = capture.inits[0]
    assert [int(init[name]) for name in ("tag", "a_rwnd_bytes", "streams_out", "streams_in", "initial_tsn")] == [
        11, 100_000, 10, 5, 5,
    ]  # fmt: skip
    assert init["addresses"] == 2
    assert capture.addresses["family"].tolist() == [4, 6]
    assert bytes(capture.addresses["address"][0])[-4:] == bytes([10, 2, 0, 1])


def test_abort_with_the_reflected_tag_belongs_to_its_association(tmp_path: Path) -> None:
    """T bit: whoever has no association sends back the tag it was sent (RFC 9260 8.5.1)."""
    packets = [*association(), sctp(22, data_chunk(ISN)), sctp(22, chunk(6, flags=1), back=True)]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    assert capture.chunks["direction"].tolist()[-1] == 1
    assert capture.flows["ended"][0].tolist() == [False, True]


def test_a_capture_begun_in_the_middle(tmp_path: Path) -> None:
    packets = [
        sctp(22, data_chunk(500)),
        sctp(11, sack_chunk(500), back=True),
        sctp(22, data_chunk(499), path=2),
        sctp(11, sack_chunk(501), path=2, back=True),
    ]
    capture = read(tmp_path, pcap(timed(packets)))
    assert len(capture.flows) == 1
    assert capture.flows["base_known"][0].tolist() == [False, False]
    assert capture.chunks["tsn"].tolist() == [0, 0, -1, 1]
    assert not capture.chunks["is_retransmission"].any()


def test_two_associations_of_one_port_pair_are_distinguished_by_tag(tmp_path: Path) -> None:
    first, second = association(tag=11, peer=22), association(tag=33, peer=44, path=2)
    packets = [*first, *second, sctp(22, data_chunk(ISN)), sctp(44, data_chunk(ISN), path=2)]
    capture = read(tmp_path, pcap(timed(packets)))
    assert capture.packets["flow"].tolist() == [0] * 4 + [1] * 4 + [0, 1]
    assert not capture.chunks["is_retransmission"].any()


def test_a_new_connection_on_used_ports(tmp_path: Path) -> None:
    packets = [*(packet for _, packet in tcp_transfer()), segment(9999, flags="S"), segment(10_000, 10)]
    capture = read(tmp_path, pcap(timed(packets)))
    assert capture.packets["flow"].tolist() == [0] * 10 + [1] * 2
    assert capture.flows["base"][1].tolist()[0] == 9999


def test_syn_sent_again_is_a_retransmission_of_the_same_connection(tmp_path: Path) -> None:
    capture = read(tmp_path, pcap(timed([segment(9, flags="S"), segment(9, flags="S")])))
    assert len(capture.flows) == 1
    assert capture.segments["is_retransmission"].tolist() == [False, True]


def test_windows_are_scaled_only_where_both_sides_offered_it(tmp_path: Path) -> None:
    """RFC 7323 2.2; the windows of SYNs themselves are never scaled."""
    offer = {"options": [("WScale", 7)]}
    for mine, theirs, scaled in ((offer, offer, 128), (offer, {}, 1), ({}, offer, 1), ({}, {}, 1)):
        packets = [
            segment(9, flags="S", window=11, **mine),
            segment(5, back=True, flags="SA", ack=10, window=12, **theirs),
            segment(10, ack=6, window=13),
            segment(6, back=True, ack=10, window=14),
        ]
        capture = read(tmp_path, pcap(timed(packets)))
        assert capture.segments["window_bytes"].tolist() == [11, 12, 13 * scaled, 14 * scaled]


def test_tcp_partial_overlap_counts_only_new_bytes(tmp_path: Path) -> None:
    packets = [
        segment(0, flags="S"), segment(1, 100), segment(301, 100), segment(51, 300), segment(1, 400),
        segment(201, 400),
    ]  # fmt: skip
    segments = read(tmp_path, pcap(timed(packets))).segments
    has(segments, new_bytes=[0, 100, 100, 200, 0, 200], is_retransmission=[False, False, False, True, True, True])


def test_data_after_the_handshake_was_missed(tmp_path: Path) -> None:
    packets = [segment(ISN, 100, ack=50), segment(50, 30, back=True, ack=ISN + 100), segment(ISN - 100, 100, ack=50)]
    segments = read(tmp_path, pcap(timed(packets))).segments
    has(segments, seq=[1, 1, -99], ack=[1, 101, 1], window_bytes=[UNKNOWN] * 3, new_bytes=[100, 30, 100])


def test_gap_blocks_beyond_the_window(tmp_path: Path) -> None:
    packets = [*association(), sctp(11, sack_chunk(ISN, [(65535, 65535), (9, 3)]), back=True)]
    capture = read(tmp_path, pcap(timed(packets)))
    assert capture.blocks[["start", "end"]].tolist() == [(65535, 65536), (9, 4)]


def test_equal_captures_have_equal_tables() -> None:
    files = recorded("sctp", "a", ["p1", "p2"])
    assert_same_tables(read_captures(files), read_captures(files), layouts())


def test_reading_in_parts_gives_the_same_rows_in_constant_memory() -> None:
    files = recorded("tcp", "a", ["p1"])
    whole = read_captures(files)
    handle = CoreHandle(files, ["segments"])
    seqs: list[int] = []
    more = True
    while more:
        more = handle.read(100)
        rows = handle.rows("segments")
        assert len(rows) <= 100
        seqs += rows["seq"].tolist()
        handle.clear()
    assert seqs == whole.segments["seq"].tolist()
    assert handle.rows("flow_paths")["new_bytes"].tolist() == whole.flow_paths["new_bytes"].tolist()
    assert len(handle.rows("packets")) == 0


def test_rows_outlive_the_handle() -> None:
    segments = read_captures(recorded("tcp", "a", ["p1"])).segments
    assert int(segments["new_bytes"].sum()) == 507_904
    assert not segments.flags.writeable


def test_summary_of_any_capture(tmp_path: Path) -> None:
    file = summary(tmp_path, pcap([*tcp_transfer(), *timed([sctp(1, data_chunk(1))])])[:-1]).as_json()
    assert [flow["protocol"] for flow in file["flows"]] == ["tcp"]
    flow = file["flows"][0]
    assert (flow["from"], flow["to"]) == ("10.0.0.1:1000", "10.0.0.2:80")
    has(flow["directions"][0], new_bytes=1200, retransmitted_packets=1, payload_bytes=1600)
    assert file["cut_off"]
    assert "cut off" in file["notes"][0]


def test_reversed_path_names_the_initiator_first(tmp_path: Path) -> None:
    """The address pair was first seen the other way round, by another connection."""
    other = ether(IP(src="10.0.0.2", dst="10.0.0.1") / TCP(sport=5, dport=6, flags="S"))
    flow = summary(tmp_path, [(T - 1, other), *tcp_transfer()]).as_json()["flows"][0]
    assert flow["from"] == "10.0.0.1:1000"
    assert flow["paths"][0]["addresses"] == ["10.0.0.1", "10.0.0.2"]


def test_a_missing_library_says_how_to_build_it(tmp_path: Path) -> None:
    code = "from netwarp.captures import read_captures; read_captures(['x'])"
    for library in ("", "not a library"):
        path = tmp_path / "core.so"
        if library:
            path.write_text(library)
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "NETWARP_ANALYZER_LIBRARY": str(path), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 1
        assert "CaptureError: the analyser's core cannot be loaded" in done.stderr
        assert "make -C apps" in done.stderr


def test_bytes_that_are_no_chunk_were_not_cut_off(tmp_path: Path) -> None:
    """Nothing lies beyond the snaplen of a packet that is there whole, whatever its length."""
    packet = sctp(22, data_chunk(ISN), b"\1\2")
    capture = read(tmp_path, pcap(timed([*association(), packet])))
    assert capture.sources["unseen_bytes"].tolist() == [0]
    assert capture.flow_paths["data_chunks"].tolist() == [[1, 0]]
    cut = [(T, packet[:-104], len(packet))]
    assert read(tmp_path, pcap([*timed(association()), *cut])).sources["unseen_bytes"].tolist() == [2]


def test_every_packet_of_no_connection_is_in_a_conversation(tmp_path: Path) -> None:
    """By ports for UDP, by addresses for the rest; a fragmented datagram counts with all its fragments, once whole."""
    to, back = IP(src="10.0.0.1", dst="10.0.0.2", id=1), IP(src="10.0.0.2", dst="10.0.0.1", id=2)
    large = fragment(to / UDP(sport=7, dport=8) / bytes(4000))
    packets = [
        to / UDP(sport=1000, dport=53) / bytes(72),
        back / UDP(sport=53, dport=1000) / bytes(172),
        to / UDP(sport=1001, dport=53) / bytes(72),
        back / ICMP(),
        *large,
        fragment(back / UDP(sport=9, dport=9) / bytes(4000))[0],  # the rest never comes
    ]
    found = summary(tmp_path, timed([*(packet for _, packet in tcp_transfer()), *map(ether, packets)])).as_json()
    udp, icmp = found["other_traffic"]
    assert (udp["protocol"], udp["packets"], udp["conversations"]) == ("UDP", 3 + len(large), 3)
    assert (icmp["protocol"], icmp["packets"], icmp["ip_bytes"], icmp["conversations"]) == ("ICMP", 1, 28, 1)
    by_ends = {tuple(one["ends"]): (one["packets"], one["ip_bytes"]) for one in udp["largest"]}
    assert by_ends["10.0.0.1:1000", "10.0.0.2:53"] == ([1, 1], [100, 200])
    assert by_ends["10.0.0.1:1001", "10.0.0.2:53"] == ([1, 0], [100, 0])
    assert by_ends["10.0.0.1:7", "10.0.0.2:8"] == ([len(large), 0], [4008 + 20 * len(large), 0])
    in_flows = sum(sum(d["packets"] for d in flow["directions"]) for flow in found["flows"])
    assert in_flows + udp["packets"] + icmp["packets"] + 1 == found["packets"]
