"""The part of a packet program that finds out of which flow and of which kinds a packet is."""

from __future__ import annotations

from ..core.ip_families import IPV6, IpFamily
from ..core.packet_kinds import KINDS, PACKET
from ..core.wire import ETHERNET_HEADER_BYTES, SCTP, TCP

KINDS_SEEN, PORTS, IP_PROTOCOL = -64, -56, -32 + 9
"""Places in the frame that `classify` fills: a bit a kind (u64), both ports (u16 each), the IP header's protocol."""
FRAGMENT_HEADER, FRAGMENT_BYTES = 44, 8
"""IPv6's header of a fragment (RFC 8200 4.5)."""


def kind_bits(kind: str) -> int:
    """The bits of a kind; of one that holds several, of all of them."""
    return sum(1 << bit for bit in KINDS[kind])


def load_bytes(to: int, size: int, otherwise: str) -> str:
    """Bytes of the packet at the offset in r2 into the frame (bpf_skb_load_bytes)."""
    return f"""
    r1 = r6
    r3 = r10
    r3 += {to}
    r4 = {size}
    call 26
    if r0 != 0 goto {otherwise}"""


def _add_kind(kind: str) -> str:
    return f"""
    r4 = *(u64 *)(r10 + {KINDS_SEEN})
    r5 = {1 << KINDS[kind][0]} ll
    r4 |= r5
    *(u64 *)(r10 + {KINDS_SEEN}) = r4"""


_TRANSPORT = f"""
    r2 = r1
{load_bytes(PORTS, 4, "verdict")}
    r1 = {kind_bits(PACKET)} ll
    *(u64 *)(r10 + {KINDS_SEEN}) = r1
    r1 = *(u8 *)(r10 + {IP_PROTOCOL})
    if r1 == {TCP} goto tcp
    if r1 == {SCTP} goto sctp
{_add_kind("data")}
    goto kinds

tcp:
    r2 = *(u64 *)(r10 + -40)
    r2 += 12
{load_bytes(-72, 2, "kinds")}
    r1 = *(u8 *)(r10 + -71)
    if r1 & 0x02 goto tcp-syn
    r2 = r1
    r2 &= 0x04
    if r2 == 0 goto tcp-no-rst
{_add_kind("rst")}
tcp-no-rst:
    r2 = r1
    r2 &= 0x01
    if r2 == 0 goto tcp-no-fin
{_add_kind("fin")}
tcp-no-fin:
    r2 = *(u8 *)(r10 + -72)
    r2 >>= 4
    r2 <<= 2
    r3 = *(u64 *)(r10 + -48)
    if r3 <= r2 goto tcp-empty
{_add_kind("data")}
    goto kinds
tcp-empty:
    if r1 & 0x05 goto kinds
{_add_kind("ack")}
    goto kinds
tcp-syn:
    if r1 & 0x10 goto tcp-syn-ack
{_add_kind("syn")}
    goto kinds
tcp-syn-ack:
{_add_kind("syn_ack")}
    goto kinds

sctp:                               ; every chunk: bit ((type >> 6) << 4 | type & 15)
    r7 = *(u64 *)(r10 + -40)
    r7 += 12
    *(u64 *)(r10 + -80) = 0
chunk:
    r2 = r7
{load_bytes(-72, 4, "kinds")}
    r1 = *(u8 *)(r10 + -72)
    r2 = r1
    r2 >>= 6
    r2 <<= 4
    r1 &= 15
    r1 |= r2
    r2 = 1
    r2 <<= r1
    r3 = *(u64 *)(r10 + {KINDS_SEEN})
    r3 |= r2
    *(u64 *)(r10 + {KINDS_SEEN}) = r3
    r1 = *(u16 *)(r10 + -70)
    r1 = be16 r1
    if r1 < 4 goto kinds
    r1 += 3
    r1 &= 0xfffc
    r7 += r1
    r1 = *(u64 *)(r10 + -40)
    r2 = *(u64 *)(r10 + -48)
    r1 += r2
    if r7 >= r1 goto kinds
    r1 = *(u64 *)(r10 + -80)
    r1 += 1
    *(u64 *)(r10 + -80) = r1
    if r1 < 94 goto chunk           ; of 16 bytes in 1500
kinds:"""
_IPV4_HEADER = f"""
    r2 = {ETHERNET_HEADER_BYTES}
{load_bytes(-32, 20, "verdict")}
    r1 = *(u16 *)(r10 + -26)
    r1 = be16 r1
    r1 &= 0x1fff
    if r1 != 0 goto verdict         ; a later fragment has no ports
    r1 = *(u8 *)(r10 + -32)
    r1 &= 0x0f
    r1 <<= 2
    r2 = *(u16 *)(r10 + -30)
    r2 = be16 r2
    r3 = r2
    r3 -= r1
    *(u64 *)(r10 + -48) = r3
    r1 += {ETHERNET_HEADER_BYTES}
    *(u64 *)(r10 + -40) = r1"""
_IPV6_HEADER = f"""
    r2 = {ETHERNET_HEADER_BYTES}
{load_bytes(-32, 8, "verdict")}
    r1 = *(u16 *)(r10 + -28)
    r1 = be16 r1
    *(u64 *)(r10 + -48) = r1
    r1 = {ETHERNET_HEADER_BYTES + IPV6.header_bytes}
    *(u64 *)(r10 + -40) = r1
    r1 = *(u8 *)(r10 + -26)
    *(u8 *)(r10 + {IP_PROTOCOL}) = r1
    if r1 != {FRAGMENT_HEADER} goto transport
    r2 = *(u64 *)(r10 + -40)
{load_bytes(-32, 8, "verdict")}
    r1 = *(u16 *)(r10 + -30)
    r1 = be16 r1
    r1 >>= 3
    if r1 != 0 goto verdict         ; a later fragment has no ports
    r1 = *(u8 *)(r10 + -32)
    *(u8 *)(r10 + {IP_PROTOCOL}) = r1
    r1 = *(u64 *)(r10 + -40)
    r1 += {FRAGMENT_BYTES}
    *(u64 *)(r10 + -40) = r1
    r1 = *(u64 *)(r10 + -48)
    r1 += {-FRAGMENT_BYTES}
    *(u64 *)(r10 + -48) = r1
transport:
    r1 = *(u64 *)(r10 + -40)"""


def classify(family: IpFamily) -> str:
    """The instructions that put the ports and kinds of a packet of that family into the frame. IPv6: behind its header,
    or a fragment's; the kernel sends no other extension header before a transport's.

    r6: the packet (struct __sk_buff). Frame: -32 IP header, -40 offset of the transport header, -48 bytes from there to
    the end, -72 a chunk's header or TCP's offset and flags, -80 chunks so far. To `verdict` if it is of no flow.
    """
    network_order = int.from_bytes(family.ether_type.to_bytes(2, "big"), "little")
    return f"""
    r1 = *(u32 *)(r6 + 16)          ; protocol
    if r1 != {network_order:#06x} goto verdict
{_IPV6_HEADER if family == IPV6 else _IPV4_HEADER}
{_TRANSPORT}"""
