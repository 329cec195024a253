"""A finished cell's files in one piece: as a ZIP archive, the form in which runs are packed, or as bytes for the way
from the machine where it ran.

Equal cells give equal bytes: files are sorted and carry no time stamps.
"""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import msgspec

from ..core.archives import BROKEN, open_archive
from ..core.errors import StoreError
from ..core.inside import InsidePath, inside
from ..core.limits import limits
from . import compressed

EPOCH = (1980, 1, 1, 0, 0, 0)
"""The first time that ZIP knows."""
Files = Iterable[tuple[str, bytes | None]]
"""(name in the cell's directory, content); None: an empty directory."""


def pack_cell(directory: Path) -> bytes:
    """The archive of a cell's directory. Symbolic links and other special files are left out. Raises StoreError."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        for name, content in _files(directory):
            if content is None:
                packed.writestr(zipfile.ZipInfo(f"{name}/", EPOCH), b"")
                continue
            member = zipfile.ZipInfo(name, EPOCH)
            member.external_attr = 0o644 << 16
            # what is Zstandard already only takes time
            kept = name.endswith(compressed.SUFFIX)
            member.compress_type = zipfile.ZIP_STORED if kept else zipfile.ZIP_DEFLATED
            packed.writestr(member, content)
    return archive.getvalue()


def packable(directory: Path) -> bool:
    """True if a cell's archive could be read again within the limits: each is in memory whole. Raises OSError."""
    return sum(path.lstat().st_size for path in inside(directory).rglob("*")) <= limits().whole_bytes


def unpack_cell(data: bytes, directory: Path) -> None:
    """Write the files of an archive into a new directory, replacing what is there. Raises StoreError.

    Nothing is written outside the directory, whatever names the archive holds.
    """
    try:
        with open_archive(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > limits().bytes:
                raise StoreError(f"{directory.name}: its archive expands to {limits().beyond('bytes')}")
            _write(
                ((member.filename, None if member.is_dir() else archive.read(member)) for member in members), directory
            )
    except BROKEN as error:
        raise StoreError(f"{directory}: its archive cannot be unpacked: {error}") from error


def cell_to_bytes(directory: Path) -> bytes:
    """A cell's directory as MessagePack, nothing compressed. Raises StoreError, also of a file of 4 GiB, which is more
    than MessagePack can hold.
    """
    try:
        return msgspec.msgpack.encode(list(_files(directory)))
    except (ValueError, msgspec.MsgspecError) as error:
        raise StoreError(f"{directory}: cannot be sent: {error}") from error


def cell_from_bytes(data: bytes, directory: Path) -> None:
    """Write the files of `cell_to_bytes` into a new directory, replacing what is there, and nothing outside of it.
    Raises StoreError.
    """
    try:
        _write(msgspec.msgpack.decode(data, type=list[tuple[str, bytes | None]]), directory)
    except (OSError, ValueError, RecursionError, msgspec.MsgspecError) as error:
        raise StoreError(f"{directory}: what came back of the cell cannot be written: {error}") from error


def _files(directory: Path) -> Iterator[tuple[str, bytes | None]]:
    """Every regular file below a directory, and every empty directory, sorted by the parts of their names. Raises
    StoreError.
    """
    root = inside(directory)
    try:
        for parts, mode in sorted(_listed(root, ())):
            name = "/".join(parts)
            if mode is None:
                yield name, None
            elif stat.S_ISREG(mode):
                with root.joinpath(*parts).open("rb") as file:  # of a cell that ran here, of any size
                    yield name, file.read()
    except OSError as error:
        raise StoreError(f"{directory}: cannot be packed: {error}") from error


def _listed(folder: InsidePath, parts: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int | None]]:
    """The names of everything below a directory that is no directory, and its kind; None: an empty directory."""
    names = folder.listed()
    if parts and not names:
        yield parts, None
    for name in names:
        mode = (folder / name).lstat().st_mode
        if stat.S_ISDIR(mode):
            yield from _listed(folder / name, (*parts, name))
        else:
            yield (*parts, name), mode


def _write(files: Files, directory: Path) -> None:
    """Replace a directory by these files. Raises StoreError (a name lies outside of it), OSError, ValueError."""
    root, made = inside(directory), {""}
    root.remove_tree(ignore_errors=True)
    root.mkdir(parents=True, exist_ok=True)
    for name, content in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or not path.parts:
            raise StoreError(f"{directory.name}: its files are to have one named {name!r}, outside of the cell")
        folder = name.rstrip("/") if content is None else name.rpartition("/")[0]
        if folder not in made:
            (root / folder).mkdir(parents=True, exist_ok=True)
            made.add(folder)
        if content is not None:
            (root / name).write_bytes(content)
