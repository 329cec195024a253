"""Checks tables, figures and claims against the combinations of a spec: each number must come from exactly one kind of
cell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ..core.frozen import to_json
from ..core.outputs import (
    EXPERIMENT,
    FLOW,
    OF_THE_CELL,
    Answer,
    Claim,
    Column,
    EventTable,
    Figure,
    Levels,
    Table,
    TimeSeries,
)
from ..core.types import Cell
from ..experiment import Problems, Spec
from ..experiment.factors import DOES_NOT_APPLY, ExperimentSpec
from ..experiment.toml_positions import Item
from .combine import Combination
from .level_index import LevelIndex
from .output_flows import OutputFlows

Wanted = TypeVar("Wanted", Table, Figure, TimeSeries, Answer)


def _index(everything: Sequence[tuple[Sequence[ExperimentSpec], Combination]]) -> LevelIndex:
    return LevelIndex([([experiment.name for experiment in asking], levels) for asking, levels in everything])


ALONG_LEVELS = ("constant", "varies", "elasticity", "increasing", "decreasing")
"""Kinds of claims that hold the levels of `over` against each other."""
Chosen = Mapping[str, Sequence[tuple[str, Combination]]]
"""Claim, by its name -> its side ("a" or "b") and the combination of levels of each of its selectors, in order."""


def check_wanted(
    spec: Spec, everything: Sequence[tuple[Sequence[ExperimentSpec], Combination]], problems: Problems
) -> Chosen:
    """Reports each table, figure or claim that would mix cells of different levels, or has no cells; returns what the
    claims compare.

    everything: each combination of levels with the experiments that have it.
    """
    compared: dict[str, list[tuple[str, Combination]]] = {}
    cells = _index(everything)
    for table in spec.tables:
        _check_axes(spec, "table", table.name, table.axes, table.where, cells, problems)
    for figure in spec.figures:
        _check_axes(spec, "figure", figure.name, figure.axes, figure.where, cells, problems)
    shown = [("figure", output.name, output.where) for output in spec.time_series]
    for section, name, where in [*shown, *(("table", output.name, output.where) for output in spec.event_tables)]:
        if not cells.count(where):
            problems.add(_selector_place(_place(spec, section, name, "")), _none(where))
    for answer in spec.answers:
        wheres = [(answer.where, "where"), *([(answer.cost.where, "cost")] if answer.cost else [])]
        for where, key in wheres:
            if not cells.count(where):
                place = _place(spec, "answer", answer.name, key)
                problems.add(place, f"no cell fits its `{key}`: {_shown(where)}")
    for claim in spec.claims:
        for side, selector in selectors(claim):
            chosen = cells.where(selector)
            if len(chosen) != 1 and not (claim.of_schedules and claim.kind == "every" and chosen):
                said = (
                    f"the selector {_shown(selector)} fits {len(chosen)} cells{_differences(chosen)}; it must fit one"
                )
                problems.add(_place(spec, "claim", claim.name, side), f'claim "{claim.name}": {said}')
            compared.setdefault(claim.name, []).extend((side, levels) for levels in chosen)
    return compared


def check_sides(spec: Spec, compared: Chosen, cells: Sequence[Cell], problems: Problems) -> None:
    """Reports each claim that compares a cell with itself: it says nothing, whatever is measured. Its levels are
    others, but what they set is the same. Of claims of which not all cells are planned nothing is said.
    """
    first = {tuple(cell.factors.values()): cell for cell in reversed(cells)}
    for claim in spec.claims:
        if claim.of_schedules or claim.over == FLOW or claim.metric_b not in ("", claim.metric):
            continue
        sides: dict[str, list[tuple[object, ...]]] = {"a": [], "b": []}
        for (side, levels), (_, selector) in zip(compared.get(claim.name, ()), selectors(claim), strict=True):
            if (cell := first.get(tuple(levels.values()))) is None:
                break
            sides[side].append((_content(cell), cell.metrics.get(claim.metric), selector.get(FLOW)))
        else:
            if _says_nothing(claim, sides["a"], sides["b"]):
                alike = f"all that it compares is one cell, by several names: {_shown(claim.a[0])}"
                problems.add(_place(spec, "claim", claim.name, "a"), f'claim "{claim.name}": {alike}')


def _content(cell: Cell) -> bytes:
    """What a cell does, without what it is called and what is computed from it."""
    return to_json(msgspec.structs.replace(cell, experiment="", factors={}, parameters={}, metrics={}, metric_units={}))


def _says_nothing(claim: Claim, a: Sequence[object], b: Sequence[object]) -> bool:
    """True if each of a is what it is held against: each of b at its level, or the other levels of `over`, which follow
    each other in both.
    """
    levels = max(1, len(claim.levels))
    rows = [side[at : at + levels] for side in (a, b) for at in range(0, len(side), levels)]
    if claim.kind in ALONG_LEVELS and all(len(set(row)) == 1 for row in rows):
        return True
    return bool(b) and all(left == right for at in range(levels) for left in a[at::levels] for right in b[at::levels])


def claims_of(spec: Spec, everything: Sequence[tuple[Sequence[ExperimentSpec], Combination]]) -> tuple[Claim, ...]:
    """The claims of a spec, and their copies for the columns whose cells the plan has."""
    cells = _index(everything)
    usual: Levels = {factor.name: (factor.usual,) for factor in spec.factors.values() if factor.usual}

    def fits_one(claim: Claim) -> bool:
        fit = [cells.count(selector) for _, selector in selectors(claim)]
        return all(fit) if claim.of_schedules else all(number == 1 for number in fit)

    def reaches(claim: Claim, column: Column) -> bool:
        levels = {
            factor: tuple(level for level in some if level != DOES_NOT_APPLY) for factor, some in column.where.items()
        }
        return any(cells.count({**selector, **levels}) for _, selector in selectors(claim))

    return tuple(
        msgspec.structs.replace(claim, combinations=tuple(cells.count(selector) for selector in claim.a))
        if claim.of_schedules
        else claim
        for claim in with_columns(spec.claims, spec.columns, usual, fits_one, reaches)
    )


def with_columns(
    claims: Sequence[Claim],
    columns: Sequence[Column],
    usual: Levels,
    fits_one: Callable[[Claim], bool],
    reaches: Callable[[Claim, Column], bool],
) -> Iterator[Claim]:
    """Every claim, each followed by its copies for the columns whose cells the plan has. Only claims under the spec's
    own condition are copied.

    usual: factor -> its usual level. fits_one: whether every selector of a claim matches exactly one cell. reaches:
    whether any of them has a cell where the column's factor applies. A claim that itself names another level of the
    column's factor compares levels and is not copied.
    """
    of_column = {
        column.name: {c.id for c in claims if _copied(c, column, usual, fits_one) and reaches(c, column)}
        for column in columns
    }
    for claim in claims:
        yield claim
        for column in columns:
            there = of_column[column.name]
            if claim.condition or not (claim.id in there or (claim.of and set(claim.of) <= there)):
                continue
            there.add(claim.id)  # a mean may be of means
            a, b = (tuple({**selector, **column.where} for selector in side) for side in (claim.a, claim.b))
            yield msgspec.structs.replace(claim, condition=column.where, column=column.name, a=a, b=b)


def _copied(claim: Claim, column: Column, usual: Levels, fits_one: Callable[[Claim], bool]) -> bool:
    if not claim.a or claim.condition:
        return False
    selectors = (*claim.a, *claim.b)
    plain = all(
        set(usual.get(factor, ())) & set(selector.get(factor, ())) for selector in selectors for factor in column.where
    )
    if not plain or claim.over in column.where:
        return False
    a, b = (tuple({**selector, **column.where} for selector in side) for side in (claim.a, claim.b))
    return fits_one(msgspec.structs.replace(claim, a=a, b=b))


def selectors(claim: Claim) -> Iterator[tuple[str, Levels]]:
    """Every selector of a claim, once per level of `over`; each with the prefix "a" or "b"."""
    for side, parts in (("a", claim.a), ("b", claim.b)):
        for part in parts:
            for levels in ({claim.over: (level,)} for level in claim.levels) if claim.over else ({},):
                yield side, {**part, **levels}


def _place(spec: Spec, section: str, name: str, key: str) -> Item:
    """The position in the TOML where a table, figure, answer or claim has `key`, or where it begins."""
    item = spec.claim_places.get(name) if section == "claim" else spec.document.get(section, name)
    item = item or spec.document
    return item.get(key) or item


def _check_axes(
    spec: Spec,
    section: str,
    name: str,
    axes: tuple[str, ...],
    where: Levels,
    cells: LevelIndex,
    problems: Problems,
) -> None:
    item = spec.document.get(section, name)
    assert isinstance(item, Item)
    places: dict[tuple[str, ...], list[Combination]] = {}
    for levels in cells.where(where):
        places.setdefault(tuple(levels[axis] for axis in axes if axis != FLOW), []).append(levels)
    if not places:
        problems.add(_selector_place(item), _none(where))
    for mixed in places.values():
        if len(mixed) > 1:
            problems.add(item, f"one place of it would mix {len(mixed)} cells{_differences(mixed, section)}")
            return


def _selector_place(item: Item) -> Item:
    """The position of the key that selects an output's cells."""
    return item.get("where") or item.get(EXPERIMENT) or item


def _none(where: Levels) -> str:
    """The message that no cell matches a selector."""
    return "no cell of its `experiment` fits its `where`" if EXPERIMENT in where else "no cell fits its `where`"


def _differences(combinations: Sequence[Combination], section: str = "claim") -> str:
    """The factors that differ, and keys that can be pasted: of a table, a figure or a claim."""
    if not combinations:
        return ""
    differing = [name for name in combinations[0] if len({levels[name] for levels in combinations}) > 1]
    if not differing:
        return ""
    levels = dict.fromkeys(levels[differing[0]] for levels in combinations)
    chosen = f'{differing[0]} = "{next(iter(levels))}"'
    if section == "claim":
        return f", which differ in {', '.join(differing)}: choose, for example a = {{ {chosen} }}"
    axis = {"table": "columns", "figure": "lines"}.get(section)
    shown = f', or {axis} = ["{differing[0]}"]' if axis else ""
    return f", which differ in {', '.join(differing)}: choose, for example where = {{ {chosen} }}{shown}"


def _shown(selector: Levels) -> str:
    return "{ " + ", ".join(f"{factor} = {' or '.join(levels)}" for factor, levels in selector.items()) + " }"


def with_flows(spec: Spec, claims: Sequence[Claim], cells: Sequence[Cell]) -> dict[str, Any]:
    """The members of Outputs with their flows filled in: the only flow of the cells, if the output names none and FLOW
    is not among its axes.

    claims: of the spec and of its columns. A flow that an output names need not be among those of the cells: a run may
    hold a part of the experiments.
    """
    problems = Problems()
    known = OutputFlows(cells, problems)

    def resolve(section: str, output: Wanted, several: Sequence[str] = ()) -> Wanted:
        item = _place(spec, section, output.name, "flow")
        metric = _like(output) if isinstance(output, TimeSeries) else output.metric
        pooled = isinstance(output, TimeSeries) or (isinstance(output, Figure) and output.distribution)
        chosen = known.of_output(item, metric, output.flows, along=FLOW in several, pooled=pooled)
        return msgspec.structs.replace(output, flows=chosen)

    def events(table: EventTable) -> EventTable:
        item = _place(spec, "table", table.name, "flow")
        (flow,) = known.of_output(item, "", (table.flow,) if table.flow else (), along=False)
        return msgspec.structs.replace(table, flow=flow)

    resolved = {
        "tables": tuple(resolve("table", table, table.axes) for table in spec.tables),
        "figures": tuple(resolve("figure", figure, figure.axes) for figure in spec.figures),
        "claims": tuple(_claim_with_flow(spec, claim, known, problems) for claim in claims),
        "time_series": tuple(resolve("figure", each, (FLOW,) if each.flows else ()) for each in spec.time_series),
        "event_tables": tuple(events(table) for table in spec.event_tables),
        "answers": tuple(resolve("answer", answer, answer.axes) for answer in spec.answers),
    }
    problems.check()
    return resolved


def _like(figure: TimeSeries) -> str:
    """A metric of the same flows, links or cell as the series of a figure over time; "": of flows."""
    if all(series in OF_THE_CELL for series in figure.series):
        return "jain_index"
    return "queue_delay_mean_s" if figure.windows else ""


def _claim_with_flow(spec: Spec, claim: Claim, known: OutputFlows, problems: Problems) -> Claim:
    """A claim with the flow for those of its selectors that name none."""
    if not claim.metric:
        return claim
    flow, question = known.of_claim(claim.metric, claim.flow)
    for side, selector in selectors(claim):
        item = _place(spec, "claim", claim.name, claim.over if claim.over == FLOW else side)
        chosen = selector.get(FLOW, ())
        if wrong := known.problem_of_selector(claim.metric, chosen, _shown(selector)):
            problems.add(item, wrong)
        if not chosen and question:
            problems.add(_place(spec, "claim", claim.name, "flow"), question)
    return msgspec.structs.replace(claim, flow=flow)
