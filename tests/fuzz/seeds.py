"""The fuzzer's seeds: every odd header combination, made by scapy. `python tests/fuzz/seeds.py DIRECTORY` writes them.

A seed is one byte that chooses how it is read (apps/analyzer/fuzz.c) and a capture.
tests/unit/captures/test_hostile_captures.py replays all of them, and mutations of them, through the sanitised build.
"""

from __future__ import annotations

import bz2
import gzip
import itertools
import lzma
import random
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import zstandard
from scapy.layers.inet import IP, TCP, UDP, IPOption_RR, IPOption_Timestamp
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    Jumbo,
    PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import ARP, CookedLinux, CookedLinuxV2, Dot1AD, Dot1Q, Ether, Loopback
from scapy.layers.sctp import (
    SCTP,
    SCTPChunkAbort,
    SCTPChunkCookieAck,
    SCTPChunkCookieEcho,
    SCTPChunkData,
    SCTPChunkError,
    SCTPChunkHeartbeatAck,
    SCTPChunkHeartbeatReq,
    SCTPChunkInit,
    SCTPChunkInitAck,
    SCTPChunkParamIPv4Addr,
    SCTPChunkParamIPv6Addr,
    SCTPChunkParamStateCookie,
    SCTPChunkSACK,
    SCTPChunkShutdown,
    SCTPChunkShutdownAck,
    SCTPChunkShutdownComplete,
)
from scapy.packet import Packet, Raw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from support.captures import chunk, lz4_frame, pcap
from support.pcapng_kit import Writer

ENDS = {"src": "02:00:00:00:00:01", "dst": "02:00:00:00:00:02"}
ETHER = Ether(**ENDS)
V4, BACK4 = IP(src="10.0.0.1", dst="10.0.0.2"), IP(src="10.0.0.2", dst="10.0.0.1")
V6 = IPv6(src="fd00::1", dst="fd00::2")
WRAP = 2**32 - 2


def links() -> Iterator[tuple[str, int, bytes]]:
    """One TCP segment and one SCTP packet below every link header and above every IP header."""
    payloads = {"tcp": TCP(sport=1, dport=2, flags="A", seq=WRAP) / b"12345", "sctp": sctp(SCTPChunkData(data=b"1"))}
    headers = {
        "v4": V4,
        "v4-options": IP(src="10.0.0.1", dst="10.0.0.2", options=[IPOption_RR(), IPOption_Timestamp()]),
        "v6": V6,
        "v6-all": V6
        / IPv6ExtHdrHopByHop(options=[PadN(optdata=b"\0" * 4)])
        / IPv6ExtHdrDestOpt()
        / IPv6ExtHdrRouting(addresses=["fd00::9"])
        / IPv6ExtHdrFragment(id=5)
        / AH(payloadlen=4, icv=b"\0" * 12),
        "v6-jumbo": V6 / IPv6ExtHdrHopByHop(options=[Jumbo(jumboplen=70_000)]),
        "v4-in-udp": V4 / UDP(sport=9899, dport=9899),
    }
    for (name, header), (kind, payload) in itertools.product(headers.items(), payloads.items()):
        ip = header / payload
        raw = bytes(ip)
        version = 0x0800 if raw[0] >> 4 == 4 else 0x86DD
        for link, link_type, frame in (
            ("ethernet", 1, Ether(**ENDS, type=version) / raw),
            ("vlan", 1, ETHER / Dot1Q(type=version) / raw),
            ("qinq", 1, ETHER / Dot1AD() / Dot1Q(type=version) / raw),
            ("tags", 1, Ether(**ENDS, type=0x9100) / Dot1Q() / Dot1Q() / Dot1Q() / Dot1Q(type=version) / raw),
            ("mpls", 1, Ether(**ENDS, type=0x8847) / (b"\0\1\0\x40\0\2\1\x40" + raw)),
            (
                "pppoe",
                1,
                Ether(**ENDS, type=0x8864)
                / (b"\x11\0\0\1\0\x50" + (b"\0\x21" if version == 0x0800 else b"\0\x57") + raw),
            ),
            ("sll", 113, CookedLinux(proto=version) / raw),
            ("sll2", 276, CookedLinuxV2(proto=version) / raw),
            ("null", 0, Loopback(type=2) / raw),
            ("loop", 108, b"\0\0\0\x18" + raw),
            ("raw", 101, raw),
            *((wrapper, *wrapping) for wrapper, wrapping in wrapped(raw).items()),
        ):
            yield f"{link}-{name}-{kind}", link_type, bytes(frame)


def wrapped(ip: bytes) -> dict[str, tuple[int, bytes]]:
    """The link type and the frame of an IP packet below each link header that is not Ethernet's."""
    v6 = ip[0] >> 4 == 6
    version = b"\x86\xdd" if v6 else b"\x08\0"
    ppp = (b"\0\x57" if v6 else b"\0\x21") + ip
    llc = b"\xaa\xaa\x03\0\0\0" + version + ip
    mac = b"\2\0\0\0\0\2\2\0\0\0\0\1"
    data = b"\x08\x01\0\0" + b"\2\0\0\0\0\2" * 3 + b"\x10\0"
    quality = b"\x88\x03\0\0" + b"\2\0\0\0\0\2" * 3 + b"\x10\0" + b"\2\0\0\0\0\2" + b"\0\0"
    short = b"\x88\x01\0\0" + b"\2\0\0\0\0\2" * 3 + b"\x10\0" + b"\0\0"
    return {
        "ppp": (9, ppp),
        "ppp-framed": (9, b"\xff\x03" + ppp),
        "ppp-compressed": (9, ppp[1:]),
        "ppp-hdlc": (50, b"\xff\x03" + ppp),
        "ppp-cisco": (50, b"\x0f\0" + version + ip),
        "ppp-9-cisco": (9, b"\x8f\0" + version + ip),
        "ppp-ethernet": (51, b"\x11\0\0\1" + struct.pack("!H", len(ppp)) + ppp),
        "ppp-direction": (204, b"\0\xff\x03" + ppp),
        "cisco-hdlc": (104, b"\x0f\0" + version + ip),
        "fddi": (10, b"\x50" + mac + llc),
        "atm": (100, llc),
        "llc-ip": (100, b"\x06\x06\x03" + ip),
        "802.3": (1, mac + struct.pack("!H", len(llc)) + llc),
        "cisco-metadata": (1, mac + b"\x89\x09\1\1\0\1\0\7" + version + ip),
        "fabricpath": (1, mac + b"\x89\x03\x10\x20" + mac + version + ip),
        "802.11": (105, data + llc),
        "802.11-qos": (105, quality + llc),
        "radiotap": (127, b"\0\0\x09\0\2\0\0\0\0" + data + llc),
        "radiotap-padded": (127, b"\0\0\x19\0\3\0\0\x80" + b"\0" * 16 + b"\x20" + short + b"\0\0" + llc),
        "prism": (119, b"\x44\0\0\0\x90\0\0\0" + b"\0" * 136 + data + llc),
        "avs": (163, b"\x80\x21\x10\1\0\0\0\x40" + b"\0" * 56 + data + llc),
        "ppi": (192, b"\0\0\x08\0\x69\0\0\0" + data + llc),
        "nflog": (239, b"\2\0\0\0\x06\0\x0a\0hi\0\0" + struct.pack("<HH", 4 + len(ip), 9) + ip),
        "pktap": (258, struct.pack("<III", 108, 1, 1) + b"\0" * 96 + mac + version + ip),
        "mpls-in-ppp": (9, b"\2\x81" + b"\0\1\1\x40" + ip),
    }


def tunnelled(ip: bytes) -> dict[str, Packet]:
    """The IP packets that carry another one, by tunnel."""
    v6 = ip[0] >> 4 == 6
    version = b"\x86\xdd" if v6 else b"\x08\0"
    frame = b"\2\0\0\0\0\2\2\0\0\0\0\1" + version + ip
    number = 41 if v6 else 4
    ends = {"src": "192.0.2.1", "dst": "192.0.2.2"}
    gtp = b"\0\xff" + struct.pack("!HI", len(ip), 77)
    more = struct.pack("!HI", len(ip) + 8, 77)
    return {
        "ip": IP(**ends, proto=number) / ip,
        "ip-in-v6": IPv6(src="fd01::1", dst="fd01::2", nh=number) / ip,
        "ah": IP(**ends, proto=51) / (bytes([number, 4, 0, 0]) + b"\0" * 20 + ip),
        "gre": IP(**ends, proto=47) / (b"\0\0" + version + ip),
        "gre-all": IP(**ends, proto=47) / (b"\xb0\0" + version + b"\0" * 12 + ip),
        "gre-ethernet": IP(**ends, proto=47) / (b"\0\0\x65\x58" + frame),
        "pptp": IP(**ends, proto=47) / (b"\x30\x81\x88\x0b" + b"\0" * 12 + (b"\0\x57" if v6 else b"\0\x21") + ip),
        "erspan": IP(**ends, proto=47) / (b"\x10\0\x88\xbe" + b"\0" * 12 + frame),
        "erspan-3": IP(**ends, proto=47) / (b"\x10\0\x22\xeb" + b"\0" * 15 + b"\1" + b"\0" * 8 + frame),
        "vxlan": IP(**ends) / UDP(sport=9, dport=4789, chksum=0) / (b"\x08\0\0\0\0\0\7\0" + frame),
        "geneve": IP(**ends) / UDP(sport=9, dport=6081, chksum=0) / (b"\1\0\x65\x58\0\0\7\0abcd" + frame),
        "gtp": IP(**ends) / UDP(sport=9, dport=2152, chksum=0) / (b"\x30" + gtp[1:] + ip),
        "gtp-extended": IP(**ends) / UDP(sport=9, dport=2152, chksum=0)
        / (b"\x34\xff" + more + b"\0\0\0\x85\1\0\0\0" + ip),
    }  # fmt: skip


def tunnels() -> list[bytes]:
    """Every tunnel: of both families, within each other, cut to fragments within and without."""
    inner = [bytes(ip / TCP(sport=1, dport=2, flags="A", seq=WRAP) / b"12345") for ip in (V4, V6)]
    inner += [bytes(V4 / sctp(SCTPChunkData(tsn=n, data=b"y" * 40))) for n in range(3)]
    inner.append(bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=132, id=9, flags=1) / inner[2][20:44]))
    inner.append(bytes(IP(src="10.0.0.1", dst="10.0.0.2", proto=132, id=9, frag=3) / inner[2][44:]))
    carried = [packet for ip in inner for packet in tunnelled(ip).values()]
    for packet in tunnelled(inner[0]).values():
        carried += itertools.islice(tunnelled(bytes(packet)).values(), 6)
    for tunnel in ("gre", "vxlan", "gtp"):
        whole = bytes(tunnelled(inner[3])[tunnel])
        proto, body = whole[9], whole[20:]
        for at, more in ((0, 1), (5, 0)):
            piece = body[at * 8 : 40] if more else body[at * 8 :]
            carried.append(IP(src="192.0.2.1", dst="192.0.2.2", proto=proto, id=77, flags=more, frag=at) / piece)
    return [bytes(ETHER / packet) for packet in carried]


def copies() -> list[tuple[int, bytes]]:
    """Packets twice, as a router's two interfaces have them; numbered and not; and out of order."""
    frames = []
    for number in range(12):
        ip = IP(src="10.0.0.1", dst="10.0.0.2", id=number // 2 % 4, ttl=64 - number % 2)
        frames.append(bytes(ETHER / ip / TCP(sport=1, dport=2, flags="A", seq=number // 2 * 5) / b"12345"))
        v6 = IPv6(src="fd00::1", dst="fd00::2", hlim=64 - number % 2)
        frames.append(bytes(ETHER / v6 / TCP(sport=3, seq=7) / b"1"))
    return [(1000 * (number ^ 3), frame) for number, frame in enumerate(frames)]


def sctp(*chunks: Packet | bytes, tag: int = 2, back: bool = False) -> Packet:
    """An SCTP packet."""
    ports = (80, 1000) if back else (1000, 80)
    whole: Packet = SCTP(sport=ports[0], dport=ports[1], tag=tag)
    for one in chunks:
        whole = whole / (Raw(one) if isinstance(one, bytes) else one)
    return whole


def association() -> list[bytes]:
    """A whole life through the wrap of the TSN: two paths, gaps, duplicates, a restart, every chunk type, lies."""
    address = [SCTPChunkParamIPv4Addr(addr="10.0.1.1"), SCTPChunkParamIPv6Addr(addr="fd00::1")]
    there: list[Packet | bytes] = [
        sctp(SCTPChunkInit(init_tag=1, init_tsn=WRAP, params=address), tag=0),
        sctp(SCTPChunkCookieEcho(cookie=b"x" * 8), SCTPChunkData(tsn=WRAP, data=b"abc")),
        sctp(
            *(SCTPChunkData(tsn=(WRAP + n) % 2**32, stream_id=n % 3, stream_seq=n, data=b"x" * n) for n in range(1, 9))
        ),
        sctp(SCTPChunkData(tsn=WRAP, data=b"abc"), SCTPChunkData(tsn=40, data=b"far"), SCTPChunkHeartbeatReq()),
        sctp(chunk(64, struct.pack("!IHHII", 41, 1, 0, 7, 0) + b"interleaved")),
        sctp(chunk(192, struct.pack("!IHH", 45, 1, 9)), chunk(194, struct.pack("!IHHI", 46, 1, 0, 3))),
        sctp(chunk(0, b"x" * 20, length=0)),
        sctp(chunk(0, b"x" * 20, length=3), SCTPChunkData(tsn=50)),
        sctp(chunk(0, b"x" * 20, length=65535)),
        sctp(
            chunk(130, struct.pack("!HHIIIHH", 13, 18, 1, 1, 44, 1, 2)),
            chunk(193, b"\0\0\0\1"),
            chunk(128, b"\0\0\0\1"),
        ),
        sctp(chunk(15, b"\0" * 24), chunk(132, b"pad" * 9), chunk(63), chunk(255, b"?")),
        sctp(SCTPChunkError(), SCTPChunkShutdown(cumul_tsn_ack=3)),
        sctp(chunk(9, b"\0\1\0\x08\0\7\0\0\0\x08\0\7abc\0\0\x0c\0\4"), chunk(6, b"\0\x0c\0\3")),
        sctp(SCTPChunkAbort(TCB=1), tag=1),
        sctp(SCTPChunkInit(init_tag=7, init_tsn=5), tag=0),
    ]
    back: list[Packet | bytes] = [
        sctp(
            SCTPChunkInitAck(init_tag=2, init_tsn=9, params=[SCTPChunkParamStateCookie(cookie=b"y" * 20)]),
            tag=1,
            back=True,
        ),
        sctp(SCTPChunkCookieAck(), tag=1, back=True),
        sctp(SCTPChunkSACK(cumul_tsn_ack=WRAP, gap_ack_list=["2:3", "6:6"], dup_tsn_list=[WRAP, 3]), tag=1, back=True),
        sctp(SCTPChunkSACK(cumul_tsn_ack=1, gap_ack_list=["60000:65535", "9:2", "0:0"]), tag=1, back=True),
        sctp(chunk(3, struct.pack("!IIHH", 4, 9, 65535, 65535) + b"\0" * 9), tag=1, back=True),
        sctp(SCTPChunkHeartbeatAck(), SCTPChunkData(tsn=9, data=b"back"), tag=1, back=True),
        sctp(SCTPChunkShutdownAck(), tag=1, back=True),
        sctp(SCTPChunkShutdownComplete(TCB=1), tag=2, back=True),
        sctp(chunk(1, struct.pack("!IIHHI", 3, 4, 5, 6, 7) + struct.pack("!HHI", 5, 1, 0)), tag=0, back=True),
    ]
    found = []
    for number, packet in enumerate(itertools.chain(*itertools.zip_longest(there, back))):
        if packet is not None:
            ip = IP(src="10.0.1.1", dst="10.0.1.2") if number % 5 == 4 else V4
            if number % 2:
                ip = IP(src=ip.dst, dst=ip.src)
            found.append(bytes(ETHER / ip / packet))
    return found


def connection() -> list[bytes]:
    """A whole life through the wrap of the sequence number: options, SACK, holes, MPTCP, zero window, lies."""
    offer = [("MSS", 1460), ("SAckOK", b""), ("Timestamp", (1, 0)), ("NOP", None), ("WScale", 14)]
    dss = struct.pack("!BBBBQIIHH", 0x20, 0x0D, 0, 0, 0, 1, 1, 30, 0)[1:]

    def one(at: int, size: int = 0, **fields: object) -> bytes:
        tcp = TCP(**{"sport": 1000, "dport": 80, "seq": (WRAP + at) % 2**32, "ack": 6, "flags": "A", **fields})
        return bytes(ETHER / V4 / tcp / (b"x" * size))

    def other(ack: int, **fields: object) -> bytes:
        tcp = TCP(**{"sport": 80, "dport": 1000, "seq": 6, "ack": (WRAP + ack) % 2**32, "flags": "A", **fields})
        return bytes(ETHER / BACK4 / tcp)

    edges = [(WRAP + n) % 2**32 for n in (20, 30, 50, 60, 2**31, 5, 9, 9)]
    return [
        one(-1, flags="S", ack=0, options=[*offer, (30, b"\1\x81" + b"k" * 8)]),
        other(0, flags="SA", seq=5, options=offer),
        *(one(at, 10) for at in (0, 10, 30, 20, 10, 50, 5, 45)),
        other(20, options=[("SAck", tuple(edges[:6]))]),
        other(20, window=0, options=[("SAck", tuple(edges[6:])), ("Timestamp", (2**32 - 1, 0))]),
        one(60, 5, options=[(30, dss)]),
        one(60, 5, flags="UPECN", urgptr=3),
        one(2**31, 9),
        one(2**31 - 5, 1400),
        bytes(ETHER / V4 / TCP(dataofs=15) / b"x"),
        bytes(ETHER / V4 / TCP(dataofs=4) / (b"x" * 40)),
        bytes(ETHER / IP(dst="10.0.0.2", len=48) / TCP(dataofs=7) / b"\x05\0\0\0\0\0\0\0"),
        bytes(ETHER / IP(dst="10.0.0.2", len=0) / TCP() / (b"x" * 3000)),
        one(70, flags="FA"),
        other(71, flags="RA"),
        one(-1, flags="S", seq=77, ack=0),
        one(0, 9, flags="SF", seq=77),
    ]


def fragments() -> list[bytes]:
    """Datagrams in pieces: in and out of order, overlapping, too long, without an end, of both families."""
    data = bytes(sctp(*(SCTPChunkData(tsn=n, data=b"y" * 200) for n in range(6))))
    found: list[Packet] = []
    for identity, order in ((1, (0, 1, 2)), (2, (2, 0, 1)), (3, (1, 1, 0))):
        parts = [(0, 480, 1), (60, 480, 1), (120, len(data) - 960, 0)]
        for place in order:
            at, size, more = parts[place]
            piece = data[at * 8 : at * 8 + size]
            found.append(ETHER / IP(dst="10.0.0.2", id=identity, proto=132, flags=more, frag=at) / piece)
            found.append(ETHER / V6 / IPv6ExtHdrFragment(nh=132, id=identity, m=more, offset=at) / piece)
    found.append(ETHER / IP(dst="10.0.0.2", id=3, proto=132, flags=1, frag=30) / (b"z" * 480))
    found.append(ETHER / IP(dst="10.0.0.2", id=4, proto=132, frag=8191) / (b"z" * 800))
    found.append(ETHER / IP(dst="10.0.0.2", id=5, proto=132, flags=1, frag=1) / (b"z" * 13))
    found.append(ETHER / V6 / IPv6ExtHdrFragment(nh=44, m=1) / IPv6ExtHdrFragment(nh=44) / b"z")
    return [bytes(one) for one in found]


def lying_headers() -> list[bytes]:
    """IP lengths that cannot be."""
    packets: list[Packet] = [
        IP(dst="10.0.0.2", len=1400) / TCP() / b"x",
        IP(dst="10.0.0.2", len=10) / TCP(),
        IP(dst="10.0.0.2", ihl=15, len=40) / TCP(),
        IP(dst="10.0.0.2", ihl=1) / TCP(),
        IPv6(dst="fd00::2", nh=0, plen=8) / (b"\x06\xff" + b"\0" * 6),
        IPv6(dst="fd00::2", plen=0) / TCP() / (b"x" * 99),
        IPv6(dst="fd00::2", nh=59),
        IP(dst="10.0.0.2") / UDP(sport=9899, dport=1, len=3) / (b"\0" * 4),
        ARP(),
        Raw(b"\x45"),
    ]
    return [bytes(ETHER / packet) for packet in packets]


def quic() -> list[bytes]:
    """Datagrams of QUIC with every kind of packet, alone and together, and with lengths that lie."""
    ids = b"\x08" + bytes(range(8)) + b"\x14" + bytes(range(20))
    version = {1: b"\0\0\0\1", 2: bytes.fromhex("6b3343cf"), 7: b"\0\0\0\7"}
    length = b"\x40\x50" + bytes(80)
    initial = b"\xc0" + version[1] + ids + b"\x03abc" + length
    zero_rtt, handshake = b"\xd0" + version[1] + ids + length, b"\xe0" + version[1] + ids + length
    retry = b"\xf0" + version[1] + ids + b"token" + bytes(16)
    short = b"\x60" + bytes(range(8)) + bytes(30)
    payloads = [
        initial + handshake + short,
        initial + zero_rtt,
        retry,
        b"\xf0" + version[1] + ids + b"short",
        b"\xd0" + version[2] + ids + b"\x03abc" + length,
        b"\xc0" + version[7] + b"\xff" + bytes(255) + b"\xff" + bytes(255) + bytes(9),
        b"\x80\0\0\0\0" + ids + version[1] + version[2],
        short,
        initial + bytes(100),
        b"\xc0" + version[1] + ids + b"\xff" + bytes(7) + length,
        b"\xe0" + version[1] + ids + b"\xff" * 8 + bytes(20),
        b"\xe0" + version[1] + b"\x15" + bytes(21) + b"\0" + length,
        b"",
        b"\xc0",
        b"\0",
    ]
    return [bytes(ETHER / ip / UDP(sport=443, dport=9) / payload) for ip in (V4, V6) for payload in payloads]


def blocks(order: str) -> bytes:
    """A pcapng file with every block, two sections, lies in options, simple and old packets."""
    w, other = Writer(order), Writer(">" if order == "<" else "<")
    tcp, packets = connection(), association()
    return b"".join(
        [
            w.section(options=w.option(4, b"seeds.py")),
            w.interface(snaplen=96, resolution=9, offset_s=-7, name="eth0"),
            w.interface(101, resolution=0x94, options=w.option(9, b"\1\2")),
            w.interface(147, options=w.option(2, b"x", length=9999)),
            *(w.packet(2**40 + n, frame) for n, frame in enumerate(tcp)),
            w.packet(5, tcp[0][14:], interface=1),
            w.packet(5, b"?", interface=2),
            w.simple_packet(tcp[1]),
            w.old_packet(9, tcp[2]),
            w.block(4, b"names" * 3),
            w.block(0x0BAD0001, b"custom"),
            w.statistics(0, received=9, dropped=3),
            other.section(),
            other.interface(),
            *(other.packet(2**40 + n, frame) for n, frame in enumerate(packets)),
            w.block(6, b"", length=4),
        ]
    )


def captures() -> dict[str, bytes]:
    """Every seed's capture by name."""
    found: dict[str, bytes] = {}
    by_link: dict[int, list[bytes]] = {}
    for _, link_type, frame in links():
        by_link.setdefault(link_type, []).append(frame)
    for link_type, frames in by_link.items():
        found[f"link-{link_type}"] = pcap([(n, frame) for n, frame in enumerate(frames)], link_type=link_type)
    for name, frames in (
        ("association", association()),
        ("connection", connection()),
        ("fragments", fragments()),
        ("headers", lying_headers()),
        ("quic", quic()),
        ("tunnels", tunnels()),
    ):
        found[name] = pcap([(n, frame) for n, frame in enumerate(frames)])
        found[f"{name}-short"] = pcap([(n, frame[:70], len(frame)) for n, frame in enumerate(frames)])
        found[f"{name}-us-big"] = pcap([(n, frame) for n, frame in enumerate(frames)], magic=0xA1B2C3D4, order=">")
    found["holes"] = pcap(
        [
            (n, bytes(ETHER / V4 / sctp(SCTPChunkData(tsn=tsn))))
            for n, tsn in enumerate([*range(0, 600, 2), *random.Random(1).sample(range(600), 300)])
        ]
    )
    found["copies"] = pcap(copies())
    found["blocks-little"], found["blocks-big"] = blocks("<"), blocks(">")
    w = Writer("<")  # times at both ends of 64 bits, of equal packets and of fragments
    ends = [w.packet(time, frame) for frame in (connection()[2], fragments()[0]) for time in (0, 2**64 - 1, 0)]
    found["times"] = b"".join([w.section(), w.interface(resolution=0, offset_s=-(2**40)), *ends])
    for name in ("association", "connection", "blocks-little"):
        found |= {f"{name}.{ending}": data for ending, data in packed(found[name]).items()}
    return found


def packed(data: bytes) -> dict[str, bytes]:
    """The capture in every packing: in a stream, and in several one after another; with checks and without."""
    several = [data[at : at + len(data) // 3 + 1] for at in range(0, len(data), len(data) // 3 + 1)]
    quick = zstandard.ZstdCompressor(level=-100, write_content_size=False)
    return {
        "gz": gzip.compress(data, mtime=0),
        "several.gz": b"".join(gzip.compress(some, 0, mtime=0) for some in several),
        "zst": zstandard.ZstdCompressor(write_checksum=True).compress(data),
        "several.zst": b"".join(quick.compress(some) for some in several),
        "xz": lzma.compress(data),
        "several.xz": b"".join(lzma.compress(some, check=lzma.CHECK_NONE, preset=0) for some in several) + b"\0" * 4,
        "bz2": bz2.compress(data),
        "several.bz2": b"".join(bz2.compress(some, 1) for some in several),
        "lz4": lz4_frame(data),
        "several.lz4": b"".join(lz4_frame(some) for some in several),
    }


def main() -> int:
    """Write every seed, read in every way that matters."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, data in captures().items():
        for way in (0, 1, 2, 8, 0x12, 0x32, 0x40):
            (directory / f"{name}-{way}").write_bytes(bytes([way]) + data)
    print(f"{len(list(directory.iterdir()))} files in {directory}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
