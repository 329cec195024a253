"""The plan: every cell of a run (plan.json) and its outputs (outputs.json)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

import msgspec

from ..core.frozen import Frozen
from ..core.names import MOST_CELLS, Count, Name
from ..core.outputs import (
    FLOW,
    Answer,
    Claim,
    Column,
    EventTable,
    Figure,
    Levels,
    Metric,
    PublishedNumber,
    Source,
    Summary,
    Table,
    TimeSeries,
    Word,
    matches,
)
from ..core.schedule_levels import PacketSchedule
from ..core.subjects import groups_of, links_of
from ..core.types import Cell

PLAN_FORMAT: Literal[1] = 1


class Level(Frozen, frozen=True):
    """A level of a factor: its text in the spec, its name in tables, and the keys it sets ("protocol = sctp")."""

    name: str
    title: str
    sets: tuple[str, ...] = ()


class PlannedFactor(Frozen, frozen=True):
    """A property that is varied. usual, unstated: as in the spec (experiment/factors.py). schedule: its levels are
    packets, found while the run grows (plan/schedules.py); None also where only its undisturbed level was asked for.
    """

    name: Name
    title: str
    levels: tuple[Level, ...]
    usual: str = ""
    unstated: str = ""
    schedule: PacketSchedule | None = None


class PlannedExperiment(Frozen, frozen=True):
    """A named experiment of the spec. `factors`: those it varies.

    shared: the combinations (a level per factor of the plan) that other experiments have too. Each is run once, as a
    cell of one of them.
    """

    name: Name
    title: str
    factors: tuple[str, ...]
    shared: tuple[tuple[str, ...], ...] = ()


class Outputs(Frozen, frozen=True, kw_only=True):
    """The outputs of a run (tables, figures, claims, answers) and the names of its factors: outputs.json. `netwarp
    analyze RUN --spec` may replace them.
    """

    title: str
    description: str
    factors: tuple[PlannedFactor, ...]
    experiments: tuple[PlannedExperiment, ...]
    metrics: tuple[Metric, ...]
    tables: tuple[Table, ...]
    figures: tuple[Figure, ...]
    time_series: tuple[TimeSeries, ...] = ()
    event_tables: tuple[EventTable, ...] = ()
    sources: tuple[Source, ...]
    expected: tuple[PublishedNumber, ...]
    claims: tuple[Claim, ...]
    answers: tuple[Answer, ...] = ()
    columns: tuple[Column, ...] = ()
    headline: tuple[str, ...] = ()
    """The claims that the report shows first."""
    summary: Summary | None = None
    words: tuple[Word, ...] = ()
    key_figure: str = ""
    """The figure that the report shows first."""

    def factor_title(self, factor: str) -> str:
        """A factor's title, or its name."""
        return next((known.title or known.name for known in self.factors if known.name == factor), factor)

    def level_title(self, factor: str, level: str) -> str:
        """A level's title, or its text."""
        for known in self.factors:
            for candidate in known.levels if known.name == factor else ():
                if candidate.name == level:
                    return candidate.title or candidate.name
        return level


OUTPUTS = Outputs.__struct_fields__


class Plan(Outputs, frozen=True, kw_only=True):
    """Every cell of a run in order, and everything needed to make its tables and report without the spec."""

    format: Literal[1] = PLAN_FORMAT
    name: Name
    seed: Count
    repetitions: Count
    """The most that any combination has (experiments may have different numbers)."""
    filters: tuple[str, ...]
    """The --only and --where this plan was made with, as text."""
    parameters: dict[str, str]
    cells: Annotated[tuple[Cell, ...], msgspec.Meta(max_length=MOST_CELLS)]

    def with_outputs(self, other: Plan) -> Plan:
        """The same cells with the outputs of another plan."""
        return msgspec.structs.replace(self, **{name: getattr(other, name) for name in OUTPUTS})

    @property
    def dimensions(self) -> tuple[PlannedFactor, ...]:
        """The names that axes and selectors may use: the factors, and the flows, groups and links of the cells."""
        flows = dict.fromkeys(flow.name for cell in self.cells for flow in cell.flows)
        flows |= dict.fromkeys(name for cell in self.cells for name in (*groups_of(cell), *links_of(cell)))
        return (*self.factors, PlannedFactor(FLOW, FLOW, tuple(Level(name, name) for name in flows)))

    @property
    def groups(self) -> dict[str, str]:
        """Flow -> the group it belongs to, of the flows that `count` and `arrivals` made."""
        flows = (flow for cell in self.cells for flow in cell.flows)
        return {flow.name: flow.group for flow in flows if isinstance(flow.group, str)}

    def rows_of(self, output: Table | EventTable | Figure | TimeSeries) -> str:
        """The name of its file in tables/, without .csv: its own; of a figure with the name of a table, NAME.figure."""
        tables = {table.name for table in self.tables} | {table.name for table in self.event_tables}
        figure = isinstance(output, Figure | TimeSeries) and output.name in tables
        return f"{output.name}.figure" if figure else output.name


class Selection:
    """Finds the cells of a plan that match a selector, whichever of its experiments a cell was run for."""

    def __init__(self, plan: Plan) -> None:
        self._experiments: dict[tuple[str, ...], list[str]] = {}
        for experiment in plan.experiments:
            for levels in experiment.shared:
                self._experiments.setdefault(levels, []).append(experiment.name)

    def has(self, cell: Cell, where: Levels, flow: str | None = None) -> bool:
        """True if a cell of the plan, or a flow of it, matches the selector."""
        experiments = self._experiments.get(tuple(cell.factors.values()), (cell.experiment,))
        levels = cell.factors if flow is None else {**cell.factors, FLOW: flow}
        return matches(levels, where, experiments)


def in_level_order(plan: Plan, factors: Sequence[str], places: Iterable[tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Distinct combinations of levels in the order in which the spec lists the levels; "-" (does not apply) first."""
    order = {
        (factor.name, level.name): number for factor in plan.dimensions for number, level in enumerate(factor.levels)
    }
    return sorted(
        dict.fromkeys(places), key=lambda place: [order.get(pair, -1) for pair in zip(factors, place, strict=True)]
    )
