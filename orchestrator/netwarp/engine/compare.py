"""Compares two runs: what they were made of, their cells and captures, and their numbers.

Cells are matched by what they run. Their captures are equal if their hashes are; else the first packet that differs is
named. Numbers are compared by levels, over the repetitions of both runs (results/compared_numbers.py).
"""

from __future__ import annotations

import dataclasses
import json
import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from ..captures.first_difference import difference_of_files
from ..core.errors import CaptureError, SpecError, StoreError
from ..core.frozen import from_json, to_json
from ..core.numbers import given, percent
from ..core.types import Cell, Measurement
from ..measure.capture_point import capture_named
from ..measure.cell import capture_digests
from ..measure.cell_records import read_cell_records
from ..measure.first_divergence import Divergence, first_divergence
from ..plan.types import Plan
from ..results.compared_numbers import Comparison, Levels, MappedLevels, Moved, agree, compare, levels_of
from ..results.run_comparison import DIGEST, CellPair, RunComparison, Side
from ..sandbox.choose import lateness_s
from ..sandbox.virtual import WALL_LATENESS_NS
from ..store.environment import Environment
from ..store.manifest import Manifest
from ..store.run_dir import CellDir, RunDir, read_json
from ..store.tables import each_row
from .run_directory import Run, collect, open_run

MADE_BY = {
    "spec": "spec",
    "spec_sha256": "text of the spec",
    "seed": "seed",
    "repetitions": "repetitions",
    "backend": "back end",
    "kernel_release": "kernel",
    "kernel_sha256": "kernel binary",
    "programs": "programs in the guest",
    "software": "software that analysed",
    "netwarp_version": "netwarp",
    "git_commit": "commit",
    "git_dirty": "uncommitted changes",
    "tools": "Python packages",
    "host_kernel": "host kernel",
    "host_cpu": "host CPU",
}
"""Fields of the manifest that may explain a difference, and how they are called."""
MOST_DIVERGENCES = 20
"""Combinations whose senders' captures are looked into."""
CELL_ID = re.compile(r"[A-Za-z0-9._]+_r\d+_[0-9a-f]{10}")
LABELS = frozenset(("format", "spec", "experiment", "factors", "parameters", "metrics", "metric_units"))
"""Keys of a cell that name it or say what is computed from it; all others say what runs."""


def compare_runs(a: str | Path, b: str | Path, *, mapped: MappedLevels = MappingProxyType({})) -> RunComparison:
    """What changed from one run directory to another. mapped: which levels of A are held against which of B
    (compared_numbers.compare); both may be one run. Raises SpecError: a factor or level of it that a run does not have;
    StoreError, CaptureError.
    """
    first, second = open_run(a), open_run(b)
    for run, name, of_b in ((first, "A", False), (second, "B", True)):
        for factor, pairs in mapped.items():
            levels = dict.fromkeys(cell.factors.get(factor, "-") for cell in run.plan.cells)
            for level in pairs.values() if of_b else pairs:
                if level not in levels:
                    there = ", ".join(level for level in levels if level != "-") or "no such factor"
                    raise SpecError(f"--map {factor}: run {name} has no level {level}; it has {there}")
    return RunComparison(
        side_of(first, "A"),
        side_of(second, "B"),
        made=_made(first.manifest, second.manifest) + _planned(first.plan, second.plan),
        cells=() if mapped else tuple(compare_cells(first, second, words=False)),
        numbers=compare(first.results, second.results, _lateness_s(first, second), mapped),
    )


def agree_runs(run_a: str | Path, run_b: str | Path) -> RunComparison:
    """If every number of the second run agrees with the first. Raises SpecError, StoreError, CaptureError."""
    a, b = open_run(run_a), open_run(run_b)
    names = a.manifest.backend, b.manifest.backend
    return judge_agreement((a, b), names if names[0] != names[1] else ("A", "B"))


def judge_agreement(
    runs: tuple[Run, Run],
    names: tuple[str, str],
    again: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
    out: Path | None = None,
) -> RunComparison:
    """If the numbers of two runs agree, and otherwise the first packets that differ at the senders. again: the cells
    that were rerun, and why.
    """
    a, b = runs
    numbers = agree(a.results, b.results, _lateness_s(a, b), _unclocked(a) | _unclocked(b))
    if numbers.empty:
        raise SpecError(f"{a.path} and {b.path} have no number in common: nothing was compared")
    first, second = (
        dataclasses.replace(side_of(run, name), outcomes=_outcomes(run), late=_late(run), again=cells)
        for run, name, cells in zip(runs, names, again, strict=True)
    )
    return RunComparison(first, second, numbers=numbers, divergences=_divergences(numbers, a, b), out=out)


def side_of(run: Run, name: str) -> Side:
    """A run as one of two. Raises StoreError."""
    plan = run.plan
    return Side(name, run.path, run.manifest, plan.title or plan.name, " and ".join(plan.filters) or "everything")


def _lateness_s(*runs: Run) -> float:
    """The lateness permitted to cells on the less exact of the runs' clocks, in seconds."""
    return max(lateness_s(run.manifest.backend) for run in runs)


def _outcomes(run: Run) -> str:
    """The outcomes as text: 148 COMPLETED, 2 INVALID."""
    counts = Counter(str(each.outcome) for each in run.results.outcomes.values())
    missing = len(run.plan.cells) - counts.total()
    said = [f"{count} {outcome}" for outcome, count in counts.most_common()]
    return ", ".join(said + ([f"{missing} not run"] if missing else []))


def _late(run: Run) -> str:
    """The share of wakes at which the host was late, in the cells that count; "" if it was not measured."""
    counting = (run.directory.cell(cell.id) for cell in run.plan.cells if run.results.completed(cell.id))
    hosts = [read_json(cell.environment, Environment).host for cell in counting]
    ratios = [host.late_wakes_ratio for host in hosts if host is not None and host.late_wakes_ratio is not None]
    if not ratios:
        return ""
    return (
        f"wakes more than {given(WALL_LATENESS_NS / 1e6)} ms late: "
        f"{percent(statistics.fmean(ratios))} in the mean, {percent(max(ratios))} in the latest cell"
    )


def _unclocked(run: Run) -> frozenset[tuple[str, str, str]]:
    """(cell id, flow, metric) of the values that the clocks of two machines took away."""
    without = {
        cell.id: read_json(path, dict[str, list[str]])
        for cell in run.plan.cells
        if (path := run.directory.cell(cell.id).clock_limits).exists()
    }
    return frozenset(
        (name, flow, metric) for name, flows in without.items() for flow in flows for metric in flows[flow]
    )


def _made(a: Manifest, b: Manifest) -> tuple[Moved, ...]:
    """Differences in how the runs were made."""
    sets = [" ".join(manifest.sets) or "-" for manifest in (a, b)]
    return (Moved("--set", *sets),) * (sets[0] != sets[1]) + tuple(
        Moved(title, _said(getattr(a, field), getattr(b, field)), _said(getattr(b, field), getattr(a, field)))
        for field, title in MADE_BY.items()
        if getattr(a, field) != getattr(b, field)
    )


def _planned(a: Plan, b: Plan) -> tuple[Moved, ...]:
    """Differing parameters and selections (--only, --where)."""
    said = [{**plan.parameters, "part": " ".join(plan.filters) or "everything"} for plan in (a, b)]
    return tuple(
        Moved(name, *(str(values.get(name, "-")) for values in said))
        for name in dict.fromkeys([*said[0], *said[1]])
        if said[0].get(name) != said[1].get(name)
    )


def _said(value: Any, other: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(text)}" for key, text in value.items() if other.get(key) != text) or "-"
    return "unknown" if value is None else _short(str(value))


def _short(text: str) -> str:
    """A shortened digest; other values unchanged."""
    hexadecimal = len(text) >= 40 and all(letter in "0123456789abcdef" for letter in text)
    return text[:DIGEST] if hexadecimal else text


def content(cell: bytes) -> str:
    """What a cell.json runs, as text. Keys that say nothing (null, false, empty) are left out: two versions of netwarp
    may write them or not.
    """

    def meant(value: Any) -> Any:
        if isinstance(value, dict):
            kept = {key: meant(child) for key, child in value.items()}
            return {key: child for key, child in kept.items() if child or (child == 0 and child is not False)}
        return [meant(child) for child in value] if isinstance(value, list) else value

    read = cell_keys(cell)
    return json.dumps(meant({key: value for key, value in read.items() if key not in LABELS}), sort_keys=True)


def cell_keys(cell: bytes) -> dict[str, Any]:
    """The content of a cell.json of any version. Raises StoreError."""
    try:
        return from_json(cell, dict[str, Any])
    except msgspec.DecodeError as error:
        raise StoreError(f"a cell.json in it cannot be read: {error}") from error


def matched(a: Mapping[str, bytes], b: Mapping[str, bytes]) -> Iterator[tuple[str | None, str | None]]:
    """The ids of cells of equal content, from their cell.json by id: those of equal ids first. None: it has no like."""
    like: dict[str, list[str]] = defaultdict(list)
    for cell_id in b:
        if cell_id not in a:
            like[content(b[cell_id])].append(cell_id)
    for cell_id in a:
        if cell_id in b:
            yield cell_id, cell_id
        else:
            others = like[content(a[cell_id])]
            yield cell_id, others.pop(0) if others else None
    yield from ((None, cell_id) for others in like.values() for cell_id in others)


def compare_cells(a: Run, b: Run, *, words: bool = True) -> Iterator[CellPair]:
    """The cells of two runs with their likes, by their captures. words: say what differs first. Raises StoreError."""
    cells = [{cell.id: to_json(cell) for cell in run.plan.cells} for run in (a, b)]
    for pair in matched(*cells):
        yield compare_cell(pair, a.directory, b.directory, words=words)


def compare_cell(pair: tuple[str | None, str | None], a: RunDir, b: RunDir, *, words: bool) -> CellPair:
    """Two cells of equal content, by outcome and captures. Raises StoreError."""
    if pair[0] is None or pair[1] is None:
        return CellPair(*pair, "only in B" if pair[0] is None else "only in A", "is in one of the runs only")
    there, here = a.cell(pair[0]), b.cell(pair[1])
    try:
        then, now = there.read_run_outcome(), here.read_run_outcome()
    except StoreError as error:
        return CellPair(*pair, "not finished", f"was not finished ({error})")
    if then.outcome is not now.outcome:
        why = f"ended {now.outcome} here, {then.outcome} there: {now.reason or then.reason}"
        return CellPair(*pair, "ended differently", why)
    digests = _digests(there), _digests(here)
    if not any(digests):
        why = f" ({now.reason})" if now.reason else ""
        return CellPair(*pair, "no captures", f"has no captures to compare: it ended {now.outcome} in both{why}")
    if digests[0] == digests[1]:
        return CellPair(*pair, "equal")
    if not all(digests):
        return CellPair(*pair, "no captures", "has captures, or their digests, in one of the runs only")
    names = sorted(digests[0].keys() | digests[1].keys())
    other = tuple(name for name in names if digests[0].get(name) != digests[1].get(name))
    said = f"capture {other[0]}: {_first_difference(other[0], there, here)}" if words else ""
    return CellPair(*pair, "differ", said, other)


def _digests(cell: CellDir) -> dict[str, str]:
    """Digests of the existing captures, and of removed ones those that the analysis kept."""
    kept = read_json(cell.packets, dict[str, str]) if cell.packets.exists() else {}
    return kept | capture_digests(cell.capture)


def _first_difference(name: str, there: CellDir, here: CellDir) -> str:
    """The first packet that differs between two captures of a name (<node>-<link>)."""
    files = [capture_named(cell.root, name) for cell in (here, there)]
    if files[0] is None or files[1] is None:
        return "its digest differs, and one run has removed its captures (netwarp archive replay makes them again)"
    try:
        difference = difference_of_files(files[0], files[1])
        t0_ns = read_cell_records(here.init_log).ready.t0_realtime_ns
    except CaptureError as error:
        return str(error)
    return "equal packets in files that differ" if difference is None else difference.words(t0_ns)


def cells_of_differing_levels(run: Run, pairs: Collection[CellPair]) -> tuple[Cell, ...]:
    """The cells of run A that differ, and their other repetitions, which the interval of a number needs."""
    differing = {pair.a for pair in pairs if pair.status != "equal"}
    levels = {frozenset(levels_of(cell)) for cell in run.plan.cells if cell.id in differing}
    return tuple(cell for cell in run.plan.cells if frozenset(levels_of(cell)) in levels)


def of_differing_cells(a: Run, b: Run, pairs: Collection[CellPair]) -> tuple[Comparison | None, str]:
    """The numbers of the cells that differ, with their other repetitions; or why they cannot be compared."""
    cells = cells_of_differing_levels(a, pairs)
    if not cells:
        return None, ""
    ids = {cell.id for cell in cells}
    likes = {pair.b for pair in pairs if pair.a in ids}
    chosen = cells, tuple(cell for cell in b.plan.cells if cell.id in likes)
    try:
        before, after = (
            collect(msgspec.structs.replace(run.plan, cells=part), run.directory)
            for run, part in zip((a, b), chosen, strict=True)
        )
    except (CaptureError, StoreError) as error:
        return None, str(error)
    return compare(before, after, _lateness_s(a, b)), ""


def same_repetition(a: Sequence[Cell], b: Sequence[Cell]) -> tuple[Cell, Cell] | None:
    """Of two sides' completed cells of one combination, those of the first repetition that both have: another has
    other draws. Where nothing is random, the first of each.
    """
    there = {cell.repetition: cell for cell in b}
    pairs = ((cell, there[cell.repetition]) for cell in a if cell.repetition in there)
    if (pair := next(pairs, None)) is not None:
        return pair
    return (a[0], b[0]) if a and b and not (a[0].random or b[0].random) else None


def _divergences(numbers: Comparison, a: Run, b: Run) -> dict[Levels, tuple[Divergence, ...]]:
    """For combinations with a number that differs, the first packets that differ in the senders' captures of the first
    repetition that both sides completed.
    """
    places = list(dict.fromkeys(number.levels for number in numbers.numbers if number.verdict == "differ"))
    divergences: dict[Levels, tuple[Divergence, ...]] = {}
    for levels in places[:MOST_DIVERGENCES]:
        cells = (
            [cell for cell in run.plan.cells if set(levels_of(cell)) == set(levels) and run.results.completed(cell.id)]
            for run in (a, b)
        )
        pair = same_repetition(*cells)
        if pair is None:
            continue
        directories = a.directory.cell(pair[0].id), b.directory.cell(pair[1].id)
        try:
            seen = [
                first_divergence(pair[0], *directories, flow.name, 2 * numbers.lateness_s)
                for flow in pair[0].flows
                if not flow.is_datagrams
            ]
        except (CaptureError, KeyError, StopIteration):
            continue  # captures that cannot be read explain nothing; the numbers stand
        divergences[levels] = tuple(each for each in seen if each is not None)
    return divergences


def compare_exactly(
    a: str | Path,
    b: str | Path,
    *,
    renamed: Mapping[str, str] | None = None,
    left_out: Collection[str] = (),
    tables: bool = True,
) -> RunComparison:
    """If two runs have equal captures, measurements and tables; B may have more of the last two. For two versions of
    netwarp: only cell.json, captures, measurements and tables are read.

    renamed: what B calls a metric, column or table of A. left_out: columns of tables that are not compared. Raises
    StoreError.
    """
    renamed = renamed or {}
    runs = RunDir(Path(a)), RunDir(Path(b))
    stored = [{name: run.cell(name).cell.read_bytes() for name in sorted(run.finished())} for run in runs]
    if not all(stored):
        raise StoreError(f"{runs[not stored[1]].root}: has no finished cell: nothing was compared")
    pairs = [compare_cell(pair, *runs, words=True) for pair in matched(*stored)]
    first, second = (
        Side(name, run.root, read_json(run.manifest, Manifest)) for name, run in zip("AB", runs, strict=True)
    )
    files = list(_measurements(pairs, *runs, renamed))
    if tables:
        names = {pair.b: pair.a for pair in pairs if pair.a is not None and pair.b is not None}
        labels = {"experiment", *(key for cell in stored[0].values() for key in cell_keys(cell).get("factors") or ())}
        files += _tables(runs[0].tables, runs[1].tables, renamed, {*left_out}, names, labels)
    return RunComparison(first, second, cells=tuple(pairs), files=tuple(files))


def _measurements(pairs: Iterable[CellPair], a: RunDir, b: RunDir, renamed: Mapping[str, str]) -> Iterator[str]:
    """Cells of which A has a measurement that B does not have."""
    for pair in pairs:
        if pair.a is None or pair.b is None:
            continue
        paths = a.cell(pair.a).measurements, b.cell(pair.b).measurements
        before, after = (read_json(path, list[Measurement]) if path.exists() else [] for path in paths)
        there = Counter((row.flow, renamed.get(row.metric, row.metric), repr(row.value), row.unit) for row in before)
        there -= Counter((row.flow, row.metric, repr(row.value), row.unit) for row in after)
        if there:
            yield f"{pair.a}: {there.total()} measurements of A are not in B, such as {next(iter(there))}"


def _tables(
    a: Path, b: Path, renamed: Mapping[str, str], left_out: set[str], names: Mapping[str, str], labels: set[str]
) -> Iterator[str]:
    """The tables of A that B has not, or with other rows. names: ids of B's cells -> A's. labels: the columns that say
    how a cell is called, left out where its id stands beside them.
    """

    def rows(path: Path, columns: Sequence[str], ids: Mapping[str, str], metrics: Mapping[str, str]) -> Counter[Any]:
        read = Counter[Any]()
        for row in each_row(path):
            texts = [CELL_ID.sub(lambda match: ids.get(match[0], match[0]), row[column]) for column in columns]
            read[tuple(metrics.get(text, text) for text in texts)] += 1
        return read

    for path in sorted(a.glob("*.csv")):
        other = b / renamed.get(path.name, path.name)
        if not other.exists():
            yield f"tables/{path.name}: B has no such table"
            continue
        before, after = (list(next(each_row(table), {})) for table in (path, other))
        columns = [column for column in before if renamed.get(column, column) not in left_out]
        if "cell_id" in columns:
            columns = [column for column in columns if column not in labels]
        theirs = [renamed.get(column, column) for column in columns]
        if missing := [column for column in theirs if after and column not in after]:
            yield f"tables/{path.name}: B has no column {', '.join(missing)}"
            continue
        ours, others = rows(path, columns, {}, renamed), rows(other, theirs, names, {})
        if ours != others:
            gone, come = ours - others, others - ours
            one = dict(zip(columns, next(iter(gone or come)), strict=True))
            yield f"tables/{path.name}: {gone.total()} rows of A are not in B, {come.total()} of B not in A: {one}"
