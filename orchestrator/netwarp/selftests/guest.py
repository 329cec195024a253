"""Runs one test in a guest of its own on the virtual clock."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..core.built_programs import BUILD
from ..core.errors import CellError
from ..core.executables import find_executable
from ..core.numbers import fixed
from ..sandbox.children import Children, NoMoreChildren
from ..sandbox.guest_root import prepare_root
from ..sandbox.privileges import hand_over, take_back, unprivileged
from ..sandbox.virtual import guest_command
from ..store.console import Splat, splats
from .tap import Case, Verdict, cases, verdict_of
from .tree import FIRST, OVERRIDES, Selftest

MEMORY_MIB = 768
VIRTUAL_LIMIT_S = 7200
"""Of the guest's clock; a test that waits for ever reaches it in a moment."""
PACKETDRILL = "packetdrill"
"""A program that no package of the distribution has: the user's own, for the kernel's runner of its scripts."""
CLOCK = "lib/program-clock.so"
_TIMED_OUT = (124, 137)
"""Statuses of timeout(1)."""


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a test. status: None: not by itself. virtual_s: of the guest's clock, None if it never ended.

    note: why it was skipped or stopped, or what the kernel reported; cases: the results that it printed itself; splats:
    the kernel's reports of its own faults, with any of which the test has failed.
    """

    test: Selftest
    verdict: Verdict
    status: int | None
    virtual_s: float | None
    wall_s: float
    note: str
    output: str
    cases: tuple[Case, ...]
    splats: tuple[Splat, ...] = ()


@dataclass(frozen=True, slots=True)
class Bench:
    """The parts that all tests of a call share: kernel, unpacked packages, unpacked tests, seed, and the wall clock's
    limit.
    """

    kernel: Path
    packages: Path
    tests: Path
    seed: int
    wall_limit_s: float


def run_test(
    bench: Bench, test: Selftest, place: Path, *, limit_s: int = VIRTUAL_LIMIT_S, guests: Children | None = None
) -> Result:
    """Run one test in the new directory `place`, which keeps its output and the guest's console. guests: where others
    can stop it. Raises CellError.
    """
    guests = guests or Children()
    prepare(bench, test, place, limit_s)
    stopped, wall_s = run_guest(
        bench.kernel, place, bench.seed, MEMORY_MIB, bench.wall_limit_s, guests, drop_root=_open(bench)
    )
    return _judge(test, place, stopped, wall_s)


def run_guest(
    kernel: Path, place: Path, seed: int, memory_mib: int, wall_limit_s: float, guests: Children, *, drop_root: bool
) -> tuple[str, float]:
    """Run the guest of a directory to its end, on the virtual clock. drop_root: as an ordinary user, if this is root.
    Returns why it was stopped ("": it ended by itself) and the seconds it took. Raises CellError.
    """
    owner = place.stat()
    user = hand_over(place, unprivileged()) if drop_root and unprivileged() is not None else None
    started, stopped = time.monotonic(), ""
    try:
        command = guest_command(BUILD, kernel, place, seed, memory_mib, "virtual")
        with guests.running([*command, *([] if user is None else user.arguments)], place / "log.txt") as guest:
            try:
                guest.wait(wall_limit_s)
            except subprocess.TimeoutExpired:
                stopped = f"stopped after {wall_limit_s:.0f} s of wall time"
    except NoMoreChildren:
        raise CellError("the run was stopped") from None
    finally:
        if user is not None:
            take_back(place, owner)
    if guests.stopped:
        raise CellError("the run was stopped")
    return stopped, time.monotonic() - started


def prepare(bench: Bench, test: Selftest, place: Path, limit_s: int) -> None:
    """Make the directory `place` with what the guest's first program reads there."""
    (place / "overrides").mkdir(parents=True)
    for change in sorted(OVERRIDES.glob("*")):
        if (bench.tests / change.name.removesuffix(FIRST).replace("@", "/")).is_file():
            shutil.copyfile(change, place / "overrides" / change.name)
    words = " ".join([f"./{test.program}", *test.arguments])
    settings = {"COLLECTION": test.collection, "TEST": words, "LIMIT_S": str(limit_s), "TESTS": str(bench.tests)}
    if test.collection == "net/packetdrill" and (own := find_executable(PACKETDRILL)) is not None:
        (place / "bin").mkdir()
        shutil.copy(own, place / "bin" / PACKETDRILL)
        shutil.copyfile(BUILD / CLOCK, place / "program-clock.so")
    prepare_root(place, bench.packages, Path(__file__).with_name("rest.sh"), settings)


def _open(bench: Bench) -> bool:
    """True if another user's guest can read what it mounts."""
    user = unprivileged()
    places = (bench.packages, bench.tests)
    return user is not None and all(user.may_pass(folder) for place in places for folder in (place, *place.parents))


def _judge(test: Selftest, place: Path, stopped: str, wall_s: float) -> Result:
    file, left = place / "output.txt", place / "status.txt"
    output = file.read_text(errors="replace") if file.is_file() else ""
    found, faults = cases(output), splats(place / "console.txt")
    if faults:
        output += "".join(f"# {line}\n" for fault in faults for line in ("the kernel reported:", *fault.text))
    if not left.is_file():
        note = stopped or (in_words(faults) if faults else "the guest ended before the test: " + last_line(place))
        return Result(test, "fail", None, None, wall_s, note, output, found, faults)
    status, began, ended = left.read_text().split()
    verdict = verdict_of(int(status))
    note = ""
    if int(status) in _TIMED_OUT:
        note = "reached the limit of virtual time"
    elif verdict == "skip":
        lines = [line.strip("# ") for line in output.splitlines() if line.strip("# ")]
        note = next((line for line in lines if "skip" in line.lower()), lines[-1] if lines else "")
    if faults:
        verdict, note = "fail", in_words(faults)
    return Result(test, verdict, int(status), float(ended) - float(began), wall_s, note, output, found, faults)


def in_words(faults: Sequence[Splat]) -> str:
    """What the kernel reported, and when on the guest's clock: the first."""
    first, more = faults[0], len(faults) - 1
    when = "" if first.boot_s is None else f" {fixed(first.boot_s, 3)} s after its start"
    return f"the guest's kernel reported{when}: {first.line}" + (f" (and {more} more)" if more else "")


def last_line(place: Path) -> str:
    """The last words of a guest's console."""
    for name in ("console.txt", "log.txt"):
        path = place / name
        lines = path.read_text(errors="replace").split("\n") if path.is_file() else []
        if said := [line for line in lines if line.strip()]:
            return said[-1].strip()
    return "it said nothing"
