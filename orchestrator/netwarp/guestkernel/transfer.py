"""A built kernel as one file, for machines that do not build it: a tar archive of its directory in the cache, or a
wheel.

An imported kernel is checked like any kernel of the cache: its binary must have the hash in its build.json.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ..core.errors import KernelError, reason_words
from .cache import RECORD, WHEELS, KernelBuild, install, kernels_dir, read_build, workspace
from .variant import KEPT

PARTS = ("linux", RECORD, "config", "include")
"""Of a kernel's directory; without the log of its build, which names places of the machine that built it."""
MOST_BYTES = 1 << 30
"""Of all files of an archive, expanded: a kernel and its headers take 20 MB."""


def export_kernel(build: KernelBuild, file: Path) -> None:
    """Write a kernel into `file` (.tar.gz), completely or not at all. Equal kernels give equal files.

    Raises KernelError if it is not a kernel of the cache, or if the file cannot be written.
    """
    folder = build.binary.parent
    if not build.key or not (folder / RECORD).is_file():
        raise KernelError(f"{build.binary}: is not in the cache, so nothing says how it was built; copy it as it is")
    temporary = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        with (
            open(temporary, "wb") as sink,
            gzip.GzipFile("", "wb", 6, sink, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive,
        ):
            for part in (*PARTS, *([KEPT] if (folder / KEPT).is_dir() else [])):
                archive.add(folder / part, f"{build.key}/{part}", filter=_plain)
        os.replace(temporary, file)
    except OSError as error:
        raise KernelError(f"{file}: cannot be written: {reason_words(error)}") from error
    finally:
        temporary.unlink(missing_ok=True)


def _plain(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without owner and time."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return member


def import_kernel(file: Path, enter: Callable[[str], None] = lambda stage: None) -> KernelBuild:
    """Put the kernel of an exported file, or of a wheel (.whl), into the cache. If a kernel with the same hash is there
    already, that one is returned.

    Raises KernelError: the file cannot be read, holds other files, or its binary differs from the exported one.
    """
    if file.suffix == ".whl":
        return _import_wheel(file, enter)
    try:
        with gzip.open(file) as packed, tarfile.open(fileobj=packed, mode="r:") as archive:
            members = archive.getmembers()
            while packed.read(1 << 20):  # to its end, where the checksum of all of it stands
                pass
            key = _key(file, members)
            with workspace(key, enter) as place:
                folder = place / key
                for member in members:
                    _extract(archive, member, place)
                return _checked(file, folder)
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise KernelError(f"{file}: is no kernel that netwarp exported, or was damaged: {error}") from error


def _import_wheel(file: Path, enter: Callable[[str], None]) -> KernelBuild:
    """As import_kernel."""
    try:
        with zipfile.ZipFile(file) as wheel:
            names = [PurePosixPath(name) for name in wheel.namelist()]
            (record,) = (name for name in names if name.parts[:1] == (WHEELS,) and name.name == RECORD)
            with workspace(record.parent.name, enter) as place:
                folder = place / record.parent.name
                folder.mkdir()
                for name in (record.parent / part for part in ("linux", RECORD, "config")):
                    (folder / name.name).write_bytes(wheel.read(str(name)))
                (folder / "linux").chmod(0o755)
                return _checked(file, folder)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise KernelError(f"{file}: is no wheel of a kernel, or was damaged: {error}") from error


def _checked(file: Path, folder: Path) -> KernelBuild:
    """Move an unpacked kernel into the cache. Raises KernelError if it is not the one that was built."""
    build = read_build(folder)
    if build is None:
        raise KernelError(f"{file}: its kernel is not the one that its build.json states; export it again")
    place = kernels_dir() / folder.name
    there = read_build(place) if place.exists() else None
    return there if there is not None and there.sha256 == build.sha256 else install(folder, folder.name)


def _key(file: Path, members: list[tarfile.TarInfo]) -> str:
    """The one directory that contains all members. Raises KernelError on names and kinds that no export has."""
    tops = set()
    for member in members:
        parts = PurePosixPath(member.name).parts
        ours = len(parts) > 1 and parts[1] in (*PARTS, KEPT) and ".." not in parts and not member.name.startswith("/")
        if not ours or not (member.isdir() or member.isreg()):
            raise KernelError(f"{file}: holds {member.name!r}, which no kernel has; it was not exported by netwarp")
        tops.add(parts[0])
    if len(tops) != 1 or not re.fullmatch(r"[0-9a-f]{8,64}", top := tops.pop()):
        raise KernelError(f"{file}: is no kernel that netwarp exported")
    if sum(member.size for member in members) > MOST_BYTES:
        raise KernelError(f"{file}: expands to more than {MOST_BYTES >> 20} MiB, which no kernel takes")
    return top


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, place: Path) -> None:
    target = place / member.name
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    source = archive.extractfile(member)
    assert source is not None
    with source, open(target, "wb") as sink:
        shutil.copyfileobj(source, sink)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)
