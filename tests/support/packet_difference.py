"""The first packet that differs between two runs of a cell: number, time, interface and kind."""

from __future__ import annotations

import hashlib
import itertools
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from support import cell_init_kit as kit
from support.chain_kit import unpacked
from support.chain_packets import describe

FILE_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
HASH_BYTES = 8


def records(plain: bytes) -> Iterator[bytes]:
    """The records of a pcap file, headers included."""
    at = FILE_HEADER_BYTES
    while at < len(plain):
        (captured,) = struct.unpack_from("<I", plain, at + 8)
        end = at + RECORD_HEADER_BYTES + captured
        assert end <= len(plain), f"the record at byte {at} is cut off"
        yield plain[at:end]
        at = end


def packet_hashes(plain: bytes) -> tuple[bytes, ...]:
    """A hash of each packet and its time stamp."""
    return tuple(hashlib.blake2b(record, digest_size=HASH_BYTES).digest() for record in records(plain))


def plain_captures(cell: Path) -> Iterator[tuple[str, bytes]]:
    """(<node>-<interface>, plain pcap) of a finished cell's directory."""
    for path in sorted((cell / "capture").glob("*.pcap.zst")):
        yield path.name.removesuffix(".pcap.zst"), unpacked(path.read_bytes())


def cell_hashes(cell: Path) -> dict[str, tuple[bytes, ...]]:
    """packet_hashes() by <node>-<interface>."""
    return {name: packet_hashes(plain) for name, plain in plain_captures(cell)}


@dataclass(frozen=True)
class Difference:
    """number: of the packet in its capture, from 1. t_ns: from T0, the earlier of the two. a, b: what each run has
    there; empty: it has no such packet."""

    interface: str
    number: int
    t_ns: int
    a: str
    b: str
    total_a: int
    total_b: int

    def __str__(self) -> str:
        there = (
            f"{self.interface}, packet {self.number:,} of {self.total_a:,} and {self.total_b:,}, T0 + {self.t_ns} ns"
        )
        return f"{there}: {self.a or 'no packet'} | {self.b or 'no packet'}"


def _first(a: Iterable[bytes], b: Iterable[bytes]) -> tuple[int, bytes | None, bytes | None] | None:
    for number, (one, other) in enumerate(itertools.zip_longest(a, b), 1):
        if one != other:
            return number, one, other
    return None


def _time(record: bytes | None) -> int | None:
    if record is None:
        return None
    seconds, nanoseconds = struct.unpack_from("<II", record)
    return int(seconds * kit.S + nanoseconds - kit.T0)


def words(record: bytes | None) -> str:
    """A record in words."""
    if record is None:
        return ""
    (length,) = struct.unpack_from("<I", record, 12)
    return f"T0 + {_time(record)} ns, {describe(record[RECORD_HEADER_BYTES:], length)}"


def first_difference(a: Path, b: Path) -> Difference | None:
    """The earliest packet that is not the same in two directories of one cell; None: every capture is equal."""
    ones, others = dict(plain_captures(a)), dict(plain_captures(b))
    assert list(ones) == list(others), f"captures of other interfaces: {list(ones)}, {list(others)}"
    found = []
    for name, plain in ones.items():
        if plain == others[name]:
            continue
        difference = _first(records(plain), records(others[name]))
        if difference is None:
            raise AssertionError(f"{name}: equal packets behind unequal file headers")
        number, one, other = difference
        times = [t for t in (_time(one), _time(other)) if t is not None]
        totals = [sum(1 for _ in records(text)) for text in (plain, others[name])]
        found.append(Difference(name, number, min(times), words(one), words(other), *totals))
    return min(found, key=lambda difference: difference.t_ns, default=None)
