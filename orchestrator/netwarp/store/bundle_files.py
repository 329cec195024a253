"""Unpacks a bundle: a tar archive, compressed by xz, of nothing but the files of a run. It may come from anywhere, so
every size is checked before anything of that size is read, and a name that no run has is refused.
"""

from __future__ import annotations

import lzma
import os
import re
import tarfile
from pathlib import Path, PurePosixPath
from typing import IO

from ..core.errors import StoreError, os_words
from ..core.limits import limits

OF_THE_RUN = ("manifest.json", "plan.json", "outputs.json", "calibration.json", "conclusion.json", "digests.json")
OF_A_CELL = (
    "cell.json", "outcome.json",
    *(f"derived/{name}.json" for name in ("packets", "judgement", "checks", "measurements")),
)  # fmt: skip
"""The files of a cell that a comparison reads: of captures by their hashes, and of numbers where those differ."""
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+@=,-]{0,254}"
NAMES = re.compile(
    "|".join(
        (
            *map(re.escape, OF_THE_RUN),
            rf"spec(?:/{_PART}){{1,4}}",
            rf"tables/{_PART}",
            rf"cells/{_PART}/(?:{'|'.join(map(re.escape, OF_A_CELL))})",
        )
    )
)
"""The names that a bundle may hold."""
MOST_OF_A_HEADER = 64 << 10
"""Bytes of the extended header of a file, which holds a long name."""
BLOCK, COPY = tarfile.BLOCKSIZE, 1 << 20
XZ_MEMORY = 128 << 20
"""xz -9 takes 65 MiB; a header may ask for 4 GiB."""


def refuse_unpackable(name: str, size: int) -> None:
    """Raises StoreError of a file that `unpack_bundle` would refuse."""
    if not NAMES.fullmatch(name):
        raise StoreError(f"{name!r}: no bundle may hold a file of that name: letters, digits and _.+@=,- name one")
    if size > limits().file_bytes:
        raise StoreError(f"{name}: has {limits().beyond('file_bytes')}")


def unpack_bundle(path: Path, directory: Path) -> None:
    """Write the files of a bundle into an empty directory. Raises StoreError: it is none, it is damaged, or it holds
    more than the limits; what was written until then stays.
    """
    try:
        with open(path, "rb") as packed:
            _Unpacker(path, packed, directory).all()
    except lzma.LZMAError as error:
        raise StoreError(f"{path}: is no bundle that can be read ({error})") from error
    except OSError as error:
        raise StoreError(f"{path}: cannot be unpacked: {os_words(error)}") from error


class _Unpacker:
    """tarfile would read a header of any size at once, and keep every member: this reads header by header."""

    def __init__(self, path: Path, packed: IO[bytes], directory: Path) -> None:
        self._path, self._packed, self._root = path, packed, os.fspath(directory)
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        self._bytes = self._members = 0
        self._made: set[str] = set()

    def all(self) -> None:
        long_name: str | None = None
        while (entry := self._header()) is not None:
            if entry.type == tarfile.XHDTYPE and long_name is None:
                long_name = self._long_name(entry)
                continue
            if not (
                entry.type in tarfile.REGULAR_TYPES and entry.type not in (tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE)
            ):
                raise self._none(f"it holds {entry.name[:100]!r}, which is no file")
            self._file(entry.name if long_name is None else long_name, entry.size)
            long_name = None

    def _header(self) -> tarfile.TarInfo | None:
        """The next header; None at the end of the archive."""
        block = self._read(BLOCK)
        if not block.strip(b"\0"):
            return None
        try:
            entry = tarfile.TarInfo.frombuf(block, "utf-8", "strict")
        except (tarfile.TarError, ValueError) as error:
            raise self._none(f"a header in it is damaged: {error}") from error
        if entry.size < 0:
            raise self._none(f"{entry.name[:100]!r} has a negative size")
        return entry

    def _long_name(self, entry: tarfile.TarInfo) -> str:
        """The name in an extended header (POSIX pax: "length key=value" lines)."""
        if entry.size > MOST_OF_A_HEADER:
            raise self._none(f"a header in it claims {entry.size} bytes")
        records = self._read(_padded(entry.size))[: entry.size]
        name = None
        while records:
            length, space, rest = records.partition(b" ")
            if not (space and length.isdigit() and len(length) < 6 and len(length) < int(length) <= len(records)):
                raise self._none("an extended header in it is damaged")
            key, _, value = rest[: int(length) - len(length) - 2].partition(b"=")
            if key != b"path":
                raise self._none(f"an extended header in it holds {key[:40]!r}, and a bundle's only a name")
            name = value.decode("utf-8", errors="replace")
            records = records[int(length) :]
        if name is None:
            raise self._none("an extended header in it is empty")
        return name

    def _file(self, name: str, size: int) -> None:
        if not NAMES.fullmatch(name):
            raise self._none(f"it holds {name[:100]!r}, which is no file of a run")
        if size > limits().file_bytes:
            raise StoreError(f"{self._path}: {name} has {limits().beyond('file_bytes')}")
        self._members += 1
        if self._members > limits().members:
            raise StoreError(f"{self._path}: holds {limits().beyond('members')}")
        self._bytes += size
        if self._bytes > limits().bytes:
            raise StoreError(f"{self._path}: expands to {limits().beyond('bytes')}")
        folder = os.fspath(PurePosixPath(name).parent)
        if folder not in self._made:
            os.makedirs(os.path.join(self._root, folder), exist_ok=True)
            self._made.add(folder)
        try:
            with open(os.path.join(self._root, name), "xb") as file:
                left = size
                while left:
                    block = self._read(min(left, COPY))
                    file.write(block)
                    left -= len(block)
        except FileExistsError as error:
            raise self._none(f"it holds {name} twice") from error
        self._read(_padded(size) - size)

    def _read(self, count: int) -> bytes:
        blocks: list[bytes] = []
        left = count
        while left:
            packed = self._packed.read(COPY) if self._xz.needs_input and not self._xz.eof else b""
            if self._xz.eof or (self._xz.needs_input and not packed):
                raise StoreError(f"{self._path}: is no bundle that can be read (it ends in the middle)")
            blocks.append(self._xz.decompress(packed, left))
            left -= len(blocks[-1])
        return b"".join(blocks)

    def _none(self, why: str) -> StoreError:
        return StoreError(f"{self._path}: is no bundle of a run: {why}; netwarp archive bundle RUN writes one")


def _padded(size: int) -> int:
    return -(-size // BLOCK) * BLOCK
