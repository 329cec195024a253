"""A run as the report reads it: plan, manifest, tables, outcomes, titles of metrics. It opens no captures."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from ..core.metrics.catalogue import GROUPS, METRICS
from ..core.numbers import WORDLESS
from ..core.outputs import Source
from ..core.types import BACK, Cell
from ..plan.types import Outputs, Plan, Selection
from ..results.rows import NOT_RUN
from ..store.conclusion import Conclusion, read_conclusion
from ..store.manifest import Manifest
from ..store.plan_file import read_plan
from ..store.probe_rows import Calibration
from ..store.run_dir import RunDir, read_json
from ..store.tables import each_row, number, read_rows

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MetricHeading:
    """A metric's heading, base unit, and the heading of the group it is listed in."""

    name: str
    title: str
    unit: str
    group: str = ""


OWN = "The experiment's own"
GROUP_ORDER = (OWN, *GROUPS.values())
"""The order of a list of metrics: those that are looked for most stand first."""
_SPELLED = {"rtt": "RTT", "rto": "RTO", "t3": "T3", "hol": "head-of-line", "sacks": "SACKs", "p95": "95th percentile"}


def metric_names(plan: Outputs, units: Mapping[str, str]) -> dict[str, MetricHeading]:
    """Every metric of the plan and of the tables. units: as measurements.csv states them."""
    own = {metric.name: metric for metric in plan.metrics if metric.name not in METRICS}
    names: dict[str, MetricHeading] = {}
    for name in dict.fromkeys([*(metric.name for metric in plan.metrics), *units]):
        if name in METRICS:
            metric = METRICS[name]
            names[name] = MetricHeading(name, metric.title, metric.unit, GROUPS[metric.group])
        else:
            title, unit = (own[name].title, own[name].unit) if name in own else ("", "")
            title = title if title and title != name else _words(name)
            names[name] = MetricHeading(name, title, units.get(name) or unit, OWN)
    return names


def unit_beside(title: str, unit: str) -> str:
    """The unit to show beside a title; empty if the title says it already ("packets (packets)", "packets per
    second").
    """
    rate = unit.endswith("/s") and title.endswith("per second")
    return "" if rate or unit in WORDLESS or unit in title.replace(",", "").split() else unit


def heading(title: str, unit: str) -> str:
    """Title and unit: "goodput (kbit/s)", but "retransmitted packets"."""
    unit = unit_beside(title, unit)
    return f"{title} ({unit})" if unit else title


def _words(name: str) -> str:
    """A metric's name without its unit: "paper_throughput_byte_s" -> "paper throughput"."""
    bare = re.sub(r"_(byte_s|bit_s|s|bytes|packets|ratio)$", "", name)
    return " ".join(_SPELLED.get(word, word) for word in bare.split("_"))


@dataclass(frozen=True, slots=True)
class CellResult:
    """A cell of the plan and how it ended, after every self-check (NOT_RUN: it has no outcome)."""

    id: str
    cell: Cell
    outcome: str
    reason: str
    virtual_s: float | None
    wall_s: float | None
    console_tail: tuple[str, ...]


def _short(source: Source) -> str:
    """Its title up to the first comma or bracket."""
    return re.split(r" ?[,(]", source.title or source.name)[0]


@dataclass(frozen=True)
class RunData:
    """A run. What is as large as its cells or their measurements is read when it is first asked for.

    tables: name of a table or figure -> rows of tables/<name>.csv; claims, claim_details: rows of those tables;
    calibration, conclusion: None if the run has none. units: metric -> unit, where that is known already.
    """

    run: RunDir
    plan: Plan
    manifest: Manifest
    tables: Mapping[str, Sequence[Row]]
    selection: Selection
    claims: Sequence[Row]
    claim_details: Sequence[Row]
    calibration: Calibration | None
    conclusion: Conclusion | None = None
    units: Mapping[str, str] | None = None

    @cached_property
    def cells(self) -> tuple[CellResult, ...]:
        """Every cell of the plan."""
        listed = {row["cell_id"]: row for row in each_row(self.run.tables / "cells.csv")}
        finished = self.run.finished()
        return tuple(_result(self.run, cell, listed, finished) for cell in self.plan.cells)

    @cached_property
    def _measurements(self) -> tuple[dict[tuple[str, str, str], float | None], dict[str, str]]:
        """measurements.csv: values, and metric -> unit."""
        values: dict[tuple[str, str, str], float | None] = {}
        units: dict[str, str] = {}
        for row in each_row(self.run.tables / "measurements.csv"):
            # the same texts in a million rows: each is kept once
            cell_id, flow, metric = map(sys.intern, (row["cell_id"], row["flow"], row["metric"]))
            values[cell_id, flow, metric] = number(row["value"])
            units[metric] = row["unit"]
        return values, units

    @property
    def values(self) -> Mapping[tuple[str, str, str], float | None]:
        """(cell id, flow, metric) -> number, None where there was nothing to measure."""
        return self._measurements[0]

    @cached_property
    def only(self) -> Mapping[tuple[str, str], float | None]:
        """The same without the flow, where a cell has the metric once."""
        return _only(self.values)

    @cached_property
    def measured(self) -> Mapping[str, Sequence[tuple[str, str, float | None]]]:
        """Cell id -> (flow, metric, value) in table order."""
        return _by_cell(self.values)

    @cached_property
    def metrics(self) -> Mapping[str, MetricHeading]:
        """The metrics that were measured, by name."""
        return metric_names(self.plan, self._measurements[1] if self.units is None else self.units)

    @property
    def system(self) -> str:
        """The measured system, as a column heading: "Linux 6.12" from the kernel's release, "Linux 6.1, 6.12" of
        several.
        """
        return "Linux " + ", ".join(
            ".".join(release.split(".")[:2]) for release in self.manifest.kernel_release.split(", ")
        )

    @property
    def random(self) -> bool:
        """True if the seed changes anything in any cell."""
        return any(result.cell.random for result in self.cells)

    def source_title(self, source: str, *, short: bool = False) -> str:
        """The name of a source of expected numbers, or of a metric that stands beside another. short: to head a column:
        "paper" of the paper, another's title up to its comma or bracket where that names no other source.
        """
        there = next((known for known in self.plan.sources if known.name == source), None)
        if there is None:
            return self.metrics[source].title if source in self.metrics else source
        papers = [known.name for known in self.plan.sources if known.kind == "paper"]
        if short and papers == [source]:
            return "paper"
        first, *others = (_short(known) for known in (there, *(one for one in self.plan.sources if one != there)))
        return first if short and first not in others else there.title or there.name


def read_run(run: RunDir, plan: Plan | None = None, units: Mapping[str, str] | None = None) -> RunData:
    """Read a run directory. plan: if it was read before; units: metric -> unit, likewise. Raises StoreError where
    plan.json or manifest.json is missing or unreadable.
    """
    plan = read_plan(run) if plan is None else plan
    listings = (plan.tables, plan.figures, plan.time_series, plan.event_tables)
    names = [plan.rows_of(output) for listing in listings for output in listing]
    return RunData(
        run=run,
        plan=plan,
        manifest=read_json(run.manifest, Manifest),
        tables={name: read_rows(run.tables / f"{name}.csv") for name in names},
        selection=Selection(plan),
        claims=read_rows(run.tables / "claims.csv"),
        claim_details=read_rows(run.tables / "claim_details.csv"),
        calibration=read_json(run.calibration, Calibration) if run.calibration.exists() else None,
        conclusion=read_conclusion(run),
        units=units,
    )


def _only(values: Mapping[tuple[str, str, str], float | None]) -> dict[tuple[str, str], float | None]:
    """Metrics that occur once in their cell, without their flow; of a flow's other direction none."""
    count = Counter((cell_id, metric) for cell_id, flow, metric in values if not flow.endswith(BACK))
    return {
        (cell, metric): value
        for (cell, flow, metric), value in values.items()
        if count[cell, metric] == 1 and not flow.endswith(BACK)
    }


def _by_cell(
    values: Mapping[tuple[str, str, str], float | None],
) -> dict[str, list[tuple[str, str, float | None]]]:
    by_cell: dict[str, list[tuple[str, str, float | None]]] = {}
    for (cell_id, flow, metric), value in values.items():
        by_cell.setdefault(cell_id, []).append((flow, metric, value))
    return by_cell


def _result(run: RunDir, cell: Cell, listed: Mapping[str, Row], finished: AbstractSet[str]) -> CellResult:
    """The result of a cell: cells.csv has the outcome after the analyser's checks; outcome.json the time and the
    console.
    """
    name = cell.id  # a hash of the whole cell: made once
    if name not in finished:
        return CellResult(name, cell, NOT_RUN, "", None, None, ())
    own = run.cell(name).read_outcome()
    row = listed.get(name)
    outcome, reason = (row["outcome"], row["reason"]) if row else (str(own.outcome), own.reason)
    return CellResult(name, cell, outcome, reason, own.virtual_s, own.wall_s, own.console_tail)
