"""Reads the outputs of a spec: its own metrics, tables and figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from ..core.metrics.catalogue import METRICS
from ..core.metrics.expressions import OF_THE_CELL, OF_THE_FLOW, expression_problem, parameter_units
from ..core.outputs import EXPERIMENT, FLOW, Figure, FigureKind, Levels, Metric, Statistic, Table
from ..core.types import BACK
from .factors import DOES_NOT_APPLY, FactorSpec, check_condition, check_experiment
from .fields import PLACEHOLDER, read_levels
from .grammar import METRIC, TABLE
from .merge import DEEPEST_PARAMETER
from .problems import Problems, nearest
from .toml_positions import Item

FIGURE_AXES = ("x", "y", "lines", "panels", "over")
AXES_OF: dict[FigureKind, tuple[str, ...]] = {
    "line": ("x", "lines"),
    "heatmap": ("x", "y", "panels"),
    "cdf": ("lines", "over"),
    "box": ("x", "lines", "over"),
}
"""The axes of a figure of each kind; x and y are required where it has them."""
RESERVED_TABLES = frozenset({"cells", "measurements", "claims", "claim_details", "schedules"})


@dataclass(frozen=True, slots=True)
class Names:
    """The names that an output may use: factors (FLOW among them), experiments, metrics."""

    factors: Mapping[str, FactorSpec]
    experiments: tuple[str, ...]
    metrics: Mapping[str, Metric]


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
        metric = Metric(name, read_title(child, name), child.text("unit"), child.text("value"), source)
        metrics.append(OwnMetric(metric, value or published or child))
        known.add(name)
    return tuple(metrics)


def _parameters_by_level(document: Item, factors: Mapping[str, FactorSpec]) -> list[tuple[str, dict[str, str]]]:
    """The parameters' values at each level of each factor, with the level's name; equal values once. What a level
    leaves open has any value that it may have.
    """

    def said(layer: Item | None) -> dict[str, str]:
        table = layer.get("parameter") if layer is not None else None
        return {name: str(child.value) for name, child in (table.table() if table is not None else {}).items()}

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


def known_metrics(own: tuple[OwnMetric, ...]) -> dict[str, Metric]:
    """Every metric by name."""
    there = {name: Metric(name, name, metric.unit) for name, metric in METRICS.items()}
    return there | {each.metric.name: each.metric for each in own}


def read_tables(document: Item, names: Names, problems: Problems) -> tuple[Table, ...]:
    """Every [table.NAME]."""
    tables: list[Table] = []
    for name, item in named(document, "table"):
        if name in RESERVED_TABLES:
            problems.add(item, f'"{name}" is a table netwarp writes itself; choose another name')
        if item.get("around") is not None:
            continue  # a table of events (timeline.py)
        metric = read_metric(item, names.metrics, problems)
        rows, columns = (read_axes(item, key, names.factors, problems) for key in ("rows", "columns"))
        _check_twice(item, (*rows, *columns), problems)
        flows, where = read_flows(item, names, problems), read_selector(item, names, problems, (*rows, *columns))
        beside = read_beside(item, metric, names.metrics, problems)
        tables.append(
            Table(name, read_title(item, name), metric, flows, rows, columns, where, beside, read_statistic(item))
        )
    return tuple(tables)


def read_figures(document: Item, names: Names, problems: Problems) -> tuple[Figure, ...]:
    """Every [figure.NAME]."""
    figures: list[Figure] = []
    for name, item in named(document, "figure"):
        if name in RESERVED_TABLES:
            problems.add(item, f'"{name}" is a table netwarp writes itself; choose another name')
        if item.get("series") is not None:
            continue  # a figure over time (timeline.py)
        kind = read_kind(item)
        for key in sorted(set(FIGURE_AXES) - set(AXES_OF[kind])):
            if (child := item.get(key)) is not None:
                problems.add(child, f"a figure of kind {kind} has no {key}, only {', '.join(AXES_OF[kind])}")
        log = item.get("log")
        if log is not None and kind != "line":
            problems.add(log, f"a figure of kind {kind} has no log, its axis is so where its values ask for it")
        metric = read_metric(item, names.metrics, problems)
        named_axes = [child for axis in FIGURE_AXES if (child := item.get(axis)) is not None]
        axes = [str(part.value) for child in named_axes for part in (child.items() or [child])]
        figure = Figure(
            name=name,
            title=read_title(item, name),
            metric=metric,
            flows=read_flows(item, names, problems),
            x=_read_axis(item, "x", kind, names.factors, problems),
            lines=read_axes(item, "lines", names.factors, problems),
            where=read_selector(item, names, problems, axes),
            kind=kind,
            y=_read_axis(item, "y", kind, names.factors, problems),
            panels=read_axes(item, "panels", names.factors, problems),
            over=read_axes(item, "over", names.factors, problems),
            log=log is not None and log.value is True,
            beside=read_beside(item, metric, names.metrics, problems),
        )
        if kind != "line" and figure.beside:
            problems.add(item, f"a figure of kind {kind} has nothing beside its metric, only one of kind line")
        _check_twice(item, figure.axes, problems)
        figures.append(figure)
    return tuple(figures)


def read_beside(item: Item, metric: str, metrics: Mapping[str, Metric], problems: Problems) -> tuple[str, ...]:
    """The metrics to show beside a table's or figure's metric; they must have the same unit, since they share
    its axis.
    """
    child = item.get("beside")
    names = item.texts("beside")
    for name in names:
        assert child is not None
        if name not in metrics:
            problems.add(child.part(name), f'unknown metric "{name}"{nearest(name, metrics)}')
        elif metric in metrics and metrics[name].unit != metrics[metric].unit:
            units = f"{metrics[name].unit or 'no unit'}, {metric} in {metrics[metric].unit or 'no unit'}"
            problems.add(child.part(name), f"{name} is in {units}; what stands beside it must have its unit")
    return names


def read_statistic(item: Item) -> Statistic:
    """The number of several repetitions that a table shows; by default their mean. (The grammar has refused others.)"""
    asked = item.get("statistic")
    known: tuple[Statistic, ...] = get_args(Statistic)
    return next((each for each in known if asked is not None and asked.value == each), "mean")


def read_kind(item: Item) -> FigureKind:
    """The kind of a figure; "line" by default. (The grammar has refused unknown kinds.)"""
    kind = item.get("kind")
    return next((known for known in AXES_OF if kind is not None and kind.value == known), "line")


def _read_axis(item: Item, key: str, kind: FigureKind, factors: Mapping[str, FactorSpec], problems: Problems) -> str:
    """The factor of an axis that this kind of figure needs; "" if it has no such axis."""
    if key not in AXES_OF[kind]:
        return ""
    child = item.get(key)
    if child is None:
        there = ", ".join(factors)
        problems.add(item, f'kind "{kind}" needs {key} = a factor; there is: {there}')
        return ""
    if not isinstance(child.value, str):
        return ""  # the grammar has said so
    if child.value not in factors:
        problems.add(child, f'{key} must be a factor, not "{child.value}"{nearest(str(child.value), factors)}')
    return str(child.value)


def read_metric(item: Item, metrics: Mapping[str, Metric], problems: Problems, key: str = "metric") -> str:
    """The `metric` of a table, figure, claim or number; it must exist."""
    metric = item.get(key)
    if metric is None:
        problems.add(item, f"its metric is missing; for example metric = {TABLE['metric'].example}")
        return ""
    if isinstance(metric.value, str) and metric.value not in metrics:
        problems.add(metric, f'unknown metric "{metric.value}"{nearest(str(metric.value), metrics)}')
    return metric.value if isinstance(metric.value, str) else ""


def read_where(item: Item | None, names: Names, problems: Problems, *, flows: bool = False) -> Levels:
    """A selector whose factors, levels and experiments exist. flows: it may name a flow too."""
    if item is None:
        return {}
    if not flows and (child := item.get(FLOW)) is not None:
        problems.add(child, 'this chooses cells; the flow is chosen beside it; for example flow = "ftp"')
    check_condition(item, names.factors, problems, names.experiments)
    return read_levels(item, TABLE["where"], problems)


def read_selector(item: Item, names: Names, problems: Problems, axes: Sequence[str] = ()) -> Levels:
    """The cells of an output: its `experiment` and its `where`, and the usual level of every factor that has one and is
    not named.
    """
    where = {**read_experiment(item, names, problems), **read_where(item.get("where"), names, problems)}
    return with_usual(where, names, axes)


def with_usual(where: Levels, names: Names, axes: Sequence[str]) -> Levels:
    """The selector plus the usual level of every factor that neither it nor the axes name."""
    usual = {
        name: (factor.usual, DOES_NOT_APPLY)
        for name, factor in names.factors.items()
        if factor.usual and name not in where and name not in axes
    }
    return {**where, **usual}


def read_experiment(item: Item, names: Names, problems: Problems) -> Levels:
    """The selector for the key `experiment` of an output; empty without the key."""
    child = item.get(EXPERIMENT)
    if child is None:
        return {}
    check_experiment(child, names.experiments, problems)
    return {EXPERIMENT: item.texts(EXPERIMENT)}


def read_axes(item: Item, key: str, factors: Mapping[str, FactorSpec], problems: Problems) -> tuple[str, ...]:
    """One factor or a list of factors."""
    child = item.get(key)
    if child is None or child.value == []:
        return ()
    names = child.texts()
    for name in names:
        if name not in factors:
            problems.add(child.part(name), f'unknown factor "{name}"{nearest(name, factors)}')
    return names


def named(document: Item, section: str) -> list[tuple[str, Item]]:
    """The tables of a section in order (the grammar has refused anything else)."""
    item = document.get(section)
    return [(name, child) for name, child in item.table().items() if isinstance(child.value, dict)] if item else []


def _check_twice(item: Item, axes: tuple[str, ...], problems: Problems) -> None:
    for axis in dict.fromkeys(axes):
        if axes.count(axis) > 1:
            problems.add(item, f'factor "{axis}" stands on two axes')


def read_title(item: Item, default: str) -> str:
    """Its `title`, or `default`."""
    title = item.get("title")
    return str(title.value) if title is not None else default


def read_flows(item: Item, names: Names, problems: Problems) -> tuple[str, ...]:
    """The flows named by `flow` (of a figure also `flows`); they must exist."""
    child, same = item.get("flow"), item.get("flows")
    if child is not None and same is not None:
        problems.add(same, "flow and flows are the same key: write one of them")
    child = same if child is None else child
    flows = child.texts() if child is not None else ()
    known = [level.name for level in names.factors[FLOW].levels]
    for flow in flows:
        assert child is not None
        if flow.removesuffix(BACK) not in known:
            problems.add(child.part(flow), f'there is no flow "{flow}"{nearest(flow, known)}')
    return flows
