"""A qdisc's size table (TCA_STAB) that adds a constant to every packet's length, so that rate and queue count IP
packets.

The kernel accepts one at the root only; the child sees packets with the length that the root gave them.
"""

from __future__ import annotations

import struct

TCA_STAB = 8
_BASE = 1
_SIZESPEC = struct.Struct("=BBhiIIII")
"""struct tc_sizespec: cell_log, size_log, cell_align, overhead, linklayer, mpu, mtu, tsize."""
LINKLAYER_ETHERNET = 1


def attribute(number: int, value: bytes) -> bytes:
    """One netlink attribute, padded."""
    return struct.pack("=HH", len(value) + 4, number) + value + bytes(-len(value) % 4)


def attributes_of(data: bytes) -> dict[int, bytes]:
    """Netlink attributes by number, payload only."""
    attributes: dict[int, bytes] = {}
    offset = 0
    while offset + 4 <= len(data):
        length, number = struct.unpack_from("=HH", data, offset)
        if length < 4 or offset + length > len(data):
            break
        attributes[number & 0x3FFF] = data[offset + 4 : offset + length]
        offset += (length + 3) & ~3
    return attributes


def size_table(overhead_bytes: int) -> tuple[tuple[int, bytes], ...]:
    """The attribute to send beside TCA_OPTIONS; nothing if no bytes are added."""
    if not overhead_bytes:
        return ()
    return ((TCA_STAB, attribute(_BASE, _SIZESPEC.pack(0, 0, 0, overhead_bytes, LINKLAYER_ETHERNET, 0, 0, 0))),)


def overhead_of(attributes: dict[int, bytes]) -> int:
    """The number of added bytes in a dumped TCA_STAB."""
    return int(_SIZESPEC.unpack_from(attributes[_BASE])[3]) if _BASE in attributes else 0


def size_text(overhead_bytes: int) -> str:
    """The same as arguments of tc(8), before the qdisc's kind."""
    return f"stab overhead {overhead_bytes} linklayer ethernet " if overhead_bytes else ""
