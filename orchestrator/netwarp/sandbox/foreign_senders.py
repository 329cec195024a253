"""Senders built for another processor (`arch = "arm64"`): copies them into a cell that uses them, and says what is
missing (the sender, or the emulator that runs it) and which files were used.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from ..core.executables import find_executable
from ..core.types import Cell
from ..testbed.arch import EMULATORS, archs, sender_file
from .user_programs import SEARCHED, facts

BUILT = {"arm64": "android/bin/sender"}
"""The file that `make android` writes, below build/."""
REMEDY = "make android"


def missing_arch(cell: Cell, apps: Path) -> str:
    """The parts that are missing to run a cell's senders for another processor, with the remedy; "" if nothing is."""
    for arch in archs(cell):
        if not (apps / BUILT[arch]).is_file():
            return f'the sender for arch = "{arch}" is not built; {REMEDY}'
        if find_executable(EMULATORS[arch], path=SEARCHED) is None:
            return f"there is no {EMULATORS[arch]} on this machine; {REMEDY} (or: apt install qemu-user-static)"
    return ""


def install_arch(cell: Cell, apps: Path, directory: Path) -> None:
    """Copy the senders into the cell's bin/. One that is not built is skipped (missing_arch reports it)."""
    for arch in archs(cell):
        source, target = apps / BUILT[arch], directory / "bin" / sender_file(arch)
        if source.is_file():
            shutil.copyfile(source, target)
            target.chmod(0o755)


def arch_used(cell: Cell, apps: Path) -> dict[str, dict[str, str | None]]:
    """Path, SHA-256 and version of each emulator, and SHA-256 of each such sender."""
    used: dict[str, dict[str, str | None]] = {}
    for arch in archs(cell):
        used[EMULATORS[arch]] = facts(EMULATORS[arch])
        digest = hashlib.sha256((apps / BUILT[arch]).read_bytes()).hexdigest()
        used[sender_file(arch)] = {"sha256": digest}
    return used
