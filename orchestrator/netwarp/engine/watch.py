"""Runs a set of tests and small experiments on a kernel, and compares two kernels by what they gave.

The results of a kernel are kept under `<cache>/watch/<key>/`: watched.json (WatchedKernel), runs/<number>-<spec>/ (run
directories), tests/ (output of the tests). The key is of the kernel's binary, the set, the specs and everything that
runs or analyses them; a directory appears by one rename when all of it is there.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from ..captures.first_difference import PacketDifference, behaviour_difference_of_files
from ..core.built_programs import program_digests
from ..core.errors import CaptureError, KernelError, SpecError
from ..core.types import Outcome
from ..core.units import counted
from ..experiment import load_experiment
from ..guestkernel import KernelBuild
from ..guestkernel.cache import kernels_dir
from ..measure.cell_records import read_cell_records
from ..results.compared_numbers import ComparedNumber, Levels, levels_of
from ..results.run_comparison import RunComparison
from ..results.watched import (
    ChangedCell,
    ChangedRun,
    Splat,
    Watched,
    WatchedKernel,
    WatchedTest,
    changed_tests,
    rank,
    ranked,
    spec_names,
)
from ..selftests.guest import Result
from ..store.console import splats
from ..store.run_dir import CellDir, read_json, write_json
from .cluster_files import analyser_here
from .compare import compare_runs, same_repetition
from .compare_packets import WITHIN_NS
from .events import Notice, Progress, no_progress
from .later_outputs import texts_of
from .packetdrill import run_packetdrill
from .run_directory import Run, open_run
from .running import run as run_experiment
from .selftests import run_selftests
from .watch_sets import WatchRun, WatchSet

RECORD = "watched.json"
KEPT = 12
"""Results of kernels that stay in the cache; the longest unused go first."""
CELL_HASH = re.compile(r"_[0-9a-f]{10}$")
_UNFINISHED = ".running-"


def results_of(
    build: KernelBuild,
    source: Path | None,
    chosen: WatchSet,
    *,
    asked: str = "",
    jobs: int | None = None,
    progress: Progress = no_progress,
    anew: bool = False,
) -> tuple[WatchedKernel, Path]:
    """What a set gives on a kernel, and the directory that keeps it; it is run unless it is there and
    complete. source: of the kernel's own tests, as for find_source() (None: they are left out). anew: run it again.

    Raises SpecError, KernelError, RunInterrupted.
    """
    place = watch_dir() / _key(build, source, chosen)
    with _locked(place):
        if (place / RECORD).is_file() and not anew:
            kept = read_json(place / RECORD, WatchedKernel)
            if kept.complete:
                os.utime(place)
                return msgspec.structs.replace(kept, asked=asked or kept.asked), place
        work = place.with_name(f"{_UNFINISHED}{place.name}")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        try:
            started, cpu = time.monotonic(), sum(os.times()[:4])
            record = _run_set(build, source, chosen, asked, work, jobs, progress)
            wall_s, cpu_s = round(time.monotonic() - started, 1), round(sum(os.times()[:4]) - cpu, 1)
            write_json(work / RECORD, msgspec.structs.replace(record, wall_s=wall_s, cpu_s=cpu_s))
            if place.exists():
                shutil.rmtree(place)
            work.rename(place)
        finally:
            shutil.rmtree(work, ignore_errors=True)
        _forget_old(place)
        return read_json(place / RECORD, WatchedKernel), place


def watch_dir() -> Path:
    """`<cache>/watch`."""
    return kernels_dir().parent / "watch"


def _key(build: KernelBuild, source: Path | None, chosen: WatchSet) -> str:
    specs = [sorted((name, hashlib.sha256(text).hexdigest()) for name, text in _texts(run)) for run in chosen.runs]
    parts = [build.sha256, build.source if source else "", msgspec.to_builtins(chosen), specs]
    return hashlib.sha256(json.dumps([*parts, program_digests(), analyser_here()]).encode()).hexdigest()[:16]


def _texts(run: WatchRun) -> Iterator[tuple[str, bytes]]:
    yield from texts_of(load_experiment(run.spec)).items()


@contextlib.contextmanager
def _locked(place: Path) -> Iterator[None]:
    """One process runs a set on a kernel; another waits, and finds it done."""
    place.parent.mkdir(parents=True, exist_ok=True)
    lock = place.with_name(f".{place.name}.lock")
    with open(lock, "w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _forget_old(newest: Path) -> None:
    there = [path for path in watch_dir().iterdir() if (path / RECORD).is_file() and path != newest]
    for old in sorted(there, key=lambda path: path.stat().st_mtime, reverse=True)[KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


def _run_set(
    build: KernelBuild,
    source: Path | None,
    chosen: WatchSet,
    asked: str,
    work: Path,
    jobs: int | None,
    progress: Progress,
) -> WatchedKernel:
    name = kernel_words(asked, build.release)
    tests: list[WatchedTest] = []
    without: list[str] = []
    for kind, names in (("packetdrill", chosen.packetdrill), ("selftests", chosen.selftests)):
        if not names:
            continue
        progress(Notice(f"{name}: {kind}"))
        try:
            tests += run_tests(kind, names, build, source, work / "tests" / kind, jobs)
        except (KernelError, SpecError) as error:
            without.append(f"{kind}: {str(error).splitlines()[0]}")
    runs, complete = [], True
    for number, each in enumerate(chosen.runs, 1):
        runs.append(f"{number}-{Path(each.spec).stem if each.spec.endswith('.toml') else Path(each.spec).name}")
        progress(Notice(f"{name}: {each.spec} {' '.join(each.only)}".rstrip()))
        done = run_experiment(
            each.spec, sets={"kernel": build.key}, only=each.only, where=each.where, backend="virtual",
            out=work / "runs" / runs[-1], jobs=jobs, report=False, progress=progress,
        )  # fmt: skip
        complete = complete and not {"FAILED", "INVALID"} & done.outcomes.keys()
    return WatchedKernel(
        asked=asked or build.release, release=build.release, sha256=build.sha256, key=build.key, source=build.source,
        runs=tuple(runs), tests=tuple(tests), splats=tuple(splats_of(work)), without=tuple(without),
        complete=complete,
    )  # fmt: skip


def kernel_words(asked: str, release: str) -> str:
    """A kernel for a line of progress: a patched one has the release of the one that it is made from."""
    return f"Linux {release}" + (f" ({asked})" if asked and asked != release else "")


def run_tests(
    kind: str, names: Sequence[str], build: KernelBuild, source: Path | None, out: Path, jobs: int | None
) -> list[WatchedTest]:
    """Run tests on a kernel. kind: packetdrill or selftests. source: None: not here. Raises SpecError, KernelError."""
    if kind == "packetdrill":
        played = run_packetdrill(names, source=source, kernel=build.key, jobs=jobs, out=out)
        return [_as_test(result) for result in played.results]
    if source is None:
        raise KernelError(f"the source of Linux {build.release} is not here, with which its tests come")
    done = run_selftests(names, source=source, kernel=build.key, jobs=jobs, out=out)
    return [_as_test(result) for result in done.results]


def _as_test(result: Result) -> WatchedTest:
    cases = tuple((case.name, case.verdict, case.note) for case in result.cases)
    return WatchedTest(result.test.name, result.verdict, result.note, cases)


def splats_of(place: Path) -> Iterator[Splat]:
    """The reports of the kernel in the consoles below a directory, in the order of the names of cells and tests."""
    for console in sorted(place.rglob("console.txt")):
        for splat in splats(console):
            yield Splat(str(console.parent.relative_to(place)), "\n".join(splat.text), splat.fingerprint)


def compare_results(base: tuple[WatchedKernel, Path], new: tuple[WatchedKernel, Path], set_name: str) -> Watched:
    """What changed. Raises StoreError, CaptureError."""
    cells: list[ChangedCell] = []
    runs: list[ChangedRun] = []
    for name, spec in spec_names(base[0].runs).items():
        places = [place / "runs" / name for _, place in (base, new)]
        compared = compare_runs(*places)
        assert compared.numbers is not None
        moved = compared.numbers
        sides = [open_run(place) for place in places]
        failed = _failed(sides[0]), _failed(sides[1])
        count = len(sides[0].plan.cells)
        runs.append(ChangedRun(name, spec, count, moved.counts, moved.outcomes, moved.verdicts, failed))
        cells += _changed_cells(name, spec, compared)
    tests = changed_tests(base[0].tests, new[0].tests)
    ordered = tuple(sorted(cells, key=rank))
    return Watched(base[0], new[0], set_name, tuple(runs), ordered, tests, new_splats(base[0].splats, new[0].splats))


def new_splats(before: Sequence[Splat], after: Sequence[Splat]) -> tuple[Splat, ...]:
    """Those of `after` of whose stack there is none in the same cell or test before; addresses do not count, nor the
    hash in a cell's id, which is another on another kernel.
    """

    def kind(splat: Splat) -> tuple[str, str]:
        return CELL_HASH.sub("", splat.where), splat.fingerprint or splat.text.partition("\n")[0]

    known = {kind(splat) for splat in before}
    return tuple(splat for splat in after if kind(splat) not in known)


def _failed(run: Run) -> str:
    """The cells that did not complete, with the reason of the first: "2 of 49 cells: ..."."""
    outcomes = {cell.id: run.results.outcomes.get(cell.id) for cell in run.plan.cells}
    bad = [each for each in outcomes.values() if each is None or each.outcome is not Outcome.COMPLETED]
    if not bad:
        return ""
    reason = "not run" if bad[0] is None else f"{bad[0].outcome}, {bad[0].reason or 'no reason given'}"
    return f"{len(bad)} of {counted(len(outcomes), 'cell')} did not complete: {reason}"


def _changed_cells(name: str, spec: str, compared: RunComparison) -> Iterator[ChangedCell]:
    assert compared.numbers is not None
    by_levels: dict[Levels, list[ComparedNumber]] = {}
    for number in compared.numbers.numbers:
        if number.verdict == "changed":
            by_levels.setdefault(number.levels, []).append(number)
    sides = open_run(compared.a.path), open_run(compared.b.path)
    for levels, numbers in by_levels.items():
        ids, first = _shown(sides, levels)
        yield ChangedCell(name, spec, levels, ranked(numbers), first, ids)


def _shown(sides: tuple[Run, Run], levels: Levels) -> tuple[tuple[str | None, str | None], str]:
    """The cells that show a change, those of the first repetition that both runs completed, and the first packet that
    differs, in words.
    """
    cells = [
        [cell for cell in run.plan.cells if set(levels_of(cell)) == set(levels) and run.results.completed(cell.id)]
        for run in sides
    ]
    pair = same_repetition(*cells)
    if pair is None:
        return (cells[0][0].id if cells[0] else None, cells[1][0].id if cells[1] else None), ""
    ids = pair[0].id, pair[1].id
    directories = [run.directory.cell(cell_id) for run, cell_id in zip(sides, ids, strict=True)]
    try:
        first = first_packet(directories[0], directories[1])
        t0_ns = read_cell_records(directories[0].init_log).ready.t0_realtime_ns
    except CaptureError as error:
        return ids, str(error)
    if first is None:
        return ids, ""
    name, difference = first
    return ids, f"at {name.replace('-', ' on ', 1)}: {difference.words(t0_ns)}"


def first_packet(a: CellDir, b: CellDir) -> tuple[str, PacketDifference] | None:
    """The capture (<node>-<link>) of two cells with the first packet that differs in more than what is drawn at random.
    Raises CaptureError.
    """
    there = [path for path in sorted(a.capture.iterdir()) if (b.capture / path.name).exists()]
    found = [
        (path.name.partition(".")[0], difference)
        for path in there
        if (difference := behaviour_difference_of_files(path, b.capture / path.name, WITHIN_NS)) is not None
    ]

    def when(each: tuple[str, PacketDifference]) -> int:
        return min(at for at in (each[1].a_ns, each[1].b_ns) if at is not None)

    return min(found, key=when, default=None)
