"""Searches a box of factors for the cell in which a metric is largest, or smallest (`netwarp search`).

A search is a run whose cells are chosen while it runs: what it measured, in its order, is search/search.json there.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

import msgspec

from ..core.errors import SpecError
from ..core.frozen import Frozen
from ..core.numbers import in_short
from ..core.subjects import subjects
from ..core.types import Cell, Outcome
from ..core.units import QuantityError, counted, parse_quantity
from ..experiment import AnyExperiment, load_experiment
from ..experiment.problems import nearest
from ..plan.replay import replay_spec
from ..plan.schedules import with_cells
from ..plan.types import Plan, PlannedFactor
from ..results import Results
from ..store.plan_file import read_plan, write_plan
from ..store.run_dir import RunDir, read_json, write_atomic, write_json
from ..store.run_locations import choose_directory
from .cell_tasks import Keep
from .conclusions import levels_text, search_conclusion
from .events import Notice, Progress, no_progress
from .optimiser import Optimiser, Point, need_optuna
from .planning import Where, plan_experiment
from .run_directory import Run, collect
from .running import Means, run_cells, run_plan

BATCH = 8
"""Points that are chosen at once. A constant, so that a search does not depend on the number of processors."""
FORMAT = 1
RECORD = "search.json"


class Tried(Frozen, frozen=True):
    """A point that was measured. levels: of the box's factors. cells: their ids. why: there is no value ("": one).
    drawn: by chance, not chosen from values.
    """

    levels: dict[str, str]
    value: float | None
    cells: tuple[str, ...]
    why: str = ""
    drawn: bool = False


class Asked(Frozen, frozen=True, kw_only=True):
    """What is searched. seed: of the choice of points (the cells have the plan's). optuna: its version, which chose."""

    format: int = FORMAT
    metric: str
    flow: str
    largest: bool
    over: tuple[str, ...]
    seed: int
    optuna: str
    batch: int = BATCH


class Searched(Frozen, frozen=True, kw_only=True):
    """search/search.json. points: of the whole box."""

    asked: Asked
    unit: str
    points: int
    tried: tuple[Tried, ...] = ()

    @property
    def ranked(self) -> list[tuple[int, Tried]]:
        """What has a value, the best first, each with its number in the order of measuring, from 1."""
        known = [(number, each) for number, each in enumerate(self.tried, 1) if each.value is not None]
        return sorted(known, key=lambda pair: (pair[1].value or 0.0) * (-1 if self.asked.largest else 1))


@dataclass(frozen=True)
class Box:
    """The points of a search: levels of the factors -> the cells. levels: factor -> all of its levels in the box.
    ordered: the factors whose levels are quantities in order.
    """

    levels: Mapping[str, tuple[str, ...]]
    ordered: frozenset[str]
    points: Mapping[Point, tuple[Cell, ...]]

    def neighbours(self, point: Point) -> list[Point]:
        """The points that differ in one factor: by one step of an ordered one, or by any level of another."""
        found = []
        for place, (name, levels) in enumerate(self.levels.items()):
            at = levels.index(point[place])
            near = [at - 1, at + 1] if name in self.ordered else range(len(levels))
            for other in near:
                if other != at and 0 <= other < len(levels):
                    found.append((*point[:place], levels[other], *point[place + 1 :]))
        return [point for point in found if point in self.points]


@dataclass(frozen=True)
class SearchResult:
    """A finished search. spec: a spec of the best point's worst cell alone; None: no point has a value."""

    run: Run
    searched: Searched
    box: Box
    spec: Path | None

    @property
    def neighbours(self) -> tuple[int, int]:
        """How many of the best point's neighbours have a value, and how many there are."""
        if not self.searched.ranked:
            return 0, 0
        near = self.box.neighbours(tuple(self.searched.ranked[0][1].levels.values()))
        known = {tuple(each.levels.values()) for _, each in self.searched.ranked}
        return sum(point in known for point in near), len(near)


def search(
    experiment: AnyExperiment,
    metric: str,
    *,
    largest: bool = True,
    over: Sequence[str] = (),
    flow: str | None = None,
    budget_s: float | None = None,
    points: int | None = None,
    seed: int | None = None,
    sets: Mapping[str, str] | None = None,
    repetitions: int | None = None,
    only: Sequence[str] = (),
    where: Where = (),
    backend: str = "auto",
    jobs: int | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    keep: Keep = "captures",
    report: bool = True,
    arguments: Sequence[str] | None = None,
    progress: Progress = no_progress,
) -> SearchResult:
    """Search the factors `over` (default: all that the experiment varies) for the point where `metric` is largest, or
    smallest, of a flow.

    A point's value is the largest (smallest) of its cells: repetitions, and the levels of the other factors. It ends
    after budget_s seconds of wall time, or so many points (both in whole batches), or when the whole box is measured.
    seed: of the plan, and of the choice. The rest as `run`. Raises SpecError (nothing was run) and what `run` raises.
    """
    need_optuna()
    if budget_s is None and points is None:
        raise SpecError("how long? --budget '30 min', or --points 100")
    if points is not None and points < 1:
        raise SpecError(f"--points {points}: at least 1; for example --points 100")
    if budget_s is not None and budget_s <= 0:
        raise SpecError("--budget: a time above zero; for example --budget '30 min'")
    spec = load_experiment(experiment, sets=sets)
    if metric not in spec.metrics:
        raise SpecError(f"unknown metric {metric}{nearest(metric, spec.metrics)}")
    full = plan_experiment(
        spec, seed=seed, repetitions=repetitions, only=only, where=where, backend=backend, progress=progress
    )
    box = box_of(full, over)
    name = _flow_of(full, metric, flow)
    asked = Asked(
        metric=metric, flow=name, largest=largest, over=tuple(box.levels), seed=full.seed, optuna=version("optuna")
    )
    directory = choose_directory(None if out is None else Path(out), resume, full)
    finder = _Finder(box, asked, budget_s, points)
    run = run_plan(
        spec,
        _begun(directory, finder.searched, full) if resume else finder.first(full),
        finder.rounds,
        later=full.cells,
        arguments=lambda file: arguments or ["search", str(file)],
        backend=backend,
        jobs=jobs,
        out=directory.root,
        resume=resume,
        keep=keep,
        pack=False,
        report=report,
        conclude=lambda done: search_conclusion(SearchResult(done, finder.searched, box, None)),
        progress=progress,
    )
    best = finder.searched.ranked[:1]
    place = directory.search / "spec.toml"
    if best:
        cells = {cell.id: cell for cell in run.plan.cells}
        cell = next(cells[name] for name in best[0][1].cells if _value(run.results, asked, name) == best[0][1].value)
        title = f"{metric} is {in_short(best[0][1].value, finder.searched.unit)}: {levels_text(best[0][1])}"
        write_atomic(place, replay_spec(spec, cell, title).encode())
    return SearchResult(run, finder.searched, box, place if best else None)


def box_of(plan: Plan, over: Sequence[str]) -> Box:
    """The points of a plan over these factors; none named: all of which it has several levels. Raises SpecError."""
    varied = {each.name: each for each in plan.factors if len({cell.factors[each.name] for cell in plan.cells}) > 1}
    for name in over:
        if name not in varied:
            raise SpecError(f"--over {name}: no factor of which these cells have several levels{nearest(name, varied)}")
    chosen = [varied[name] for name in over or varied]
    if not chosen:
        raise SpecError("there is nothing to search: these cells have one level of every factor")
    if any(each.schedule is not None for each in chosen):
        raise SpecError("schedules of packets are not searched: `netwarp run` runs them all")
    points: dict[Point, list[Cell]] = {}
    for cell in plan.cells:
        points.setdefault(tuple(cell.factors[each.name] for each in chosen), []).append(cell)
    levels = {
        each.name: tuple(dict.fromkeys([*_names(each), *(point[place] for point in points)]))
        for place, each in enumerate(chosen)
    }
    there = {name: {point[place] for point in points} for place, name in enumerate(levels)}
    levels = {name: tuple(level for level in known if level in there[name]) for name, known in levels.items()}
    ordered = frozenset(name for name, known in levels.items() if _in_order(known))
    return Box(levels, ordered, {point: tuple(cells) for point, cells in points.items()})


def _names(factor: PlannedFactor) -> list[str]:
    return [level.name for level in factor.levels]


def _in_order(levels: Sequence[str]) -> bool:
    """True if the levels are rising or falling numbers, or quantities of one kind."""
    values: list[float] = []
    kinds = set()
    for level in levels:
        try:
            values.append(float(level))
            kinds.add("number")
        except ValueError:
            try:
                quantity = parse_quantity(level)
            except QuantityError:
                return False
            values.append(quantity.value)
            kinds.add(quantity.kind)
    rising = all(a < b for a, b in pairwise(values))
    return len(kinds) == 1 and (rising or all(a > b for a, b in pairwise(values)))


def _flow_of(plan: Plan, metric: str, flow: str | None) -> str:
    """Whose metric it is. Raises SpecError where that is not said and several have it."""
    there = list(dict.fromkeys(name for cell in plan.cells for name in subjects(cell, metric)))
    if not there:
        raise SpecError(f"no flow or link of these cells has {metric}")
    if flow is not None and flow not in there:
        raise SpecError(f"--flow {flow}: no flow of these cells{nearest(flow, there)}")
    if flow is None and len(there) > 1:
        raise SpecError(f"whose {metric}? --flow {there[0]}, or another of {', '.join(there[1:8])}")
    return flow if flow is not None else there[0]


def _begun(directory: RunDir, now: Searched, plan: Plan) -> Plan:
    """What a search to be resumed has of a plan, in its order. Raises SpecError if it searched something else."""
    file = directory.search / RECORD
    before = read_json(file, Searched) if file.exists() else now
    if (before.asked, before.points) != (now.asked, now.points):
        raise SpecError(
            f"{directory.root}: holds a search for {_words(before.asked)} in {before.points} points, not for "
            f"{_words(now.asked)} in {now.points}; another --out starts a new one"
        )
    known = {cell.id: cell for cell in plan.cells}
    return with_cells(plan, [known[cell.id] for cell in read_plan(directory).cells if cell.id in known])


def _words(asked: Asked) -> str:
    extreme = "largest" if asked.largest else "smallest"
    whose = f" of {asked.flow}" if asked.flow else ""
    return f"the {extreme} {asked.metric}{whose} over {', '.join(asked.over)} (Optuna {asked.optuna})"


class _Finder:
    """The rounds of a search: each batch of points is chosen when the one before is measured."""

    def __init__(self, box: Box, asked: Asked, budget_s: float | None, points: int | None) -> None:
        self.searched = Searched(asked=asked, unit="", points=len(box.points))
        self._box = box
        self._ends = math.inf if budget_s is None else time.monotonic() + budget_s
        self._most = len(box.points) if points is None else points
        self._optimiser = Optimiser(box.levels, box.ordered, box.points, asked.seed, largest=asked.largest)
        self._batch = self._optimiser.ask(asked.batch)

    def first(self, plan: Plan) -> Plan:
        """The plan with the cells of the first batch alone."""
        return with_cells(plan, self._cells())

    def _cells(self) -> list[Cell]:
        return [cell for point in self._batch for cell in self._box.points[point]]

    def rounds(self, plan: Plan, means: Means) -> Plan:
        """Runs batch after batch; returns the plan with all their cells. A resumed search chooses the same batches
        again, all that it had, and finds their cells finished.
        """
        directory, begun = means.directory, len(plan.cells)
        while self._batch:
            cells = self._cells()
            there = {cell.id for cell in plan.cells}
            if new := [cell for cell in cells if cell.id not in there]:
                plan = with_cells(plan, [*plan.cells, *new])
                write_plan(directory, plan)
            part = with_cells(plan, cells)
            run_cells(part, means)
            self._measured(collect(part, directory))
            means.progress(Notice(self._so_far()))
            again = sum(len(each.cells) for each in self.searched.tried) < begun
            if not again:
                write_json(directory.search / RECORD, self.searched)
            more = len(self.searched.tried) < self._most and time.monotonic() < self._ends
            self._batch = self._optimiser.ask(self.searched.asked.batch) if again or more else []
        return plan

    def _measured(self, results: Results) -> None:
        asked = self.searched.asked
        tried = []
        for point in self._batch:
            names = [cell.id for cell in self._box.points[point]]
            values = {name: _value(results, asked, name) for name in names}
            known = [value for value in values.values() if value is not None]
            # a point is judged by all of its cells: of a part, the others might be worse
            value = (max if asked.largest else min)(known) if len(known) == len(values) else None
            levels = dict(zip(self._box.levels, point, strict=True))
            why = "" if value is not None else _why(values, results)
            tried.append(Tried(levels, value, tuple(names), why, point in self._optimiser.drawn))
            self._optimiser.tell(point, value)
        self.searched = msgspec.structs.replace(
            self.searched,
            tried=(*self.searched.tried, *tried),
            unit=results.units.get(asked.metric, "") or self.searched.unit,
        )

    def _so_far(self) -> str:
        so_far = f"{len(self.searched.tried)} of {counted(self.searched.points, 'point')}"
        if not self.searched.ranked:
            return f"{so_far}; none has a value yet"
        number, best = self.searched.ranked[0]
        return f"{so_far}; best, number {number}: {in_short(best.value, self.searched.unit)} at {levels_text(best)}"


def _value(results: Results, asked: Asked, cell: str) -> float | None:
    return results.by_cell[cell].value(asked.flow, asked.metric)


def _why(values: Mapping[str, float | None], results: Results) -> str:
    """Why a point has no value, by the first of its cells that has none."""
    name = next(name for name, value in values.items() if value is None)
    outcome = results.outcomes[name]
    if outcome.outcome is Outcome.COMPLETED:
        return f"{name}: nothing to measure"
    return f"{name}: {outcome.outcome}: {outcome.reason}"
