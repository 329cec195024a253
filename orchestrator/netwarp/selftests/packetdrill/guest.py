"""Plays one compiled script in a guest of its own."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.built_programs import BUILD
from ...core.errors import CellError
from ...sandbox.children import Children, NoMoreChildren
from ...sandbox.privileges import hand_over, take_back, unprivileged
from ...sandbox.virtual import guest_command
from .compile import Program
from .record import Record, read_record

MEMORY_MIB = 256
RECORD = "drill.ndjson"
_STEPS, _INIT, _FILES, _SHELL = "steps.txt", "init", "files", "shell.txt"


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts that all scripts of a call share."""

    kernel: Path
    seed: int
    wall_limit_s: float


def play(
    bench: Bench, program: Program, place: Path, guests: Children, files: Sequence[Path] = ()
) -> tuple[Record, float]:
    """Run a program in the new directory `place`, which keeps the guest's record, console and the output of the
    commands. files: those that the commands run. Returns the record and the seconds it took. Raises CellError.
    """
    (place / _FILES).mkdir(parents=True)
    for file in files:
        shutil.copy(file, place / _FILES / file.name)
    shutil.copy(BUILD / "bin" / "drill", place / _INIT)
    (place / _STEPS).write_text(program.text)
    owner = place.stat()
    user = hand_over(place, unprivileged()) if unprivileged() is not None else None
    started = time.monotonic()
    try:
        command = guest_command(BUILD, bench.kernel, place, bench.seed, MEMORY_MIB, "virtual")
        with guests.running([*command, *([] if user is None else user.arguments)], place / "log.txt") as guest:
            try:
                guest.wait(bench.wall_limit_s)
            except subprocess.TimeoutExpired:
                raise CellError(f"stopped after {bench.wall_limit_s:.0f} s of wall time") from None
    except NoMoreChildren:
        raise CellError("the run was stopped") from None
    finally:
        if user is not None:
            take_back(place, owner)
    if guests.stopped:
        raise CellError("the run was stopped")
    wall_s = time.monotonic() - started
    try:
        record = read_record(place / RECORD)
    except (OSError, ValueError) as error:
        raise CellError(f"the guest left no whole record: {error}; its console: {last_line(place)}") from None
    for left in (_INIT, _FILES, ".uml"):
        path = place / left
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    return record, wall_s


def shell_output(place: Path) -> str:
    """What the commands printed."""
    file = place / _SHELL
    return file.read_text(errors="replace") if file.is_file() else ""


def last_line(place: Path) -> str:
    """The last words of the guest's console."""
    for name in ("console.txt", "log.txt"):
        path = place / name
        lines = path.read_text(errors="replace").split("\n") if path.is_file() else []
        if said := [line for line in lines if line.strip()]:
            return said[-1].strip()
    return "nothing"
