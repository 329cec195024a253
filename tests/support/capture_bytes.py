"""Captures as bytes: reads them, takes them apart, shifts their sequence numbers, and compares them."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path

import zstandard
from netwarp.captures import Capture

from support.captures import read


def read_bytes(*captures: bytes) -> Capture:
    with tempfile.TemporaryDirectory() as directory:
        return read(Path(directory), *captures)


def assert_same_tables(one: Capture, other: Capture, tables: Iterable[str], without: Collection[str] = ()) -> None:
    """Every row and column of these tables is equal, but for the columns `without`."""
    for table in tables:
        mine, theirs = getattr(one, table), getattr(other, table)
        assert len(mine) == len(theirs), table
        for column in set(mine.dtype.names or ()).difference(without):
            assert (mine[column] == theirs[column]).all(), (table, column)


def records(path: Path) -> list[tuple[int, bytes, int]]:
    """The records of a recorded (zstd, nanosecond, little-endian) capture."""
    data = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read()
    rows, offset = [], 24
    while offset < len(data):
        seconds, rest, size, length = struct.unpack_from("<IIII", data, offset)
        rows.append((seconds * 10**9 + rest, data[offset + 16 : offset + 16 + size], length))
        offset += 16 + size
    return rows


def shifted_sctp(frame: bytes, forward: int, backward: int) -> bytes:
    if frame[12:14] != b"\x08\x00" or frame[23] != 132:
        return frame
    out = bytearray(frame)
    dport = struct.unpack_from("!H", frame, 36)[0]
    mine, theirs = (forward, backward) if dport == 5001 else (backward, forward)

    def move(at: int, by: int) -> None:
        struct.pack_into("!I", out, at, (struct.unpack_from("!I", frame, at)[0] + by) % 2**32)

    at = 46
    while at + 4 <= len(frame):
        kind, _, length = struct.unpack_from("!BBH", frame, at)
        if kind == 0:
            move(at + 4, mine)
        elif kind in (1, 2):
            move(at + 16, mine)
        elif kind == 3:
            move(at + 4, theirs)
            gaps, duplicates = struct.unpack_from("!HH", frame, at + 12)
            for number in range(duplicates):
                move(at + 16 + gaps * 4 + number * 4, theirs)
        elif kind == 7:
            move(at + 4, theirs)
        at += (length + 3) // 4 * 4
    return bytes(out)
