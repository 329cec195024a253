"""Archives from anywhere, tar and ZIP, of which every size is checked before anything of that size is read or kept.
Standard library only.
"""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO

from .limits import limits

BROKEN = (OSError, EOFError, ValueError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
"""Errors of reading a damaged archive (RuntimeError: it says that a member is encrypted)."""
OURS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENTRY = struct.Struct("<4s24xHHH12x")
"""An entry of a ZIP file's directory: its signature, and the lengths of the name, of more fields and of a comment."""
BLOCK, COPY = tarfile.BLOCKSIZE, 1 << 20
MOST_OF_A_HEADER = 64 << 10
"""Bytes of the extended header of a file, which holds a long name."""


class TarMembers:
    """The members of a tar archive, header by header: tarfile would read a header of any size at once, and keep all.

    read: gives exactly as many bytes, or raises. refuse: makes the exception of a sentence.
    """

    def __init__(self, read: Callable[[int], bytes], refuse: Callable[[str], Exception]) -> None:
        self._read, self._refuse = read, refuse

    def next(self) -> tarfile.TarInfo | None:
        """The header of the next file or directory; None at the end. A file's content is to be read before the next."""
        long_name = None
        while (entry := self._header()) is not None:
            if entry.type != tarfile.XHDTYPE or long_name is not None:
                break
            long_name = self._long_name(entry)
        if entry is None:
            return None
        plain = entry.type in tarfile.REGULAR_TYPES and entry.type not in (tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE)
        if not (plain or entry.isdir()):
            raise self._refuse(f"it holds {entry.name[:100]!r}, which is no file")
        if long_name is not None:
            entry.name = long_name
        return entry

    def content(self, size: int) -> Iterator[bytes]:
        """The content of the file whose header came last, in parts."""
        left = size
        while left:
            block = self._read(min(left, COPY))
            yield block
            left -= len(block)
        self._read(_padded(size) - size)

    def _header(self) -> tarfile.TarInfo | None:
        block = self._read(BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.TarError, ValueError) as error:
            raise self._refuse(f"a header in it is damaged: {error}") from error
        if entry.size < 0:
            raise self._refuse(f"{entry.name[:100]!r} has a negative size")
        return entry

    def _long_name(self, entry: tarfile.TarInfo) -> str:
        """The name in an extended header (POSIX pax: "length key=value" lines)."""
        if entry.size > MOST_OF_A_HEADER:
            raise self._refuse(f"a header in it claims {entry.size} bytes")
        records = self._read(_padded(entry.size))[: entry.size]
        name = None
        while records:
            length, space, rest = records.partition(b" ")
            if not (space and length.isdigit() and len(length) < 6 and len(length) < int(length) <= len(records)):
                raise self._refuse("an extended header in it is damaged")
            key, _, value = rest[: int(length) - len(length) - 2].partition(b"=")
            if key != b"path":
                raise self._refuse(f"an extended header in it holds {key[:40]!r}, and one of ours only a name")
            name = value.decode("utf-8", errors="replace")
            records = records[int(length) :]
        if name is None:
            raise self._refuse("an extended header in it is empty")
        return name


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK


def open_archive(file: IO[bytes]) -> zipfile.ZipFile:
    """A ZIP file of which every member can be read within the limits. zipfile keeps all its members in memory, and a
    compressed one is read at once. Raises BROKEN.
    """
    _count_members(file)
    archive = zipfile.ZipFile(file)
    for member in archive.infolist():
        if member.compress_type not in OURS:
            raise zipfile.BadZipFile(f"{member.filename[:80]!r} is compressed in a way that netwarp never does")
        stored = member.compress_type == zipfile.ZIP_STORED
        limit = "whole_bytes" if stored else "file_bytes"
        if member.file_size > getattr(limits(), limit):
            raise ValueError(f"{member.filename} expands to {limits().beyond(limit)}")
    return archive


def _count_members(file: IO[bytes]) -> None:
    """Refuse a file whose directory has more entries than the limit, before any of them is kept. Raises ValueError."""
    end = zipfile._EndRecData(file)  # type: ignore[attr-defined]
    if not end:
        return  # no ZIP file: zipfile says so
    size, place = end[5], end[9] - end[5] - (76 if end[0] == b"PK\6\6" else 0)
    if size > limits().file_bytes:
        raise ValueError(f"its directory has {limits().beyond('file_bytes')}")
    file.seek(max(0, place))
    count, read = 0, 0
    while read < size and len(entry := file.read(ENTRY.size)) == ENTRY.size:
        signature, *lengths = ENTRY.unpack(entry)
        count += 1
        if signature != b"PK\1\2" or count > limits().members:
            break
        file.seek(sum(lengths), io.SEEK_CUR)
        read += ENTRY.size + sum(lengths)
    file.seek(0)
    if count > limits().members:
        raise ValueError(f"holds {limits().beyond('members')}")
