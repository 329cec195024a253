"""Builds pcapng files for tests; every field may have a wrong value."""

from __future__ import annotations

import struct

SECTION, INTERFACE, OLD, SIMPLE, STATISTICS, PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6


class Writer:
    """Blocks in one byte order."""

    def __init__(self, order: str = "<") -> None:
        self.order = order

    def pack(self, layout: str, *values: int) -> bytes:
        return struct.pack(self.order + layout, *values)

    def block(self, kind: int, body: bytes, *, length: int | None = None, again: int | None = None) -> bytes:
        body += b"\0" * (-len(body) % 4)
        said = len(body) + 12 if length is None else length
        return self.pack("II", kind, said) + body + self.pack("I", said if again is None else again)

    def option(self, code: int, value: bytes, *, length: int | None = None) -> bytes:
        return self.pack("HH", code, len(value) if length is None else length) + value + b"\0" * (-len(value) % 4)

    def section(self, *, major: int = 1, options: bytes = b"") -> bytes:
        return self.block(SECTION, self.pack("IHHq", 0x1A2B3C4D, major, 0, -1) + options)

    def interface(
        self,
        link_type: int = 1,
        *,
        snaplen: int = 0,
        resolution: int | None = None,
        offset_s: int | None = None,
        name: str = "",
        options: bytes = b"",
    ) -> bytes:
        if name:
            options += self.option(2, name.encode())
        if resolution is not None:
            options += self.option(9, bytes([resolution]))
        if offset_s is not None:
            options += self.option(14, self.pack("q", offset_s))
        end = self.option(0, b"") if options else b""
        return self.block(INTERFACE, self.pack("HHI", link_type, 0, snaplen) + options + end)

    def packet(
        self, ticks: int, data: bytes, length: int | None = None, *, interface: int = 0, captured: int | None = None
    ) -> bytes:
        sizes = (len(data) if captured is None else captured, len(data) if length is None else length)
        body = self.pack("IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, *sizes) + data + b"\0" * (-len(data) % 4)
        return self.block(PACKET, body + self.option(2, self.pack("I", 0)) + self.option(0, b""))

    def old_packet(self, ticks: int, data: bytes, *, interface: int = 0) -> bytes:
        sizes = (len(data), len(data))
        return self.block(OLD, self.pack("HHIIII", interface, 9, ticks >> 32, ticks & 0xFFFFFFFF, *sizes) + data)

    def simple_packet(self, data: bytes, length: int | None = None) -> bytes:
        return self.block(SIMPLE, self.pack("I", len(data) if length is None else length) + data)

    def statistics(self, interface: int, *, received: int, dropped: int) -> bytes:
        options = self.option(4, self.pack("Q", received)) + self.option(5, self.pack("Q", dropped))
        return self.block(STATISTICS, self.pack("III", interface, 0, 0) + options + self.option(0, b""))
