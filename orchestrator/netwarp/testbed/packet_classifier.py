"""The part of a packet program that finds out of which flow and of which kinds a packet is."""

from __future__ import annotations

from ..core.packet_kinds import KINDS, PACKET
from .bpf import FRAME, Assembler

ETHERNET_HEADER_BYTES = 14
CONTEXT, LENGTH = 6, 7
"""Registers: the packet (struct __sk_buff); between its steps free."""
IP_PROTOCOL, PORTS, KINDS_SEEN = -32 + 9, -56, -64
"""Places in the frame that classify() fills: the IP header's protocol, both ports (u16 each), a bit a kind (u64)."""
_IP, _L4, _L4_LENGTH, _CHUNK, _ROUND = -32, -40, -48, -72, -80
_TCP, _SCTP = 6, 132
IP_NUMBERS = {"tcp": _TCP, "mptcp": _TCP, "sctp": _SCTP, "udp": 17}
_PROTOCOL = 16
"""Offset in struct __sk_buff."""
_LOAD_BYTES = 26
_MOST_CHUNKS = 94
"""Of 16 bytes in 1500."""


def kind_bits(kind: str) -> int:
    """The bits of a kind; of one that holds several, of all of them."""
    return sum(1 << bit for bit in KINDS[kind])


def classify(code: Assembler, otherwise: str) -> None:
    """IP header, ports and the kinds the packet is of into the frame; to `otherwise` with one that is of no flow."""
    code.load(4, 1, CONTEXT, _PROTOCOL)
    code.jump_if("ne", 1, 0x0008, otherwise)  # ETH_P_IP in network byte order
    _load_bytes(code, ETHERNET_HEADER_BYTES, _IP, 20, otherwise)
    code.load(2, 1, FRAME, _IP + 6)
    code.swap16(1)
    code.op("and", 1, 0x1FFF)
    code.jump_if("ne", 1, 0, otherwise)  # a later fragment has no ports
    code.load(1, 1, FRAME, _IP)
    code.op("and", 1, 0x0F)
    code.op("lsh", 1, 2)
    code.load(2, 2, FRAME, _IP + 2)
    code.swap16(2)
    code.op_reg("mov", 3, 2)
    code.op_reg("sub", 3, 1)
    code.store(8, FRAME, _L4_LENGTH, 3)
    code.op("add", 1, ETHERNET_HEADER_BYTES)
    code.store(8, FRAME, _L4, 1)
    code.op_reg("mov", 2, 1)
    _load_bytes(code, None, PORTS, 4, otherwise)
    code.constant(1, kind_bits(PACKET))
    code.store(8, FRAME, KINDS_SEEN, 1)
    code.load(1, 1, FRAME, IP_PROTOCOL)
    code.jump_if("eq", 1, _TCP, "tcp")
    code.jump_if("eq", 1, _SCTP, "sctp")
    _add_kind(code, "data")
    code.jump("kinds")
    code.label("tcp")
    _classify_tcp(code)
    code.label("sctp")
    _classify_sctp(code)
    code.label("kinds")


def _add_kind(code: Assembler, kind: str) -> None:
    code.load(8, 4, FRAME, KINDS_SEEN)
    code.constant(5, 1 << KINDS[kind][0])
    code.op_reg("or", 4, 5)
    code.store(8, FRAME, KINDS_SEEN, 4)


def _classify_tcp(code: Assembler) -> None:
    code.load(8, 2, FRAME, _L4)
    code.op("add", 2, 12)
    _load_bytes(code, None, _CHUNK, 2, "kinds")
    code.load(1, 1, FRAME, _CHUNK + 1)
    code.jump_if("set", 1, 0x02, "tcp syn")
    for flag, kind in ((0x04, "rst"), (0x01, "fin")):
        code.op_reg("mov", 2, 1)
        code.op("and", 2, flag)
        code.jump_if("eq", 2, 0, f"tcp no {kind}")
        _add_kind(code, kind)
        code.label(f"tcp no {kind}")
    code.load(1, 2, FRAME, _CHUNK)
    code.op("rsh", 2, 4)
    code.op("lsh", 2, 2)
    code.load(8, 3, FRAME, _L4_LENGTH)
    code.jump_if_reg("le", 3, 2, "tcp empty")
    _add_kind(code, "data")
    code.jump("kinds")
    code.label("tcp empty")
    code.jump_if("set", 1, 0x05, "kinds")
    _add_kind(code, "ack")
    code.jump("kinds")
    code.label("tcp syn")
    code.jump_if("set", 1, 0x10, "tcp syn ack")
    _add_kind(code, "syn")
    code.jump("kinds")
    code.label("tcp syn ack")
    _add_kind(code, "syn_ack")
    code.jump("kinds")


def _classify_sctp(code: Assembler) -> None:
    """Every chunk of the packet: bit ((type >> 6) << 4 | type & 15)."""
    code.load(8, LENGTH, FRAME, _L4)
    code.op("add", LENGTH, 12)
    code.store_constant(8, FRAME, _ROUND, 0)
    code.label("chunk")
    code.op_reg("mov", 2, LENGTH)
    _load_bytes(code, None, _CHUNK, 4, "kinds")
    code.load(1, 1, FRAME, _CHUNK)
    code.op_reg("mov", 2, 1)
    code.op("rsh", 2, 6)
    code.op("lsh", 2, 4)
    code.op("and", 1, 15)
    code.op_reg("or", 1, 2)
    code.op("mov", 2, 1)
    code.op_reg("lsh", 2, 1)
    code.load(8, 3, FRAME, KINDS_SEEN)
    code.op_reg("or", 3, 2)
    code.store(8, FRAME, KINDS_SEEN, 3)
    code.load(2, 1, FRAME, _CHUNK + 2)
    code.swap16(1)
    code.jump_if("lt", 1, 4, "kinds")
    code.op("add", 1, 3)
    code.op("and", 1, 0xFFFC)
    code.op_reg("add", LENGTH, 1)
    code.load(8, 1, FRAME, _L4)
    code.load(8, 2, FRAME, _L4_LENGTH)
    code.op_reg("add", 1, 2)
    code.jump_if_reg("ge", LENGTH, 1, "kinds")
    code.load(8, 1, FRAME, _ROUND)
    code.op("add", 1, 1)
    code.store(8, FRAME, _ROUND, 1)
    code.jump_if("lt", 1, _MOST_CHUNKS, "chunk")


def _load_bytes(code: Assembler, offset: int | None, to: int, size: int, otherwise: str) -> None:
    """Bytes of the packet at an offset (None: already in r2) into the frame."""
    code.op_reg("mov", 1, CONTEXT)
    if offset is not None:
        code.op("mov", 2, offset)
    code.op_reg("mov", 3, FRAME)
    code.op("add", 3, to)
    code.op("mov", 4, size)
    code.call(_LOAD_BYTES)
    code.jump_if("ne", 0, 0, otherwise)
