"""The first packet that differs between two captures: its number, and when it was captured in either."""

from __future__ import annotations

import contextlib
import io
import itertools
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import zstandard

from ..core.errors import CaptureError
from ..core.inside import inside
from ..core.limits import limits
from ..core.numbers import fixed, given
from ..core.units import counted
from .packet_meaning import Clauses, identity, meaning
from .random_fields import STAMPS, Plain

SHOWN_BYTES = 32
LOOKED_AHEAD = 64
"""Packets among which the other capture's packet is looked for."""
FILE_HEADER_BYTES, RECORD_HEADER_BYTES = 24, 16
LARGEST_PACKET = 1 << 20
LARGEST_WINDOW = 128 << 20
BUFFER_BYTES = 1 << 18
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
        if self.what:
            times = {side: fixed((ns - t0_ns) / 1e9, 9) for side, ns in zip("AB", (self.a_ns, self.b_ns), strict=True)
                     if ns is not None}  # fmt: skip
            equal = self.a_ns == self.b_ns
            when = f"at {times['A']} s" if equal else ", ".join(f"at {at} s in {side}" for side, at in times.items())
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
    first, second = _records(io.BytesIO(a)), _records(io.BytesIO(b))
    return _first_difference(first, second)


def _first_difference(first: Iterator[bytes], second: Iterator[bytes]) -> PacketDifference | None:
    number = 0
    while True:
        number += 1
        packet, other = next(first, None), next(second, None)
        if packet != other:
            return PacketDifference(number, _time_ns(packet) if packet else None, _time_ns(other) if other else None)
        if packet is None:
            return None


def first_behaviour_difference(a: bytes, b: bytes, within_ns: int) -> PacketDifference | None:
    """The first packet that differs in more than what is drawn at random (random_fields.py), or whose time differs by
    more than that; None: there is none. Where times may differ, TCP's time stamps may by one tick. Raises CaptureError
    as first_packet_difference().
    """
    return _behaviour_difference(_records(io.BytesIO(a)), _records(io.BytesIO(b)), within_ns)


def _behaviour_difference(a: Iterator[bytes], b: Iterator[bytes], within_ns: int) -> PacketDifference | None:
    first, second = _packets(a), _packets(b)
    for number, (packet, other) in enumerate(itertools.zip_longest(first, second), 1):
        if packet is None or other is None:
            last = f"{'A' if packet is None else 'B'} has no more packets"
            one = packet or other
            assert one is not None
            what = f"{meaning(one.clauses)} in {'B' if packet is None else 'A'}; {last}"
            return PacketDifference(number, packet.ns if packet else None, other.ns if other else None, what)
        apart_ns = abs(packet.ns - other.ns)
        if packet.clauses != other.clauses and not _alike(packet.clauses, other.clauses, within_ns):
            following = [[each.clauses for each in itertools.islice(rest, LOOKED_AHEAD)] for rest in (first, second)]
            what = _unlike(packet.clauses, other.clauses, following[0], following[1])
            return PacketDifference(number, packet.ns, other.ns, what)
        if apart_ns > within_ns:
            what = f"{meaning(packet.clauses)}, {given(apart_ns / 1e3)} us apart"
            return PacketDifference(number, packet.ns, other.ns, what)
    return None


class _Packet(NamedTuple):
    ns: int
    clauses: Clauses


def _packets(records: Iterable[bytes]) -> Iterator[_Packet]:
    reader = Plain()
    for record in records:
        yield _Packet(_time_ns(record), reader.clauses(record[RECORD_HEADER_BYTES:]))


def _alike(a: Clauses, b: Clauses, within_ns: int) -> bool:
    """True if they are equal but for clocks read a moment apart: a tick of TCP's time stamps may lie between."""
    if not within_ns or len(a) != len(b):
        return False
    return all(
        x == y or (x[0] == y[0] and x[0] in STAMPS and isinstance(x[1], int) and isinstance(y[1], int)
                   and abs(x[1] - y[1]) <= 1)
        for x, y in zip(a, b, strict=True)
    )  # fmt: skip


def _unlike(a: Clauses, b: Clauses, after_a: Sequence[Clauses], after_b: Sequence[Clauses]) -> str:
    """How two packets of one number differ. The same packet: by its first field that differs. Two packets: what each of
    them does, and how many packets later the other capture has it, if it has it among those that follow.
    """
    if identity(a) == identity(b):
        return f"{meaning(a)}: {_field(a, b)}"
    later = (_later("A", b, after_a), _later("B", a, after_b))
    return "; ".join([f"{meaning(a)} in A, {meaning(b)} in B", *filter(None, later)])


def _later(side: str, packet: Clauses, following: Sequence[Clauses]) -> str:
    wanted = identity(packet)
    number = next((number for number, other in enumerate(following, 1) if identity(other) == wanted), None)
    if number is None:
        return f"{side} does not have {meaning(packet)} in the next {len(following)} packets" if following else ""
    return f"{side} has {meaning(packet)} {counted(number, 'packet')} later"


def _field(a: Clauses, b: Clauses) -> str:
    """The first field of the same packet that differs, with both values."""
    pairs = zip(a, b, strict=False)
    x, y = next(((one, two) for one, two in pairs if one != two), (None, None))
    if x is None or y is None:
        return "one has more fields than the other"
    if x[0] != y[0]:
        return f"{x[0]} in A where B has {y[0]}"
    return f"{x[0]} {_shown(x[1])} in A, {_shown(y[1])} in B"


def _shown(value: object) -> str:
    if isinstance(value, bytes):
        return value[:SHOWN_BYTES].hex() + ("..." if len(value) > SHOWN_BYTES else "")
    return ", ".join(map(_shown, value)) if isinstance(value, tuple) else str(value)


def packets_since(file: Path, since_ns: int, folder: Path) -> Path:
    """A plain pcap file in a folder with the packets of a cell's capture from a time (ns since 1970) on. Raises
    CaptureError as first_packet_difference().
    """
    path = folder / file.name.removesuffix(".zst")
    with _opened(file) as plain, inside(path).open("wb") as kept:
        kept.write(header := plain.read(FILE_HEADER_BYTES))
        kept.writelines(record for record in _records(plain, header) if _time_ns(record) >= since_ns)
    return path


def behaviour_difference_of_files(a: Path, b: Path, within_ns: int) -> PacketDifference | None:
    """The same for files that may be compressed with Zstandard."""
    with _records_of(a) as first, _records_of(b) as second:
        return _behaviour_difference(first, second, within_ns)


def _records(plain: IO[bytes], header: bytes | None = None) -> Iterator[bytes]:
    """The packets with their headers, one at a time. header: of the file, where it was read before. Raises
    CaptureError, also of more packets than a cell may have.
    """
    header = plain.read(FILE_HEADER_BYTES) if header is None else header
    if len(header) < FILE_HEADER_BYTES or struct.unpack_from("=I", header)[0] != MAGIC_NS:
        raise CaptureError("is no pcap file with times in nanoseconds of this machine's byte order")
    at, most = FILE_HEADER_BYTES, limits().cell_packets
    for number in itertools.count():
        record = plain.read(RECORD_HEADER_BYTES)
        if not record:
            return
        size = struct.unpack_from("=I", record, 8)[0] if len(record) == RECORD_HEADER_BYTES else 0
        if number >= most:
            raise CaptureError(f"has {limits().beyond('cell_packets')}")
        if size > LARGEST_PACKET:
            raise CaptureError(f"the packet at byte {at} has {size} bytes")
        record += plain.read(size)
        if len(record) < RECORD_HEADER_BYTES + size:
            raise CaptureError(f"the packet at byte {at} is cut off")
        yield record
        at += len(record)


def _time_ns(record: bytes) -> int:
    seconds, nanoseconds = struct.unpack_from("=II", record)
    return int(seconds * 10**9 + nanoseconds)


def difference_of_files(a: Path, b: Path) -> PacketDifference | None:
    """The same for files that may be compressed with Zstandard."""
    with _records_of(a) as first, _records_of(b) as second:
        return _first_difference(first, second)


@contextlib.contextmanager
def _records_of(path: Path) -> Iterator[Iterator[bytes]]:
    with _opened(path) as plain:
        yield _records(plain)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """A capture's plain bytes, expanded as they are read: a small file may hold gigabytes. Raises CaptureError."""
    try:
        with inside(path).open("rb") as file:
            if path.suffix != ".zst":
                yield file
                return
            expanding = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW)
            with expanding.stream_reader(file, read_across_frames=True, closefd=False) as plain:
                yield io.BufferedReader(plain, BUFFER_BYTES)
    except (OSError, zstandard.ZstdError) as error:
        raise CaptureError(f"{path}: cannot be read: {error}") from error
