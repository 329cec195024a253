"""The measurements of a run, looked up by levels."""

from __future__ import annotations

import itertools
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from ..core.metrics.catalogue import METRICS
from ..core.outputs import FLOW, Answer, Figure, Levels, Table
from ..core.subjects import groups_of, subjects
from ..core.types import Cell, CellOutcome, Measurement, Outcome
from ..plan.types import Plan, Selection
from .statistics import Estimate, estimate
from .tolerance import alike_within

CLOCK_S = 1e-6
"""The lateness of an instant on the virtual clock, the finest there is: a time has two ends, hence 2 us."""


@dataclass(frozen=True, slots=True)
class RepeatedValue:
    """One metric of one combination of levels, over its repetitions.

    values: by repetition, of the COMPLETED cells that have one. without: how many others completed, and had nothing to
    measure: the event did not happen in their window. missing: why a value is missing; "" if none is.
    """

    cells: tuple[Cell, ...]
    values: Mapping[int, float]
    missing: str
    failed: bool
    """True if a cell is absent or did not complete (else it ran, and had nothing to measure)."""
    measured: bool = True
    """True if every cell was asked for the metric (an older run may not know it)."""
    resolution: float = 0.0
    """How far two values may be apart without being told apart by the clock (the metric's unit)."""
    without: int = 0
    on_wall_clock: bool = False
    """True if the cells ran on the wall clock, where no run is the last one again, whatever the plan says."""
    digit: float = 0.0
    """Of a printed number: the unit of its last digit. Rounded or cut, it is less than that from the number."""

    def worst(self, share: float) -> float | None:
        """The draw that this share of the draws does not exceed. One without a value exceeds every other: its event had
        not happened, or its wait had not ended; None: it is such a draw, or there is none.
        """
        rank = math.ceil(share * (len(self.values) + self.without))
        known = sorted(self.values.values())
        return known[max(rank, 1) - 1] if known and rank <= len(known) else None

    @property
    def random(self) -> bool:
        """True if another run could give another number: says the plan or the clock, or repetitions differ."""
        return self.on_wall_clock or any(cell.random for cell in self.cells) or not self.alike

    @property
    def alike(self) -> bool:
        """True if the clock does not tell any two of its values apart."""
        values = self.values.values()
        return not values or max(values) - min(values) <= self.resolution

    def estimate(self) -> Estimate | None:
        """The estimate over the repetitions; None without a value."""
        values = [self.values[number] for number in sorted(self.values)]
        return estimate(values, random=self.random, resolution=self.resolution) if values else None


@dataclass(frozen=True, slots=True)
class CellFlow:
    """One flow of a cell ("": the whole cell); levels: the cell's, with the flow as the level of FLOW."""

    cell: Cell
    flow: str
    levels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class RowNames:
    """Flow, metric and unit of each measurement of a cell; cells with the same ones share one object."""

    names: tuple[tuple[str, str, str], ...]
    at: Mapping[tuple[str, str], int]
    """Flow and metric -> place; of one that stands there twice the last."""


@dataclass(frozen=True, slots=True)
class CellValues:
    """The measurements of a cell, eight bytes each: 100,000 cells have millions. NaN: there was nothing to measure."""

    cell_id: str
    columns: RowNames
    values: array[float]

    def __iter__(self) -> Iterator[Measurement]:
        for (flow, metric, unit), value in zip(self.columns.names, self.values, strict=True):
            yield Measurement(self.cell_id, flow, metric, None if math.isnan(value) else value, unit)

    def value(self, flow: str, metric: str) -> float | None:
        """One measurement; None if there is none."""
        place = self.columns.at.get((flow, metric))
        return None if place is None or math.isnan(self.values[place]) else self.values[place]


class Results:
    """Outcomes and measurements of a plan's cells. Only COMPLETED cells have values."""

    def __init__(
        self,
        plan: Plan,
        outcomes: Mapping[str, CellOutcome],
        measurements: Iterable[Measurement],
        digits: Mapping[tuple[str, str], float] | None = None,
    ) -> None:
        """measurements: an iterable that is read once; a cell's outcome must be in `outcomes` when its first
        measurement comes. digits: cell id and metric -> unit of the last digit, where the numbers are printed ones.
        """
        self.plan = plan
        self._digits = digits or {}
        self._selection = Selection(plan)
        self.outcomes = outcomes
        self._names = {id(cell): cell.id for cell in plan.cells}  # a hash of the whole cell: made once
        nothing = RowNames((), {})
        self.by_cell = {name: CellValues(name, nothing, array("d")) for name in self._names.values()}
        known: dict[tuple[tuple[str, str, str], ...], RowNames] = {}
        for name, group in itertools.groupby(measurements, attrgetter("cell_id")):
            if name in self.by_cell and self.completed(name):
                rows = [*self.by_cell[name], *group]
                names = tuple((row.flow, row.metric, row.unit) for row in rows)
                if names not in known:
                    known[names] = RowNames(names, {(flow, metric): at for at, (flow, metric, _) in enumerate(names)})
                values = array("d", (math.nan if row.value is None else row.value for row in rows))
                self.by_cell[name] = CellValues(name, known[names], values)
        self._flows: dict[str, set[str]] = {}
        """Metric -> the flows that have it in any cell."""
        self._units: dict[str, str] = {}
        for flow, metric, unit in itertools.chain.from_iterable(known):
            self._flows.setdefault(metric, set()).add(flow)
            self._units[metric] = unit
        self.on_wall_clock = any(METRICS[metric].flows == "wall clock" for metric in self._flows if metric in METRICS)
        """Whether computing took time in its cells: only there flows have the metrics of CPU time."""

    @property
    def units(self) -> Mapping[str, str]:
        """Metric -> unit, of all that was measured."""
        return self._units

    @property
    def any_completed(self) -> bool:
        """Whether any cell completed: else nothing tells which clock it ran on."""
        return any(outcome.outcome is Outcome.COMPLETED for outcome in self.outcomes.values())

    def name(self, cell: Cell) -> str:
        """A cell's id."""
        return self._names.get(id(cell)) or cell.id

    def completed(self, cell_id: str) -> bool:
        """True if the cell ran and passed its self-checks."""
        outcome = self.outcomes.get(cell_id)
        return outcome is not None and outcome.outcome is Outcome.COMPLETED

    def value(self, cell_id: str, flow: str, metric: str) -> float | None:
        """One measurement of a COMPLETED cell; None if there is none."""
        return self.by_cell[cell_id].value(flow, metric) if cell_id in self.by_cell else None

    def repeated(self, cells: Sequence[Cell], flow: str, metric: str) -> RepeatedValue:
        """One metric of these cells, the repetitions of one combination."""
        values: dict[int, float] = {}
        missing: list[str] = []
        failed = not cells
        without = 0
        measured = bool(cells)
        for cell in cells:
            name = self.name(cell)
            value = self.value(name, flow, metric)
            outcome = self.outcomes.get(name)
            if not self.completed(name):
                failed = True
                measured = False
                missing.append(f"{name} {outcome.outcome if outcome is not None else 'was not run'}")
            elif value is None:
                missing.append(f"{name} has no {metric}")
                without += 1
                measured &= name in self.by_cell and (flow, metric) in self.by_cell[name].columns.at
            else:
                values[cell.repetition] = value
        finest = 0.0
        if len(values) > 1:
            size = max(map(abs, values.values()))
            finest = alike_within(metric, self._units.get(metric, ""), size, cells[0].duration_ns / 1e9, CLOCK_S)
        said = "; ".join(missing)
        digit = max((self._digits.get((self.name(cell), metric), 0.0) for cell in cells), default=0.0)
        return RepeatedValue(tuple(cells), values, said, failed, measured, finest, without, self.on_wall_clock, digit)

    def cells(self, where: Levels) -> tuple[Cell, ...]:
        """The cells of the plan that match a selector, in order."""
        return tuple(cell for cell in self.plan.cells if self._selection.has(cell, where))

    def cell_flows(self, output: Table | Figure | Answer) -> Iterator[CellFlow]:
        """The flows that an output shows, of the cells it is about, in the order of the plan."""
        chosen = set(output.flows) or self._flows.get(output.metric)
        pooled = isinstance(output, Figure) and output.distribution
        for cell in self.cells(output.where):
            known = subjects(cell, output.metric)
            groups = {name: flows for name, flows in groups_of(cell).items() if name not in known} if pooled else {}
            named = [name for name in (*known, *groups) if chosen is None or name in chosen]
            for flow in named if FLOW in output.axes else output.flows:
                for one in groups.get(flow, (flow,)):
                    yield CellFlow(cell, one, {**cell.factors, FLOW: flow})
