"""The C core and packets: link layers, IP headers, truncation, lengths that lie."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from netwarp.captures.native import NONE, UNKNOWN
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrFragment, IPv6ExtHdrHopByHop, IPv6ExtHdrRouting, PadN
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, Dot1AD, Dot1Q, Ether
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
    sctp,
    tcp_transfer,
    timed,
)


def ppp(ip: IP | IPv6) -> bytes:
    """PPPoE's session header and PPP's protocol."""
    return struct.pack("!BBHHH", 0x11, 0, 1, len(ip) + 2, 0x0021 if ip.version == 4 else 0x0057)


FRAMES = {
    "ethernet": (1, lambda ip: Ether() / ip),
    "vlan": (1, lambda ip: Ether() / Dot1Q(vlan=5) / ip),
    "qinq": (1, lambda ip: Ether() / Dot1AD(vlan=5) / Dot1Q(vlan=6) / ip),
    "old qinq": (1, lambda ip: Ether(type=0x9100) / Dot1Q(vlan=5) / ip),
    "three tags": (1, lambda ip: Ether() / Dot1AD(vlan=5) / Dot1AD(vlan=6) / Dot1Q(vlan=7) / ip),
    "mpls": (1, lambda ip: bytes(Ether(type=0x8847)) + bytes.fromhex("0001003f0002013f") + bytes(ip)),
    "pppoe": (1, lambda ip: bytes(Ether(type=0x8864)) + ppp(ip) + bytes(ip)),
    "vlan on sll": (
        113,
        lambda ip: b"\0\0\0\1\0\6" + b"\0" * 8 + struct.pack("!HHH", 0x8100, 7, ip.overload_type) + bytes(ip),
    ),
    "raw": (101, lambda ip: ip),
    "raw of BSD": (12, lambda ip: ip),
    "raw of OpenBSD": (14, lambda ip: ip),
    "raw of its version": (228, lambda ip: ip),
    "raw of the other version": (229, lambda ip: ip),
    "sll": (113, lambda ip: b"\0\0\0\1\0\6" + b"\0" * 8 + struct.pack("!H", ip.overload_type) + bytes(ip)),
    "sll2": (276, lambda ip: struct.pack("!H", ip.overload_type) + b"\0" * 18 + bytes(ip)),
    "null": (0, lambda ip: b"\2\0\0\0" + bytes(ip)),
    "null of the other order": (0, lambda ip: b"\0\0\0\x1e" + bytes(ip)),
    "loop": (108, lambda ip: b"\0\0\0\2" + bytes(ip)),
}
VLANS = ("vlan", "qinq", "old qinq", "three tags", "vlan on sll")
HEADERS = {
    "ipv4": lambda: IP(src="10.0.0.1", dst="10.0.0.2"),
    "ipv4 options": lambda: IP(src="10.0.0.1", dst="10.0.0.2", options=b"\x94\x04\0\0\x01\x01\0\0"),
    "ipv6": lambda: IPv6(src="fd00::1", dst="fd00::2"),
    "ipv6 extensions": lambda: (
        IPv6(src="fd00::1", dst="fd00::2")
        / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 12)])
        / IPv6ExtHdrRouting(addresses=["fd00::9"])
        / IPv6ExtHdrDestOpt(options=[PadN(optdata=b"\0" * 4)])
    ),
    "ipv6 authentication": lambda: (
        IPv6(src="fd00::1", dst="fd00::2") / AH(nh=6, payloadlen=4, spi=1, seq=1, icv=b"\0" * 12)
    ),
    "ipv6 atomic fragment": lambda: IPv6(src="fd00::1", dst="fd00::2") / IPv6ExtHdrFragment(id=7),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("frame", FRAMES)
def test_link_layers_and_ip_headers(tmp_path: Path, frame: str, header: str) -> None:
    link_type, wrap = FRAMES[frame]
    if "ipv4" in header and frame == "null of the other order":
        pytest.skip("0x1e is a family of IPv6")
    ip = HEADERS[header]() / TCP(sport=1000, dport=80, seq=5, flags="A") / (b"x" * 33)
    ip.overload_type = 0x0800 if header.startswith("ipv4") else 0x86DD
    data = bytes(wrap(ip)) + (b"\0" * 7 if frame == "ethernet" else b"")  # Ethernet pads short frames
    capture = read(tmp_path, pcap([(T, data)], link_type=link_type))
    packet = capture.packets[0]
    assert capture.segments["payload_bytes"].tolist() == [33]
    has(packet, ip_bytes=len(bytes(ip)), frame_bytes=len(data), protocol=6)
    assert bool(packet["marks"] & 8) == (frame in VLANS)
    assert capture.address(0, 0) == ("10.0.0.1" if header.startswith("ipv4") else "fd00::1")
    assert capture.sources["ipv6" if header.startswith("ipv6") else "ipv4"].tolist() == [1]
    assert capture.sources["malformed"].tolist() == [0]
    assert capture.sources["fragments"].tolist() == [0]  # an atomic one is none (RFC 6946)


def test_sctp_in_udp(tmp_path: Path) -> None:
    inner = bytes(Ether(sctp(7, data_chunk(1)))[IP].payload)
    frame = ether(IP(src="10.0.0.1", dst="10.0.0.2") / UDP(sport=9899, dport=9899) / inner)
    capture = read(tmp_path, pcap([(T, frame)]))
    assert capture.chunks["user_bytes"].tolist() == [100]
    has(capture.packets, marks=[16], protocol=[132])


def test_packets_that_are_not_analysed_are_counted(tmp_path: Path) -> None:
    fragments = [IP(dst="10.0.0.2", flags="MF") / TCP(), IP(dst="10.0.0.2", frag=100) / (b"x" * 50)]
    frames = [ether(fragment) for fragment in fragments]
    frames.append(ether(IPv6(dst="fd00::2") / IPv6ExtHdrFragment(m=1) / TCP()))
    frames += [ether(ARP()), ether(IP(dst="10.0.0.2") / UDP()), bytes(Ether(type=0x88CC)) + b"lldp"]
    capture = read(tmp_path, pcap([(T, frame) for frame in frames]))
    source = capture.sources[0]
    assert [int(source[name]) for name in ("fragments", "arp", "ipv4", "ipv6", "other")] == [3, 1, 3, 1, 1]
    assert len(capture.packets) == 6
    assert len(capture.flows) == 0
    assert source["joined"] == 0
    assert capture.packets["path"].tolist().count(NONE) == 2


@pytest.mark.parametrize(
    ("link_type", "data"),
    [
        (0, b"\7\0\0\0" + b"\x45" * 60),  # a family that is not IP
        (108, b"\0\0\0"),
        (1, bytes(Ether(type=0x8847)) + b"\0\0\0\0" * 9),  # labels without a bottom
        (1, bytes(Ether(type=0x8864)) + b"\x11\0\0\1\0\2\xc0\x21" + b"\x45" * 30),  # LCP
        (1, bytes(Ether(type=0x8864)) + b"\x11"),
        (1, bytes(Ether() / Dot1Q(type=0x8100)) + b"\0\0"),
        (113, b"\0" * 15),
        (276, b"\x08\0" + b"\0" * 17),
        (101, b""),
        (101, b"\x75" + b"\0" * 40),
    ],
)
def test_frames_without_an_ip_packet_are_counted(tmp_path: Path, link_type: int, data: bytes) -> None:
    source = read(tmp_path, pcap([(T, data)], link_type=link_type)).sources[0]
    assert [int(source[name]) for name in ("packets", "other", "ipv4", "ipv6", "malformed")] == [1, 1, 0, 0, 0]


def test_truncated_packets_are_used_as_far_as_they_go(tmp_path: Path) -> None:
    whole = sctp(22, data_chunk(ISN, 20), data_chunk(ISN + 1, 60), data_chunk(ISN + 2, 300))
    frames = [
        (T, whole[:size], len(whole)) for size in (14 + 20 + 12 + 36 + 16, 14 + 20 + 12 + 36 + 8, 14 + 20 + 12 + 2)
    ]
    capture = read(tmp_path, pcap([*timed(association()), *frames]))
    data = capture.chunks[capture.chunks["type"] == 0]
    has(
        data,
        packet=[4, 4, 5, 5],
        tsn=[0, 1, 0, UNKNOWN],
        user_bytes=[20, 60, 20, 60],
        truncated=[False, True, False, True],
        is_retransmission=[False, False, True, False],
    )
    has(capture.sources, truncated=[3], malformed=[0])


def test_tcp_of_a_short_snaplen_has_all_its_lengths(tmp_path: Path) -> None:
    frames = [(time, packet[:54], len(packet)) for time, packet in tcp_transfer()]
    segments = read(tmp_path, pcap(frames)).segments
    assert segments["payload_bytes"].tolist() == [0, 0, 0, 400, 400, 400, 0, 400, 0, 0]
    assert segments["is_retransmission"].sum() == 1


LIES = {
    "chunk length 0": sctp(22, chunk(0, b"x" * 20, length=0), data_chunk(ISN)),
    "chunk length 3": sctp(22, chunk(0, b"x" * 20, length=3)),
    "chunk longer than what is left": sctp(22, chunk(9, b"x" * 20), chunk(9, b"x" * 20, length=40)),
    "chunk longer than the packet": sctp(22, chunk(0, b"x" * 20, length=2000)),
    "DATA shorter than its header": sctp(22, chunk(0, b"x" * 8)),
    "SACK that claims more blocks than it holds": sctp(11, chunk(3, struct.pack("!IIHH", 1, 2, 999, 999)), back=True),
    "INIT parameter of length 1": sctp(0, init_chunk(9, 9, parameters=struct.pack("!HHI", 5, 1, 0))),
    "IP longer than its frame": ether(IP(dst="10.0.0.2", len=1400) / TCP() / b"x"),
    "IP header longer than the packet": ether(IP(dst="10.0.0.2", ihl=15, len=40) / TCP()),
    "IP header of 4 bytes": ether(IP(dst="10.0.0.2", ihl=1) / TCP()),
    "TCP header longer than the packet": ether(IP(dst="10.0.0.2") / TCP(dataofs=15)),
    "TCP header of 4 bytes": ether(IP(dst="10.0.0.2") / TCP(dataofs=1) / (b"x" * 40)),
    "TCP option of length 0": ether(IP(dst="10.0.0.2", len=48) / TCP(dataofs=7) / b"\x05\0\0\0\0\0\0\0"),
    "TCP option beyond the header": ether(IP(dst="10.0.0.2", len=44) / TCP(dataofs=6) / b"\x05\x22\0\0"),
    "IPv6 extension beyond the packet": ether(IPv6(dst="fd00::2", nh=0, plen=8) / (b"\x06\xff" + b"\0" * 6)),
}


@pytest.mark.parametrize("lie", LIES)
def test_lengths_that_lie(tmp_path: Path, lie: str) -> None:
    capture = read(
        tmp_path, pcap([*timed(association()), (T + 9000, LIES[lie]), (T + 9999, sctp(22, data_chunk(ISN)))])
    )
    assert capture.sources["malformed"].tolist() == [1]
    assert capture.packets["marks"].tolist()[4] & 2
    # and what follows is read as if nothing had been
    assert capture.chunks["tsn"].tolist()[-1] == 0
    assert not capture.chunks["is_retransmission"].any()
