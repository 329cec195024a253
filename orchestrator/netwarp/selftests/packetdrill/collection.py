"""The scripts of a kernel's source (tools/testing/selftests/net/packetdrill), unpacked once into the cache."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import KernelError, SpecError
from ...guestkernel.cache import kernels_dir
from ...guestkernel.source import KernelSource, unpack_parts
from .addresses import VERSIONS, Version
from .parser import read_text

COLLECTION = "packetdrill"
_FOLDER = "tools/testing/selftests/net/packetdrill"
_RUNNER = "ksft_runner.sh"


@dataclass(frozen=True, slots=True)
class Scripts:
    """Unpacked scripts. folder: theirs."""

    folder: Path

    def matching(self, pattern: str) -> list[Path]:
        """The scripts of a name or pattern, with or without .pkt; a path to a script of one's own. Raises SpecError."""
        if "/" in pattern:
            own = Path(pattern).expanduser()
            if not own.is_file():
                raise SpecError(f"{COLLECTION}:{pattern}: there is no such file")
            return [own]
        names = {path.name: path for path in sorted(self.folder.glob("*.pkt"))}
        wanted = pattern if pattern.endswith(".pkt") else f"{pattern}.pkt"
        found = [path for name, path in names.items() if fnmatch.fnmatchcase(name, wanted)]
        if not found and Path(pattern).is_file():
            raise SpecError(f"{COLLECTION}:{pattern}: a script of yours is named by a path: {COLLECTION}:./{pattern}")
        if not found:
            near = ", ".join(list(names)[:4])
            raise SpecError(f"{COLLECTION}:{pattern}: this source has no such script (it has {near}, ...)")
        return found

    def files(self, script: Path) -> tuple[Path, ...]:
        """What a script's commands may run: the kernel's own files, and those beside a script of one's own. Raises
        SpecError for a link, which may lead out of the folder.
        """
        folders = dict.fromkeys((self.folder, script.parent.absolute()))
        named = {
            file.name: file
            for folder in folders
            for file in sorted(folder.iterdir())
            if file.is_file() and file.suffix in (".sh", ".py")
        }
        if links := [file for file in named.values() if file.is_symlink()]:
            raise SpecError(f"{links[0]}: is a symbolic link, and a script gets files of its own folder only: copy it")
        return tuple(named.values())

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions of IP that this source's runner plays every script in; all where there is none."""
        runner = self.folder / _RUNNER
        text = runner.read_text(errors="replace") if runner.is_file() else ""
        return VERSIONS[:2] if text and "ipv4-mapped-ipv6" not in text else VERSIONS


def own_scripts(names: Sequence[str]) -> Scripts | None:
    """Scripts that need no kernel's source: each name is a path, and what its commands run lies beside it."""
    for name in names:
        path = Path(name).expanduser()
        if "/" not in name or not path.is_file():
            return None
        needed = re.findall(r"`[^`]*`", read_text(path))
        files = {file for command in needed for file in re.findall(r"(?:^|[\s;&|`])\./([\w.-]+)", command)}
        if any(not (path.parent / file).is_file() for file in files):
            return None
    return Scripts(Path(names[0]).expanduser().parent)


def cached_scripts(identity: str) -> Scripts | None:
    """The scripts of a source that were unpacked before."""
    place = _place(identity)
    return Scripts(place) if place.is_dir() else None


def unpack_scripts(source: KernelSource) -> Scripts:
    """The scripts of a source in the cache. Raises KernelError: it cannot be unpacked, or holds none."""
    if (found := cached_scripts(source.identity)) is not None:
        return found
    place = _place(source.identity)
    work = place.with_name(f".{place.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        unpack_parts(source, [_FOLDER], work)
        folder = work / _FOLDER
        if not any(folder.glob("*.pkt")):
            raise KernelError(f"{source.path}: has no scripts in {_FOLDER}")
        folder.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return Scripts(place)


def _place(identity: str) -> Path:
    key = hashlib.sha256(identity.encode()).hexdigest()[:16]
    return kernels_dir().parent / "selftests" / f"packetdrill-{key}"
