"""MPTCP packets put together by hand (RFC 8684)."""

from __future__ import annotations

import hashlib
import socket
import struct

from netwarp.captures.mptcp.subflows import token_of

MS = 1_000_000
KEYS = 0x1122334455667788, 0x99AABBCCDDEEFF00
SYN, ACK, FIN, RST = 2, 16, 1, 4


def first_number(key: int) -> int:
    """The initial data sequence number that a key gives: the last 64 bits of its SHA-256 (RFC 8684 3.1)."""
    return int.from_bytes(hashlib.sha256(key.to_bytes(8, "big")).digest()[-8:], "big")


def option(subtype: int, rest: bytes, low: int = 0) -> bytes:
    """An MPTCP option (RFC 8684 3): subtype and low nibble, then the rest."""
    return struct.pack("!BBB", 30, 3 + len(rest), subtype << 4 | low) + rest


def capable(*keys: int, version: int = 1) -> bytes:
    return option(0, b"\x81" + b"".join(key.to_bytes(8, "big") for key in keys), version)


def dss(dsn: int, seq: int, size: int, flags: int = 0x0C) -> bytes:
    """A mapping with a 64-bit number; seq relative to the subflow's initial one."""
    return option(2, struct.pack("!BQIH", flags, dsn % 2**64, seq, size))


def segment(seq: int, payload: int = 0, *options: bytes, flags: int = ACK, path: int = 1, back: bool = False) -> bytes:
    """10.<path>.0.1:1000 to 10.<path>.0.2:80; sequence numbers count from 0 on both sides."""
    ends = [f"10.{path}.0.1", f"10.{path}.0.2"]
    ports = [1000, 80]
    ends, ports = (ends[::-1], ports[::-1]) if back else (ends, ports)
    raw = b"".join(options)
    raw += b"\1" * (-len(raw) % 4)
    header = struct.pack("!HHIIHHHH", *ports, seq, 1, (5 + len(raw) // 4) << 12 | flags, 1000, 0, 0)
    body = header + raw + b"x" * payload
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 0, 0, 64, 6, 0)
    return b"\2\0\0\0\0\2\2\0\0\0\0\1\x08\0" + ip + b"".join(socket.inet_aton(end) for end in ends) + body


def opened(*options: bytes, version: int = 1) -> list[bytes]:
    """MP_CAPABLE as version 1 does it: no key on the SYN. options: more of them, on both SYNs."""
    return [
        segment(0, 0, capable(version=version), *options, flags=SYN),
        segment(0, 0, capable(KEYS[1], version=version), *options, flags=SYN | ACK, back=True),
        segment(1, 0, capable(*KEYS, version=version)),
    ]


def joined(
    path: int = 2, *, back: bool = False, version: int = 1, backup: int = 0, token: int | None = None
) -> list[bytes]:
    """MP_JOIN of the other subflow, by the opener or (back) by the other host, to the host whose token it names."""
    asked = token_of(KEYS[0 if back else 1], version) if token is None else token
    return [
        segment(0, 0, option(1, struct.pack("!BII", 7, asked, 5), backup), flags=SYN, path=path, back=back),
        segment(0, 0, option(1, struct.pack("!BQI", 0, 1, 6)), flags=SYN | ACK, path=path, back=not back),
        segment(1, 0, option(1, b"\0" + b"h" * 20), path=path, back=back),
    ]


def sent(dsn: int, seq: int, path: int, size: int = 100, *, back: bool = False, host: int = 0) -> bytes:
    """`size` bytes of data from number `dsn` of the connection on."""
    return segment(seq, size, dss(first_number(KEYS[host]) + 1 + dsn, seq, size), path=path, back=back)
