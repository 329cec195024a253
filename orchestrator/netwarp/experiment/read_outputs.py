"""Reads the outputs of a spec: its own metrics, tables (of a metric, or of the packets around moments), figures (of a
metric, or over time), and answers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..core.metrics.catalogue import METRICS
from ..core.metrics.expressions import OF_THE_CELL, OF_THE_FLOW, expression_problem, parameter_units
from ..core.outputs import (
    EXPERIMENT,
    FLOW,
    OF_WINDOWS,
    SERIES,
    Answer,
    Cost,
    EventTable,
    Figure,
    FigureKind,
    Levels,
    Metric,
    Reason,
    Statistic,
    Table,
    TimeSeries,
)
from ..core.types import BACK
from ..core.units import Kind, QuantityError, parse_quantity
from .factors import DOES_NOT_APPLY, FactorSpec, check_condition, check_experiment
from .fields import PLACEHOLDER, read_levels, read_names, read_span
from .flow_groups import matching
from .grammar import ANSWER, FIGURE, METRIC, TABLE
from .merge import DEEPEST_PARAMETER
from .problems import Problems, nearest
from .toml_positions import Item

STATISTICS: tuple[Statistic, ...] = get_args(Statistic)
FIGURE_AXES = ("x", "y", "lines", "panels", "over")
AXES_OF: dict[FigureKind, tuple[str, ...]] = {
    "line": ("x", "lines"),
    "heatmap": ("x", "y", "panels"),
    "cdf": ("lines", "over"),
    "box": ("x", "lines", "over"),
}
"""The axes of a figure of each kind; x and y are required where it has them."""
RESERVED_TABLES = frozenset({"cells", "measurements", "claims", "claim_details", "schedules"})
WINDOWED = ("goodput_bit_s", "throughput_bit_s")
"""Series that are by windows of time too."""
PACKETS = 4
UNITS: dict[str, Kind] = {"s": "time", "bytes": "data", "bit/s": "rate", "ratio": "ratio", "packets": "packets"}
"""Unit of a metric -> the kind of quantity its budgets are."""


@dataclass(frozen=True, slots=True)
class OwnMetric:
    """A metric that the spec defines, and where it does."""

    metric: Metric
    item: Item


def read_metrics(document: Item, factors: Mapping[str, FactorSpec], problems: Problems) -> tuple[OwnMetric, ...]:
    """Every [metric.NAME]; expressions may use metrics listed before it."""
    by_level = _parameters_by_level(document, factors)

    def hint(word: str, names: Iterable[str]) -> str:
        return f': it is a factor; let a parameter be "{{{word}}}"' if word in factors else nearest(word, names)

    taken = set(METRICS) | {OF_THE_CELL, *OF_THE_FLOW}
    known = set(taken)
    metrics: list[OwnMetric] = []
    for name, child in named(document, "metric"):
        value, published = child.get("value"), child.get("published")
        for key, there in (("unit", child.get("unit")), ("value", value or published)):
            if there is None:
                problems.add(child, f"its {key} is missing; for example {key} = {METRIC[key].example}")
        if value is not None and published is not None:
            problems.add(published, "value and published are two definitions; leave one of them out")
        if name in taken:
            problems.add(child, f'"{name}" is a name of netwarp; a metric of the spec needs another name')
        if value is not None and (wrong := _wrong_somewhere(child.text("value"), known, by_level, hint)) is not None:
            problems.add(value, f"{wrong}; for example {METRIC['value'].example}")
        source = child.text("published") if value is None else ""
        metric = Metric(name, child.text("title", name), child.text("unit"), child.text("value"), source)
        metrics.append(OwnMetric(metric, value or published or child))
        known.add(name)
    return tuple(metrics)


def _parameters_by_level(document: Item, factors: Mapping[str, FactorSpec]) -> list[tuple[str, dict[str, str]]]:
    """The parameters' values at each level of each factor, with the level's name; equal values once. What a level
    leaves open has any value that it may have.
    """

    def said(layer: Item | None) -> dict[str, str]:
        table = layer.under("parameter") if layer is not None else {}
        return {name: str(child.value) for name, child in table.items()}

    levels = [(name, level) for name, factor in factors.items() for level in factor.levels]
    usual = {name: level.name for name, level in reversed(levels)}
    anywhere = {name: text for _, level in levels for name, text in said(level.patch).items()} | said(document)
    found = [] if levels else [("", _filled(anywhere, anywhere))]
    for name, level in levels:
        texts = anywhere | said(level.patch)
        texts = _filled(texts, {**texts, **usual, name: level.name})
        if all(texts != other for _, other in found):
            found.append((f' where {name} is "{level.name}"', texts))
    return found


def _filled(texts: dict[str, str], known: Mapping[str, str]) -> dict[str, str]:
    for _ in range(DEEPEST_PARAMETER):
        texts = {name: PLACEHOLDER.sub(lambda at: known.get(at[1], at[0]), text) for name, text in texts.items()}
    return texts


def _wrong_somewhere(
    text: str,
    known: set[str],
    by_level: Sequence[tuple[str, Mapping[str, str]]],
    hint: Callable[[str, Iterable[str]], str],
) -> str | None:
    """The reason why an expression is wrong, or None; with the level, if it is right at another. A parameter has one
    unit at all levels.
    """
    wrong = [expression_problem(text, known, parameters, hint) for _, parameters in by_level]
    for (where, _), reason in zip(by_level, wrong, strict=True):
        if reason is not None:
            return reason if len({*wrong}) == 1 else reason + where
    units: dict[str, str] = {}
    for where, parameters in by_level:
        for name, unit in parameter_units(text, parameters).items():
            if unit != units.setdefault(name, unit):
                return f'the parameter {name} is "{parameters[name]}"{where}, and in {units[name]} elsewhere'
    return None


RENAMED_METRICS = {"failover_time_s": "first_useful_arrival_other_path_s"}
"""Names of before 24 November 2026 that scripts may still have, for which a guess by letters would be wrong."""


def known_metrics(own: tuple[OwnMetric, ...]) -> dict[str, Metric]:
    """Every metric by name."""
    there = {name: Metric(name, name, metric.unit) for name, metric in METRICS.items()}
    return there | {each.metric.name: each.metric for each in own}


@dataclass(frozen=True, slots=True)
class OutputReader:
    """Reads outputs, whose factors (FLOW among them), experiments and metrics must be these. Mistakes are collected."""

    factors: Mapping[str, FactorSpec]
    experiments: tuple[str, ...]
    metrics: Mapping[str, Metric]
    problems: Problems

    def tables(self, document: Item) -> tuple[Table, ...]:
        """Every [table.NAME] of a metric."""
        return tuple(self._table(*each) for each in self._named(document, "table") if each[1].get("around") is None)

    def figures(self, document: Item) -> tuple[Figure, ...]:
        """Every [figure.NAME] of a metric."""
        return tuple(self._figure(*each) for each in self._named(document, "figure") if each[1].get("series") is None)

    def time_series(self, document: Item) -> tuple[TimeSeries, ...]:
        """Every [figure.NAME] that has `series`."""
        measured = document.get("measure") is not None or any(
            level.patch is not None and level.patch.get("measure") is not None
            for factor in self.factors.values()
            for level in factor.levels
        )
        figures = [each for each in named(document, "figure") if each[1].get("series") is not None]
        return tuple(self._series(*each, measured=measured) for each in figures)

    def event_tables(self, document: Item) -> tuple[EventTable, ...]:
        """Every [table.NAME] that has `around`."""
        return tuple(self._events(*each) for each in named(document, "table") if each[1].get("around") is not None)

    def answers(self, document: Item) -> tuple[Answer, ...]:
        """Every [answer.NAME]."""
        return tuple(self._answer(*each) for each in named(document, "answer"))

    def _named(self, document: Item, section: str) -> list[tuple[str, Item]]:
        for name, item in named(document, section):
            if name in RESERVED_TABLES:
                self.problems.add(item, f'"{name}" is a table netwarp writes itself; choose another name')
        return named(document, section)

    def _table(self, name: str, item: Item) -> Table:
        if (child := item.get("packets")) is not None:
            said = f"belongs to a table of events; for example around = {TABLE['around'].example}"
            self.problems.add(child, said)
        metric = self.metric(item)
        rows, columns = self.axes(item, "rows"), self.axes(item, "columns")
        table = Table(
            name=name,
            title=item.text("title", name),
            metric=metric,
            flows=self.flows(item),
            rows=rows,
            columns=columns,
            where=self.selector(item, (*rows, *columns)),
            beside=self._beside(item, metric),
            statistic=item.choice("statistic", STATISTICS, "mean"),
        )
        self._check_twice(item, table.axes)
        return table

    def _figure(self, name: str, item: Item) -> Figure:
        if (child := item.get("window")) is not None:
            said = f"belongs to a figure over time; for example series = {FIGURE['series'].example}"
            self.problems.add(child, said)
        kind = item.choice("kind", tuple(AXES_OF), "line")
        for key in sorted(set(FIGURE_AXES) - set(AXES_OF[kind])):
            self._refuse(item, (key,), f"a figure of kind {kind} has no {key}, only {', '.join(AXES_OF[kind])}")
        if kind != "line":
            no = f"a figure of kind {kind} has no log, its axis is so where its values ask for it"
            self._refuse(item, ("log",), no)
            if item.texts("beside"):
                said = f"a figure of kind {kind} has nothing beside its metric, only one of kind line"
                self.problems.add(item, said)
        metric = self.metric(item)
        log = item.get("log")
        figure = Figure(
            name=name,
            title=item.text("title", name),
            metric=metric,
            flows=self.flows(item),
            x=self._axis(item, "x", kind),
            lines=self.axes(item, "lines"),
            where=self.selector(item, [axis for key in FIGURE_AXES for axis in item.texts(key)]),
            kind=kind,
            y=self._axis(item, "y", kind),
            panels=self.axes(item, "panels"),
            over=self.axes(item, "over"),
            log=log is not None and log.value is True,
            beside=self._beside(item, metric),
        )
        self._check_twice(item, figure.axes)
        return figure

    def _series(self, name: str, item: Item, *, measured: bool) -> TimeSeries:
        no = "a figure over time has `series` and `where`, and no {}; leave this out"
        self._refuse(item, ("metric", "x", "lines"), no)
        series, shown = item.get("series") or item, item.texts("series")
        for unknown in (column for column in shown if column not in SERIES):
            self.problems.add(series.part(unknown), f'unknown series "{unknown}"{nearest(unknown, SERIES)}')
        if not shown:
            self.problems.add(series, f"is empty; for example {FIGURE['series'].example}")
        units = dict.fromkeys(SERIES[column] for column in shown if column in SERIES)
        if len(units) > 1:
            said = f"have one axis and {len(units)} units: {', '.join(units)}; make a figure of each"
            self.problems.add(series, said)
        between = item.get("window")
        window = None if between is None else read_span(between, FIGURE["window"].example, self.problems, least_ns=1)
        switches = [(child := item.get(key)) is not None and child.value is True for key in ("log", "windows")]
        by_windows = switches[1] or any(column in OF_WINDOWS for column in shown)
        if by_windows and not measured:
            said = 'is by windows of time, which [measure] makes; for example measure = { windows = "1 s" }'
            self.problems.add(item.get("windows") or series, said)
        if by_windows and (sampled := [column for column in shown if column not in (*OF_WINDOWS, *WINDOWED)]):
            self.problems.add(
                series.part(sampled[0]), f"{sampled[0]} is not by windows of time: make a figure of its own"
            )
        panels = self.axes(item, "panels")
        return TimeSeries(
            name=name,
            title=item.text("title", name),
            flows=self.flows(item),
            series=shown,
            window_ns=window,
            where=self.selector(item, panels),
            panels=panels,
            log=switches[0],
            windows=by_windows,
        )

    def _events(self, name: str, item: Item) -> EventTable:
        no = "a table of events has `around`, `experiment` and `where`, and no {}; leave this out"
        self._refuse(item, ("metric", "rows", "columns"), no)
        around, moments = item.get("around") or item, item.texts("around")
        if not moments:
            self.problems.add(around, f"is empty; for example {TABLE['around'].example}")
        flows = self.flows(item)
        if len(flows) > 1 and (child := item.get("flow")) is not None:
            self.problems.add(child, f'a table of events is of one flow; for example flow = "{flows[0]}"')
        flow, packets = next(iter(flows), ""), item.integer("packets") or PACKETS
        return EventTable(name, item.text("title", name), flow, moments, packets, self.selector(item))

    def _answer(self, name: str, item: Item) -> Answer:
        metric = self.metric(item)
        for key in ("settings", "budgets"):
            if (listed := item.get(key)) is None:
                self.problems.add(item, f"its {key} are missing; for example {key} = {ANSWER[key].example}")
            elif isinstance(listed.value, list) and not listed.value:
                self.problems.add(listed, f"is empty; for example {key} = {ANSWER[key].example}")
        settings, given = self.axes(item, "settings"), self.axes(item, "given")
        for factor in sorted(set(settings) & set(given)):
            self.problems.add(item, f'factor "{factor}" is in both `settings` and `given`')
        if (tempting := item.get("tempting")) is not None:
            self._known_metric(tempting, str(tempting.value))
        cost = item.get("cost")
        return Answer(
            name=name,
            title=item.text("title", name),
            metric=metric,
            flows=self.flows(item),
            settings=settings,
            given=given,
            budgets=self._budgets(item, self.metrics.get(metric)),
            where=self.selector(item, (*settings, *given)),
            tempting=item.text("tempting"),
            because=tuple(
                Reason(self.metric(each), self._above(each.get("above")), self._text(each))
                for each in item.listed("because")
            ),
            cost=None if cost is None else Cost(self.metric(cost), self.where(cost.get("where")), self._text(cost)),
        )

    def _budgets(self, item: Item, metric: Metric | None) -> tuple[str, ...]:
        """Quantities of the metric's kind."""
        listed = item.get("budgets")
        if listed is None or metric is None:
            return ()
        kind = UNITS.get(metric.unit)
        if kind is None:
            said = f'a budget needs a metric in one of {", ".join(UNITS)}; "{metric.name}" is in {metric.unit}'
            self.problems.add(item, said)
            return ()
        names = read_names(listed, ANSWER["budgets"], self.problems)
        for text in names:
            try:
                parse_quantity(text, kind)
            except QuantityError as error:
                self.problems.add(listed.part(text), str(error))
        return names

    def _above(self, item: Item | None) -> float | None:
        if item is None:
            return None
        if isinstance(item.value, int | float) and not isinstance(item.value, bool):
            return float(item.value)
        said = "must be a number in the metric's unit (left out: the budget); for example above = 1"
        self.problems.add(item, said)
        return None

    def _text(self, item: Item) -> str:
        """The text of a reason: names in braces must be metrics, or `value`."""
        text = item.get("text")
        if text is None:
            said = 'its text is missing; for example text = "it takes {theory_timeouts} timeouts in a row"'
            self.problems.add(item, said)
            return ""
        for name in re.findall(r"\{([^{}]*)\}", str(text.value)):
            if name != "value":
                self._known_metric(text, name)
        return str(text.value)

    def _known_metric(self, item: Item, name: str) -> None:
        if name not in self.metrics:
            renamed = RENAMED_METRICS.get(name)
            guess = f', which is called "{renamed}" now' if renamed else nearest(name, self.metrics)
            self.problems.add(item, f'unknown metric "{name}"{guess}')

    def metric(self, item: Item, key: str = "metric") -> str:
        """The `metric` of an output; it must exist."""
        metric = item.get(key)
        if metric is None:
            self.problems.add(item, f"its metric is missing; for example metric = {TABLE['metric'].example}")
        elif isinstance(metric.value, str):
            self._known_metric(metric, metric.value)
        return item.text(key)

    def _beside(self, item: Item, metric: str) -> tuple[str, ...]:
        """The metrics to show beside a table's or figure's metric; they must have the same unit, since they share
        its axis.
        """
        names = item.texts("beside")
        for name in names:
            place = (item.get("beside") or item).part(name)
            self._known_metric(place, name)
            known, wanted = self.metrics.get(name), self.metrics.get(metric)
            if known is not None and wanted is not None and known.unit != wanted.unit:
                units = f"{known.unit or 'no unit'}, {metric} in {wanted.unit or 'no unit'}"
                self.problems.add(place, f"{name} is in {units}; what stands beside it must have its unit")
        return names

    def _axis(self, item: Item, key: str, kind: FigureKind) -> str:
        """The factor of an axis that this kind of figure needs; "" if it has no such axis."""
        child, factor = item.get(key), item.text(key)
        if key not in AXES_OF[kind]:
            return ""
        if child is None:
            there = ", ".join(self.factors)
            self.problems.add(item, f'kind "{kind}" needs {key} = a factor; there is: {there}')
        elif isinstance(child.value, str) and factor not in self.factors:
            self.problems.add(child, f'{key} must be a factor, not "{factor}"{nearest(factor, self.factors)}')
        return factor

    def axes(self, item: Item, key: str) -> tuple[str, ...]:
        """One factor or a list of factors."""
        names = item.texts(key)
        for name in names:
            if name not in self.factors:
                place = (item.get(key) or item).part(name)
                self.problems.add(place, f'unknown factor "{name}"{nearest(name, self.factors)}')
        return names

    def _check_twice(self, item: Item, axes: tuple[str, ...]) -> None:
        for axis in dict.fromkeys(axes):
            if axes.count(axis) > 1:
                self.problems.add(item, f'factor "{axis}" stands on two axes')

    def _refuse(self, item: Item, keys: tuple[str, ...], why: str) -> None:
        for key in keys:
            if (child := item.get(key)) is not None:
                self.problems.add(child, why.format(key))

    def where(self, item: Item | None, *, flows: bool = False) -> Levels:
        """A selector whose factors, levels and experiments exist. flows: it may name a flow too."""
        if item is None:
            return {}
        if not flows and (child := item.get(FLOW)) is not None:
            self.problems.add(child, 'this chooses cells; the flow is chosen beside it; for example flow = "ftp"')
        check_condition(item, self.factors, self.problems, self.experiments)
        return read_levels(item, TABLE["where"], self.problems)

    def selector(self, item: Item, axes: Sequence[str] = ()) -> Levels:
        """The cells of an output: its `experiment` and its `where`, and the usual level of every factor that has one
        and is not named.
        """
        return self.with_usual({**self.experiment(item), **self.where(item.get("where"))}, axes)

    def with_usual(self, where: Levels, axes: Sequence[str]) -> Levels:
        """The selector plus the usual level of every factor that neither it nor the axes name."""
        usual = {
            name: (factor.usual, DOES_NOT_APPLY)
            for name, factor in self.factors.items()
            if factor.usual and name not in where and name not in axes
        }
        return {**where, **usual}

    def experiment(self, item: Item) -> Levels:
        """The selector for the key `experiment` of an output; empty without the key."""
        child = item.get(EXPERIMENT)
        if child is None:
            return {}
        check_experiment(child, self.experiments, self.problems)
        return {EXPERIMENT: item.texts(EXPERIMENT)}

    def flows(self, item: Item) -> tuple[str, ...]:
        """The flows named by `flow` (of a figure also `flows`), patterns among them; they must exist."""
        child, same = item.get("flow"), item.get("flows")
        if child is not None and same is not None:
            self.problems.add(same, "flow and flows are the same key: write one of them")
        child = child or same
        if child is None:
            return ()
        known = [level.name for level in self.factors[FLOW].levels]
        for flow in child.texts():
            if not matching(flow.removesuffix(BACK), known):
                self.problems.add(child.part(flow), f'there is no flow "{flow}"{nearest(flow, known)}')
        return child.texts()


def named(document: Item, section: str) -> list[tuple[str, Item]]:
    """The tables of a section in order (the grammar has refused anything else)."""
    return [(name, child) for name, child in document.under(section).items() if isinstance(child.value, dict)]
