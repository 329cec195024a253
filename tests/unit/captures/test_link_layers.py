"""Link layers and tunnels: every one of the fuzzer's seeds is read as the bare IP packet is, and as tshark reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fuzz.seeds import TUNNELS, WRAPPED, tunnelled, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.captures import Capture, read_captures, summarise_points
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import IPv6
from scapy.packet import Packet
from support.captures import T, ether, pcap, read
from support.tshark import tshark

V4 = {"src": "10.0.0.1", "dst": "10.0.0.2"}
V6 = {"src": "fd00::1", "dst": "fd00::2"}


def segments(payload: int = 90, count: int = 3, *, v6: bool = False) -> list[bytes]:
    """IP packets of a connection, each with new payload."""
    ip = IPv6(**V6) if v6 else IP(**V4)
    numbers = [1 + n * payload for n in range(count)]
    return [bytes(ip / TCP(sport=1000, dport=80, seq=seq, flags="A") / (b"x" * payload)) for seq in numbers]


def same_connection(capture: Capture, payload: int, count: int = 3) -> None:
    assert len(capture.flows) == 1
    assert capture.flows["port"].tolist() == [[1000, 80]]
    assert capture.segments["payload_bytes"].tolist() == [payload] * count
    assert capture.flow_paths["new_bytes"].tolist() == [[payload * count, 0]]
    assert capture.sources["malformed"].tolist() == [0]
    assert {capture.address(int(capture.flows["path"][0]), end) for end in (0, 1)} in ({*V4.values()}, {*V6.values()})


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("link", WRAPPED)
def test_a_link_header_hides_nothing(link: str, v6: bool, tmp_path: Path) -> None:
    frames = [wrapped(link, ip) for ip in segments(v6=v6)]
    data = pcap([(T + n, frame) for n, (_, frame) in enumerate(frames)], link_type=frames[0][0])
    same_connection(read(tmp_path, data), 90)


def test_tshark_reads_the_link_headers_alike(tmp_path: Path) -> None:
    for link in WRAPPED:
        path = tmp_path / f"{link}.pcap"
        link_type, frame = wrapped(link, segments()[0])
        check = b"\0" * 4 if link == "fabricpath" else b""  # tshark takes the last four bytes of such a frame for it
        path.write_bytes(pcap([(T, frame + check)], link_type=link_type))
        assert tshark([path], tmp_path, ["tcp.len"])[0][0][0] == "90", link


@settings(deadline=None)
@given(payload=st.integers(1, 400), v6=st.booleans(), link=st.sampled_from(WRAPPED), cut=st.integers(0, 300))
def test_a_snaplen_changes_no_length(tmp_path_factory: pytest.TempPathFactory, payload: int, v6: bool, link: str,
                                     cut: int) -> None:  # fmt: skip
    link_type, frame = wrapped(link, segments(payload, 1, v6=v6)[0])
    there = max(cut, len(frame) - payload)
    path = tmp_path_factory.mktemp("cut") / "one.pcap"
    path.write_bytes(pcap([(T, frame[:there], len(frame))], link_type=link_type))
    capture = read_captures([path])
    assert capture.segments["payload_bytes"].tolist() == [payload]


@pytest.mark.parametrize("v6", [False, True])
@pytest.mark.parametrize("tunnel", TUNNELS)
def test_a_tunnel_hides_nothing(tunnel: str, v6: bool, tmp_path: Path) -> None:
    inner = segments(v6=v6)
    frames = [ether(tunnelled(tunnel, ip)) for ip in inner]
    capture = read(tmp_path, pcap([(T + n, frame) for n, frame in enumerate(frames)]))
    same_connection(capture, 90)
    assert capture.packets["ip_bytes"].tolist() == [len(ip) for ip in inner]
    assert capture.packets["frame_bytes"].tolist() == [len(frame) for frame in frames]
    (row,) = capture.tunnels
    assert row["packets"].tolist() == [3, 0]
    assert row["inner_bytes"].tolist() == [sum(map(len, inner)), 0]
    assert row["outer_bytes"].tolist() == [sum(len(frame) - 14 for frame in frames), 0]
    outer = ("fd01::1", "fd01::2") if tunnel == "ip-in-v6" else ("192.0.2.1", "192.0.2.2")
    assert tuple(capture.address(int(row["path"]), end) for end in (0, 1)) == outer
    path = tmp_path / "0.pcap"
    (found,) = summarise_points([[path]])
    assert any("3 packets are in tunnels" in note and outer[0] in note for note in found.notes), found.notes
    assert found.as_json()["tunnels"][0]["packets"] == [3, 0]


@settings(deadline=None)
@given(
    payload=st.integers(1, 200),
    depth=st.lists(st.sampled_from([name for name in TUNNELS if name != "ah"]), min_size=1, max_size=4),
)
def test_tunnels_in_tunnels(tmp_path_factory: pytest.TempPathFactory, payload: int, depth: list[str]) -> None:
    packet = segments(payload, 1)[0]
    for tunnel in depth:
        packet = bytes(tunnelled(tunnel, packet))
    path = tmp_path_factory.mktemp("deep") / "one.pcap"
    path.write_bytes(pcap([(T, packet)], link_type=101))
    capture = read_captures([path])
    same_connection(capture, payload, 1)
    assert capture.tunnels["outer_bytes"].tolist() == [[len(packet), 0]]


def test_what_holds_no_ip_packet_is_no_tunnel(tmp_path: Path) -> None:
    for port in (2152, 4789, 6081):
        udp: Packet = IP(src="192.0.2.1", dst="192.0.2.2", proto=17) / (
            b"\0\x09"
            + port.to_bytes(2, "big")
            + b"\0\x30\0\0"
            + b"\x30\xff\0\x20\0\0\0\1"
            + b"E\0\xff\xff"
            + b"\0" * 28
        )
        capture = read(tmp_path, pcap([(T, ether(udp))]))
        assert len(capture.tunnels) == 0
        assert capture.sources[["ipv4", "malformed", "tunnelled"]].tolist() == [(1, 0, 0)]


def test_a_datagram_of_fragments_may_carry_a_tunnel(tmp_path: Path) -> None:
    whole = bytes(tunnelled("gre", segments(200, 1)[0]))
    body = whole[20:]
    ends = {"src": "192.0.2.1", "dst": "192.0.2.2", "proto": 47, "id": 7}
    frames = [ether(IP(**ends, flags=1) / body[:80]), ether(IP(**ends, frag=10) / body[80:])]
    capture = read(tmp_path, pcap([(T + n, frame) for n, frame in enumerate(frames)]))
    same_connection(capture, 200, 1)
    assert capture.packets["flow"].tolist() == [0xFFFFFFFF, 0]
