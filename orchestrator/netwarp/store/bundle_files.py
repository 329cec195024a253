"""Unpacks a bundle: a tar archive, compressed by xz, of nothing but the files of a run. It may come from anywhere, so
every size is checked before anything of that size is read, and a name that no run has is refused.
"""

from __future__ import annotations

import lzma
import os
import re
from pathlib import Path, PurePosixPath
from typing import IO

from ..core.archives import COPY, TarMembers
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
    """Writes the files of one bundle."""

    def __init__(self, path: Path, packed: IO[bytes], directory: Path) -> None:
        self._path, self._packed, self._root = path, packed, os.fspath(directory)
        self._xz = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=XZ_MEMORY)
        self._bytes = self._count = 0
        self._made: set[str] = set()
        self._members = TarMembers(self._read, self._none)

    def all(self) -> None:
        while (entry := self._members.next()) is not None:
            if entry.isdir():
                raise self._none(f"it holds {entry.name[:100]!r}, which is no file")
            self._file(entry.name, entry.size)

    def _file(self, name: str, size: int) -> None:
        if not NAMES.fullmatch(name):
            raise self._none(f"it holds {name[:100]!r}, which is no file of a run")
        if size > limits().file_bytes:
            raise StoreError(f"{self._path}: {name} has {limits().beyond('file_bytes')}")
        self._count += 1
        if self._count > limits().members:
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
                for block in self._members.content(size):
                    file.write(block)
        except FileExistsError as error:
            raise self._none(f"it holds {name} twice") from error

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
