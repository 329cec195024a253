"""Tables, figures and claims against the combinations a spec really has: each number must mean one cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec

from ..core.metrics.catalogue import CELL_METRICS
from ..core.outputs import EXPERIMENT, Answer, Claim, EventTable, Figure, Levels, Table, TimeSeries, matches
from ..experiment import Problems, Spec
from ..experiment.factors import ExperimentSpec
from ..experiment.problems import nearest
from ..experiment.toml_positions import Item
from .combine import Combination

Wanted = TypeVar("Wanted", Table, Figure, Claim, TimeSeries, EventTable)
Told = tuple[tuple[Table, ...], tuple[Figure, ...], tuple[Claim, ...], tuple[TimeSeries, ...], tuple[EventTable, ...]]


class _Cells:
    """The combinations of a spec, each with the experiments that have it."""

    def __init__(self, everything: Sequence[tuple[Sequence[ExperimentSpec], Combination]]) -> None:
        self._everything = [([one.name for one in asking], levels) for asking, levels in everything]

    def where(self, selector: Levels) -> list[Combination]:
        """The combinations that satisfy a selector."""
        return [levels for experiments, levels in self._everything if matches(levels, selector, experiments)]


def check_wanted(
    spec: Spec, everything: Sequence[tuple[Sequence[ExperimentSpec], Combination]], problems: Problems
) -> None:
    """Says which table, figure or claim would mix cells of different levels, or have none at all.

    everything: each combination of levels with the experiments that have it.
    """
    cells = _Cells(everything)
    for table in spec.tables:
        _check_axes(spec, "table", table.name, table.axes, table.where, cells, problems)
    for figure in spec.figures:
        _check_axes(spec, "figure", figure.name, figure.axes, figure.where, cells, problems)
    shown = [("figure", one.name, one.where) for one in spec.time_series]
    for section, name, where in [*shown, *(("table", one.name, one.where) for one in spec.event_tables)]:
        if not cells.where(where):
            problems.add(_selector_place(_place(spec, section, name, "")), _none(where))
    for answer in spec.answers:
        wheres = [(answer.where, "where"), *([(answer.cost.where, "cost")] if answer.cost else [])]
        for where, key in wheres:
            if not cells.where(where):
                place = _place(spec, "answer", answer.name, key)
                problems.add(place, f"no cell fits its `{key}`: {_shown(where)}")
    for claim in spec.claims:
        for side, selector in selectors(claim):
            chosen = cells.where(selector)
            if len(chosen) != 1:
                said = (
                    f"the selector {_shown(selector)} fits {len(chosen)} cells{_differences(chosen)}; it must fit one"
                )
                problems.add(_place(spec, "claim", claim.id, side), f'claim "{claim.id}": {said}')


def selectors(claim: Claim) -> Iterator[tuple[str, Levels]]:
    """Every selector of a claim, with each level it goes over; "a" or "b" before it."""
    for side, parts in (("a", claim.a), ("b", claim.b)):
        for part in parts:
            for levels in ({claim.over: (level,)} for level in claim.levels) if claim.over else ({},):
                yield side, {**part, **levels}


def _place(spec: Spec, section: str, name: str, key: str, text: str = "") -> Item:
    """Where a table, figure, answer or claim says `key` (in a list: `text`), else where it begins."""
    item = spec.claim_places.get(name) if section == "claim" else spec.document.get(section, name)
    item = item or spec.document
    return (item.get(key) or item).part(text)


def _check_axes(
    spec: Spec,
    section: str,
    name: str,
    axes: tuple[str, ...],
    where: Levels,
    cells: _Cells,
    problems: Problems,
) -> None:
    item = spec.document.get(section, name)
    assert isinstance(item, Item)
    places: dict[tuple[str, ...], list[Combination]] = {}
    for levels in cells.where(where):
        places.setdefault(tuple(levels[axis] for axis in axes), []).append(levels)
    if not places:
        problems.add(_selector_place(item), _none(where))
    for mixed in places.values():
        if len(mixed) > 1:
            problems.add(item, f"one place of it would mix {len(mixed)} cells{_differences(mixed)}")
            return


def _selector_place(item: Item) -> Item:
    """Where an output says which cells it is of."""
    return item.get("where") or item.get(EXPERIMENT) or item


def _none(where: Levels) -> str:
    """That no cell satisfies a selector."""
    return "no cell of its `experiment` fits its `where`" if EXPERIMENT in where else "no cell fits its `where`"


def _differences(combinations: Sequence[Combination]) -> str:
    if not combinations:
        return ""
    differing = [name for name in combinations[0] if len({levels[name] for levels in combinations}) > 1]
    if not differing:
        return ""
    levels = dict.fromkeys(levels[differing[0]] for levels in combinations)
    return f', which differ in {", ".join(differing)}: choose, for example {differing[0]} = "{next(iter(levels))}"'


def _shown(selector: Levels) -> str:
    return "{ " + ", ".join(f"{factor} = {' or '.join(levels)}" for factor, levels in selector.items()) + " }"


def with_flows(spec: Spec, flows: Sequence[str]) -> Told:
    """Everything wanted of a flow, with the flow it means: the only one there is, where none is named.

    flows: of the cells of this run. What is named need not be in one: a part of the experiments may be run alone.
    """
    problems = Problems()
    named = [*flows, *flows_named(spec)]

    def flow(section: str, name: str, metric: str, given: str, key: str = "flow") -> str:
        if metric in CELL_METRICS or (not given and len(flows) == 1):
            return "" if metric in CELL_METRICS else flows[0]
        _check_flow(problems, _place(spec, section, name, key, given), given, flows, named)
        return given

    def told(section: str, name: str, wanted: Wanted) -> Wanted:
        metric = "" if isinstance(wanted, (TimeSeries, EventTable)) else wanted.metric
        return msgspec.structs.replace(wanted, flow=flow(section, name, metric, wanted.flow))

    def known(section: str, name: str, given: Sequence[str]) -> bool:
        for one in given:
            flow(section, name, "", one, "flows")
        return True

    tables = tuple(told("table", table.name, table) for table in spec.tables)
    figures = tuple(told("figure", figure.name, figure) for figure in spec.figures)
    claims = tuple(told("claim", claim.id, claim) if claim.metric else claim for claim in spec.claims)
    time_series = tuple(
        one if one.flows and known("figure", one.name, one.flows) else told("figure", one.name, one)
        for one in spec.time_series
    )
    event_tables = tuple(told("table", one.name, one) for one in spec.event_tables)
    problems.check()
    return tables, figures, claims, time_series, event_tables


def flows_named(spec: Spec) -> list[str]:
    """Every flow that the spec or a level of a factor has."""
    patches = [level.patch for factor in spec.factors.values() for level in factor.levels if level.patch is not None]
    sections = [section for layer in (spec.document, *patches) if (section := layer.get("flow")) is not None]
    return list(dict.fromkeys(name for section in sections for name in section.table()))


def answers_with_flows(spec: Spec, flows: Sequence[str]) -> tuple[Answer, ...]:
    """Answers with the flow they mean."""
    problems = Problems()
    named = [*flows, *flows_named(spec)]
    for answer in spec.answers:
        if answer.flow or len(flows) > 1:
            _check_flow(problems, _place(spec, "answer", answer.name, "flow"), answer.flow, flows, named)
    problems.check()
    return tuple(msgspec.structs.replace(answer, flow=answer.flow or flows[0]) for answer in spec.answers)


def _check_flow(problems: Problems, place: Item, given: str, flows: Sequence[str], named: Sequence[str]) -> None:
    """The flow that a table, figure, answer or claim names must be there; where there are several, it names one."""
    if not given:
        problems.add(place, f'of which flow? name one: {", ".join(flows)}; for example flow = "{flows[0]}"')
    elif given not in named:
        problems.add(place, f'there is no flow "{given}"{nearest(given, named)}')
