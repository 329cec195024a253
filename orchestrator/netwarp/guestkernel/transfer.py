"""A built kernel as one file, for machines that do not build it: a tar archive of its directory in the cache, or a
wheel.

An imported kernel is checked like any kernel of the cache: its binary must have the hash in its build.json.
"""

from __future__ import annotations

import gzip
import os
import re
import tarfile
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from ..core.archives import BROKEN, TarMembers, open_archive
from ..core.errors import KernelError, reason_words
from .cache import RECORD, WHEELS, KernelBuild, install, kernels_dir, read_build, workspace
from .variant import KEPT

PARTS = ("linux", RECORD, "config", "include")
"""Of a kernel's directory; without the log of its build, which names places of the machine that built it."""
MOST_BYTES = 1 << 30
"""Of all files of an archive, expanded: a kernel and its headers take 20 MB."""
MOST_FILES = 100_000
RECORD_BYTES = 1 << 20
"""Of zeros at the end of an archive, at most: tar fills its last record."""
KEY = re.compile(r"[0-9a-f]{8,64}")
NAME = re.compile(
    rf"{KEY.pattern}/(?:{'|'.join(map(re.escape, (*PARTS, KEPT)))})(?:/(?!\.\.?(?:/|\Z))[!-.0-~]{{1,255}}){{0,20}}"
)
"""The names in an archive."""
NONE = "is no kernel that netwarp exported"


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
        with gzip.open(file) as packed, workspace("import", enter) as place:
            folder = place / _unpacked(file, _exactly(packed), place)
            if packed.read(RECORD_BYTES).strip(b"\0") or packed.read(1):  # to its end, where the checksum stands
                raise KernelError(f"{file}: {NONE}: something follows it")
            return _checked(file, folder)
    except (*BROKEN, tarfile.TarError) as error:
        raise KernelError(f"{file}: {NONE}, or was damaged: {error}") from error


def _exactly(packed: gzip.GzipFile) -> Callable[[int], bytes]:
    def read(count: int) -> bytes:
        data = packed.read(count)
        if len(data) < count:
            raise EOFError("it ends in the middle")
        return data

    return read


def _unpacked(file: Path, read: Callable[[int], bytes], place: Path) -> str:
    """Write a kernel's directory below `place`; its key. Raises KernelError on names, kinds and sizes that no kernel
    has.
    """

    def refuse(why: str) -> KernelError:
        return KernelError(f"{file}: {NONE}: {why}")

    members, key, left, count = TarMembers(read, refuse), "", MOST_BYTES, 0
    while (member := members.next()) is not None:
        if not NAME.fullmatch(member.name):
            raise refuse(f"it holds {member.name[:100]!r}, which no kernel has")
        top, count = member.name.partition("/")[0], count + 1
        if (key and key != top) or count > MOST_FILES:
            raise refuse("it holds more than one kernel" if key != top else f"it holds more than {MOST_FILES} files")
        left -= member.size
        if left < 0:
            raise refuse(f"it expands to more than {MOST_BYTES >> 20} MiB, which no kernel takes")
        key, target = top, place / member.name
        if member.isdir():
            if member.size:
                raise refuse(f"it holds {member.name[:100]!r}, a directory with content")
            target.mkdir(parents=True, exist_ok=True)
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as sink:
            for block in members.content(member.size):
                sink.write(block)
        target.chmod(0o755 if member.mode & 0o100 else 0o644)
    if not key:
        raise refuse("it is empty")
    return key


def _import_wheel(file: Path, enter: Callable[[str], None]) -> KernelBuild:
    """As import_kernel."""
    try:
        with open(file, "rb") as opened, open_archive(opened) as wheel:
            names = [PurePosixPath(name) for name in wheel.namelist()]
            (record,) = (name for name in names if name.parts[:1] == (WHEELS,) and name.name == RECORD)
            key = record.parent.name
            if len(record.parts) != 3 or not KEY.fullmatch(key):
                raise KernelError(f"{file}: its kernel is named {key[:80]!r}, which is no key of one")
            with workspace(key, enter) as place:
                folder = place / key
                folder.mkdir()
                for name in (record.parent / part for part in ("linux", RECORD, "config")):
                    (folder / name.name).write_bytes(wheel.read(str(name)))
                (folder / "linux").chmod(0o755)
                return _checked(file, folder)
    except (*BROKEN, KeyError) as error:
        raise KernelError(f"{file}: is no wheel of a kernel, or was damaged: {error}") from error


def _checked(file: Path, folder: Path) -> KernelBuild:
    """Move an unpacked kernel into the cache. Raises KernelError if it is not the one that was built, or if another
    one is in its place.
    """
    build = read_build(folder)
    if build is None:
        raise KernelError(f"{file}: its kernel is not the one that its build.json states; export it again")
    place = kernels_dir() / folder.name
    there = read_build(place) if place.exists() else None
    if there is None:
        return install(folder, folder.name)
    if there.sha256 != build.sha256:
        raise KernelError(
            f"{file}: another kernel is in {place}, and it is whole: remove it if this one is to take its place, or "
            "name another cache (NETWARP_CACHE)"
        )
    return there
