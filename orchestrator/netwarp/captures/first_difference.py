"""The first packet that differs between two captures: its number, and when it was captured in either."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard

from ..core.errors import CaptureError
from ..core.numbers import fixed, given
from .random_fields import STAMPS, Plain

SHOWN_BYTES = 32
Clauses = tuple[tuple[str, object], ...]
FILE_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
# A pcap file with times in ns, in the byte order of the machine that reads it: what cell-init writes
MAGIC_NS = 0xA1B23C4D


@dataclass(frozen=True, slots=True)
class PacketDifference:
    """The first packet that differs. number: of the packet, from 1. a_ns, b_ns: its capture time in either file, ns
    since 1970; None: that file has no more packets. what: the field that differs, with both values; "": not looked for.
    """

    number: int
    a_ns: int | None
    b_ns: int | None
    what: str = ""

    def words(self, t0_ns: int) -> str:
        """The difference as a clause; times count from T0."""
        if self.what and self.a_ns is not None and self.b_ns is not None:
            a_s, b_s = (fixed((at - t0_ns) / 1e9, 9) for at in (self.a_ns, self.b_ns))
            when = f"at {a_s} s" if self.a_ns == self.b_ns else f"at {a_s} s in A, {b_s} s in B"
            return f"packet {self.number}, {when}: {self.what}"
        if self.a_ns == self.b_ns and self.a_ns is not None:
            return f"packet {self.number}, at {fixed((self.a_ns - t0_ns) / 1e9, 9)} s: its bytes differ"
        a, b = (
            "no more packets" if at is None else f"one at {fixed((at - t0_ns) / 1e9, 9)} s"
            for at in (self.a_ns, self.b_ns)
        )
        return f"packet {self.number}: {a} here, {b} there"


def first_packet_difference(a: bytes, b: bytes) -> PacketDifference | None:
    """The first difference between two plain pcap files as cell-init writes them; None if all packets and times are
    equal.

    Raises CaptureError if one is not such a file or is cut off.
    """
    first, second = _records(a), _records(b)
    number = 0
    while True:
        number += 1
        packet, other = next(first, None), next(second, None)
        if packet != other:
            return PacketDifference(number, _time_ns(packet), _time_ns(other))
        if packet is None:
            return None


def first_behaviour_difference(a: bytes, b: bytes, within_ns: int) -> PacketDifference | None:
    """The first packet that differs in more than what is drawn at random (random_fields.py), or whose time differs by
    more than that; None: there is none. Where times may differ, TCP's time stamps may by one tick. Raises CaptureError
    as first_packet_difference().
    """
    first, second = Plain(), Plain()
    for number, (packet, other) in enumerate(itertools.zip_longest(_records(a), _records(b)), 1):
        times = _time_ns(packet), _time_ns(other)
        if packet is None or other is None:
            return PacketDifference(number, *times)
        ours, theirs = (
            reader.clauses(record[RECORD_HEADER_BYTES:]) for reader, record in ((first, packet), (second, other))
        )
        if ours != theirs and not _alike(ours, theirs, within_ns):
            return PacketDifference(number, *times, what=_unlike(ours, theirs))
        apart_ns = abs((times[0] or 0) - (times[1] or 0))
        if apart_ns > within_ns:
            return PacketDifference(number, *times, what=f"the same packet, {given(apart_ns / 1e3)} us apart")
    return None


def _alike(a: Clauses, b: Clauses, within_ns: int) -> bool:
    """True if they are equal but for clocks read a moment apart: a tick of TCP's time stamps may lie between."""
    if not within_ns or len(a) != len(b):
        return False
    return all(
        x == y or (x[0] == y[0] and x[0] in STAMPS and isinstance(x[1], int) and isinstance(y[1], int)
                   and abs(x[1] - y[1]) <= 1)
        for x, y in zip(a, b, strict=True)
    )  # fmt: skip


def _unlike(a: Clauses, b: Clauses) -> str:
    """The first clause that differs, with both values."""
    pairs = zip(a, b, strict=False)
    x, y = next(((one, two) for one, two in pairs if one != two), (None, None))
    if x is None or y is None:
        return "one has more of it than the other"
    if x[0] != y[0]:
        return f"{x[0]} in A where B has {y[0]}"
    return f"{x[0]}: {_shown(x[1])} in A, {_shown(y[1])} in B"


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return value[:SHOWN_BYTES].hex() + ("..." if len(value) > SHOWN_BYTES else "")
    return ", ".join(map(_shown, value)) if isinstance(value, tuple) else str(value)


def behaviour_difference_of_files(a: Path, b: Path, within_ns: int) -> PacketDifference | None:
    """The same for files that may be compressed with Zstandard."""
    return first_behaviour_difference(_plain(a), _plain(b), within_ns)


def _records(plain: bytes) -> Iterator[bytes]:
    if len(plain) < FILE_HEADER_BYTES or struct.unpack_from("=I", plain)[0] != MAGIC_NS:
        raise CaptureError("is no pcap file with times in nanoseconds of this machine's byte order")
    at = FILE_HEADER_BYTES
    while at < len(plain):
        if at + RECORD_HEADER_BYTES > len(plain):
            raise CaptureError(f"the packet at byte {at} is cut off")
        end = at + RECORD_HEADER_BYTES + struct.unpack_from("=I", plain, at + 8)[0]
        if end > len(plain):
            raise CaptureError(f"the packet at byte {at} is cut off")
        yield plain[at:end]
        at = end


def _time_ns(record: bytes | None) -> int | None:
    if record is None:
        return None
    seconds, nanoseconds = struct.unpack_from("=II", record)
    return int(seconds * 10**9 + nanoseconds)


def difference_of_files(a: Path, b: Path) -> PacketDifference | None:
    """The same for files that may be compressed with Zstandard."""
    return first_packet_difference(*(_plain(path) for path in (a, b)))


def _plain(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return zstandard.ZstdDecompressor().decompress(data) if path.suffix == ".zst" else data
    except (OSError, zstandard.ZstdError) as error:
        raise CaptureError(f"{path}: cannot be read: {error}") from error
