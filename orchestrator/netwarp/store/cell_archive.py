"""Packs a finished cell into one ZIP archive; members have the files' names in the cell's directory.

Equal cells give equal archives: members are sorted and carry no time stamps.
"""

from __future__ import annotations

import io
import shutil
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from ..core.errors import StoreError
from . import compressed

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that ZIP knows."""
MOST_BYTES = 1 << 34
"""Limit of a cell's expanded size: no capture comes near it, but an archive made to fill a disk would exceed it."""
BROKEN = (OSError, EOFError, ValueError, RuntimeError, struct.error, zlib.error, zipfile.BadZipFile)
"""Errors of reading a damaged archive (RuntimeError: it says that a member is encrypted)."""


def pack_cell(directory: Path) -> bytes:
    """The archive of a cell's directory. Symbolic links and other special files are left out. Raises StoreError."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        add_cell(packed, directory, "")
    return archive.getvalue()


def add_cell(archive: zipfile.ZipFile, directory: Path, prefix: str) -> None:
    """Add every file and every empty directory of a cell to an archive, below prefix. Raises StoreError."""
    try:
        for path in sorted(directory.rglob("*")):
            name = prefix + path.relative_to(directory).as_posix()
            if path.is_symlink():
                continue
            if path.is_dir() and not any(path.iterdir()):
                archive.writestr(zipfile.ZipInfo(f"{name}/", EPOCH), b"")
            elif path.is_file():
                member = zipfile.ZipInfo(name, EPOCH)
                member.external_attr = 0o644 << 16
                # what is Zstandard already only takes time
                kept = path.suffix == compressed.SUFFIX
                member.compress_type = zipfile.ZIP_STORED if kept else zipfile.ZIP_DEFLATED
                archive.writestr(member, path.read_bytes())
    except OSError as error:
        raise StoreError(f"{directory}: cannot be packed: {error}") from error


def unpack_cell(data: bytes, directory: Path) -> None:
    """Write the files of an archive into a new directory, replacing what is there. Raises StoreError.

    Nothing is written outside the directory, whatever names the archive holds.
    """
    shutil.rmtree(directory, ignore_errors=True)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            extract(archive, archive.infolist(), "", directory)
    except BROKEN as error:
        raise StoreError(f"{directory}: what came back of the cell cannot be written: {error}") from error


def extract(archive: zipfile.ZipFile, members: list[zipfile.ZipInfo], prefix: str, directory: Path) -> None:
    """Members of an archive, named below prefix, as files of a directory. Raises StoreError, OSError, BadZipFile."""
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise StoreError(
            f"{directory.name}: its archive expands to more than {MOST_BYTES >> 30} GiB, which no cell takes"
        )
    for member in members:
        name = PurePosixPath(member.filename.removeprefix(prefix))
        if name.is_absolute() or ".." in name.parts or not name.parts:
            raise StoreError(f"{directory.name}: its archive names {member.filename!r}, which lies outside of the cell")
        target = directory / name
        if member.is_dir():
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(archive.read(member))
