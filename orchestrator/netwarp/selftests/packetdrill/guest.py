"""Plays one compiled script in a guest of its own."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.built_programs import BUILD
from ...core.errors import CellError
from ...sandbox.children import Children
from ..guest import last_line, run_guest
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
        shutil.copy(file, place / _FILES / file.name, follow_symlinks=False)
    shutil.copy(BUILD / "bin" / "drill", place / _INIT)
    (place / _STEPS).write_text(program.text)
    stopped, wall_s = run_guest(bench.kernel, place, bench.seed, MEMORY_MIB, bench.wall_limit_s, guests, drop_root=True)
    if stopped:
        raise CellError(stopped)
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
