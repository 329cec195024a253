"""Finds the commit that brought a finding: git's own bisection over the commits between two of a repository.

Nothing is checked out in it, and its state is left alone: `git rev-list --bisect-all` names the commits, the best to
ask first. Each is built (TREE@COMMIT), and only what shows the finding runs.
"""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from ..core.errors import DoesNotBuild, KernelError, SpecError
from ..core.types import Outcome
from ..guestkernel import KernelBuild
from ..results.compared_numbers import Levels
from ..results.watched import Bisected, ChangedCell, EndedCell, Watched
from .compare import compare_runs
from .events import Notice, Progress, no_progress
from .run_directory import Run
from .running import run as run_experiment
from .watch import run_tests
from .watch_sets import WatchSet

Builder = Callable[[str], tuple[KernelBuild, Path | None]]
"""The kernel that a word asks for, built, and its source."""


def bisect(
    watched: Watched,
    finding: str,
    chosen: WatchSet,
    tree: Path,
    good: str,
    bad: str,
    base_place: Path,
    build: Builder,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> Bisected:
    """The first commit of good..bad on which the finding is there. build: of TREE@COMMIT. base_place: of the results of
    `good`. Raises SpecError: there is no such finding; KernelError, StoreError, CaptureError.
    """
    asks = _question(watched, finding, chosen, base_place, jobs)
    first_bad, good_ones, skipped, steps = _hash(tree, bad), [_hash(tree, good)], set[str](), 0
    while True:
        left = _listed(tree, first_bad, good_ones)
        candidates = [commit for commit in left if commit != first_bad and commit not in skipped]
        if not candidates:
            return Bisected(finding, tuple(left), _git(tree, "log", "-1", "--format=%s", first_bad), steps)
        commit = candidates[0]
        progress(
            Notice(f"bisect: {len(left)} commits left, {commit[:12]} {_git(tree, 'log', '-1', '--format=%s', commit)}")
        )
        try:
            there = asks(*build(f"{tree}@{commit}"))
        except DoesNotBuild as error:
            progress(Notice(f"{commit[:12]} does not build: {str(error).splitlines()[0]}"))
            skipped.add(commit)
            continue
        steps += 1
        if there is None:
            progress(Notice(f"{commit[:12]}: no cell completed, so it says nothing"))
            skipped.add(commit)
        elif there:
            first_bad = commit
        else:
            good_ones.append(commit)


def _question(
    watched: Watched, finding: str, chosen: WatchSet, base_place: Path, jobs: int | None
) -> Callable[[KernelBuild, Path | None], bool | None]:
    """Asks a kernel whether the finding is there, as on the new kernel and not as on the base; None: it cannot tell."""
    cell = next((each for each in watched.cells if each.name == finding), None)
    if cell is not None:
        return _asks_cell(cell, chosen, base_place, jobs)
    ended_cell = next((each for each in watched.ended if each.name == finding), None)
    if ended_cell is not None:
        return _asks_end(ended_cell, chosen, jobs)
    name = finding.removeprefix("test ")
    test = next((each for each in watched.tests if each.name == name and each.a and each.b), None)
    if test is None or test.b is None:
        raise SpecError(f"there is no finding {finding}; there is {', '.join(watched.findings) or 'none'}")
    ended = test.b

    def asks(build: KernelBuild, source: Path | None) -> bool:
        with tempfile.TemporaryDirectory(prefix="netwarp-bisect-") as folder:
            Path(folder).chmod(0o711)
            kind = "packetdrill" if name.startswith("packetdrill:") else "selftests"
            [now] = run_tests(kind, [name], build, source, Path(folder) / "run", jobs)
        return now.verdict == ended.verdict and [each[:2] for each in now.cases] == [each[:2] for each in ended.cases]

    return asks


def _asks_cell(
    cell: ChangedCell, chosen: WatchSet, base_place: Path, jobs: int | None
) -> Callable[[KernelBuild, Path | None], bool | None]:
    """True if the cell's largest change is there: of its first number, the same way and at least half of it. None: no
    cell completed.
    """
    number = cell.numbers[0]

    def asks(build: KernelBuild, source: Path | None) -> bool | None:
        with tempfile.TemporaryDirectory(prefix="netwarp-bisect-") as folder:
            out = Path(folder) / "run"
            done = _run_part(build, chosen, cell.run, cell.levels, out, jobs)
            if Outcome.COMPLETED not in done.outcomes:
                return None
            compared = compare_runs(base_place / "runs" / cell.run, out)
        assert compared.numbers is not None
        now = next(
            (
                each
                for each in compared.numbers.numbers
                if (each.levels, each.flow, each.metric) == (number.levels, number.flow, number.metric)
            ),
            None,
        )
        if now is None or now.verdict != "changed":
            return False
        if now.difference is None or number.difference is None:
            return (now.b is None) == (number.b is None)
        same_way = (now.difference > 0) == (number.difference > 0)
        return same_way and abs(now.difference) >= abs(number.difference) / 2

    return asks


def _asks_end(cell: EndedCell, chosen: WatchSet, jobs: int | None) -> Callable[[KernelBuild, Path | None], bool | None]:
    """True if the cell ends as on the new kernel, False: as on the base, None: otherwise."""

    def asks(build: KernelBuild, source: Path | None) -> bool | None:
        with tempfile.TemporaryDirectory(prefix="netwarp-bisect-") as folder:
            done = _run_part(build, chosen, cell.run, cell.ended.levels, Path(folder) / "run", jobs)
            outcomes = done.results.outcomes
        same = [each.id for each in done.plan.cells if each.repetition == cell.ended.repetition]
        ends = {str(outcomes[cell_id].outcome) for cell_id in same}
        return True if ends == {cell.ended.b} else False if ends == {cell.ended.a} else None

    return asks


def _run_part(build: KernelBuild, chosen: WatchSet, run: str, levels: Levels, out: Path, jobs: int | None) -> Run:
    """The cells of these levels, of a run of the set, on a kernel."""
    part = chosen.runs[int(run.partition("-")[0]) - 1]
    return run_experiment(
        part.spec, sets={"kernel": build.key}, only=part.only, where=dict(levels), backend="virtual", out=out,
        jobs=jobs, report=False,
    )  # fmt: skip


def _listed(tree: Path, bad: str, good: list[str]) -> list[str]:
    """The commits that may be the first bad one, the best to ask first."""
    lines = _git(tree, "rev-list", "--bisect-all", bad, *(f"^{commit}" for commit in good)).splitlines()
    return [line.split()[0] for line in lines]


def _hash(tree: Path, name: str) -> str:
    return _git(tree, "rev-parse", "--verify", f"{name}^{{commit}}")


def _git(tree: Path, *words: str) -> str:
    done = subprocess.run(["git", "-C", str(tree), *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise KernelError(f"{tree}: git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
