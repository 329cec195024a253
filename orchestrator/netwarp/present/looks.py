"""One look for a variant in all figures and tables of a report, whichever factors a figure names it by."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.outputs import FLOW
from ..core.subjects import shown_subjects
from .figures.line import line_key
from .figures.over_time import curve_factors, curve_key, flow_shown
from .result_tables import levels_of
from .run_data import RunData
from .style import COLOURS, MOST_SHAPES, Look, look, solid

Levels = frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A line of a figure. levels: those it is named by (a curve also: those that lines are named by); common: those of
    all its cells. curve: its flow and path, of a figure over time.
    """

    figure: str
    levels: Levels
    common: Levels
    curve: tuple[str, str] | None = None

    def is_of(self, other: _Drawn) -> bool:
        """True if both draw one variant: what one of them names by a level, all cells of the other have."""
        if self.curve is not None and other.curve is None:
            return bool(other.levels) and other.common <= self.common
        if not (self.levels <= other.common and other.levels <= self.common) or self.curve != other.curve:
            return False
        return self.curve is not None or self.levels <= other.levels or other.levels <= self.levels

    def is_part_of(self, other: _Drawn) -> bool:
        """True if the other line has cells of this one, and more."""
        elsewhere = {factor for factor, _ in other.common - self.levels}
        apart = any(factor in elsewhere for factor, _ in self.levels)
        return self.curve is None and bool(other.levels) and other.levels < self.levels and not apart


def report_looks(data: RunData) -> dict[str, Look]:
    """Key of a line or curve -> its look. A variant has one look in all figures, and what is part of a variant its
    colour, as far as a figure's lines can still be told apart.
    """
    lines, curves = _lines(data), _curves(data)
    drawn = dict(sorted(lines.items(), key=lambda line: len(line[1][0].levels))) | curves
    found: dict[str, Look] = {}
    for key, mine in drawn.items():
        figures = {one.figure for one in mine}
        beside = [other for other in found if figures & {one.figure for one in drawn[other]}]
        same = [other for other in found if any(a.is_of(b) for a in mine for b in drawn[other])]
        if key in curves:  # a second path of a cell is no second variant: a look of its own, the same in all figures
            second = any(drawn[other][0].common == mine[0].common for other in beside)
            known_curves = [other for other in same if other in curves]
            same = known_curves or ([] if second else sorted(same, key=lambda other: -len(drawn[other][0].levels)))
        taken = {found[other].light if key in curves else found[other].number for other in beside}
        known = (found[other] for other in same if taken.isdisjoint((found[other].light, found[other].number)))
        whole = [other for other in found if any(a.is_part_of(b) for a in mine for b in drawn[other])]
        largest = max(whole, key=lambda other: len(drawn[other][0].levels), default="")
        found[key] = next(known, None) or _new(found, [found[other] for other in beside], found.get(largest))
    return {key: solid(own) if key in curves else own for key, own in found.items()}


def _new(found: Mapping[str, Look], beside: Sequence[Look], like: Look | None) -> Look:
    """A look that no line has, in a colour that none beside it has, or in that of another."""
    used = {own.number for own in found.values()}
    colours = {own.light for own in beside}
    free = (look(number) for number in itertools.count() if number not in used)
    if like is not None:
        shapes = {(own.marker, own.dash) for own in beside}
        one = next(own for own in free if (own.marker, own.dash) not in shapes or len(shapes) >= MOST_SHAPES)
        return replace(one, light=like.light, dark=like.dark)
    return next(own for own in free if own.light not in colours or len(colours) >= COLOURS)


def _lines(data: RunData) -> dict[str, list[_Drawn]]:
    """Key of a line -> it in each figure that draws it."""
    telling = _telling(data)
    lines: dict[str, list[_Drawn]] = {}
    for figure in data.plan.figures:
        if figure.kind == "heatmap":
            continue
        common: dict[tuple[str, ...], Levels] = {}
        for result in data.cells:
            if not data.selection.has(result.cell, figure.where):
                continue
            shown = shown_subjects(result.cell, figure.metric, figure.flows, pooled=figure.distribution)
            for flow in shown if FLOW in figure.lines else [""]:
                every = {**result.cell.factors, FLOW: flow}
                place, its = levels_of(every, figure.lines), frozenset((name, every[name]) for name in telling)
                common[place] = common.get(place, its) & its
        for place, levels in common.items():
            named = frozenset(pair for pair in zip(figure.lines, place, strict=True) if pair[1] != "-")
            lines.setdefault(line_key(figure.lines, place), []).append(_Drawn(figure.name, named, levels))
    return lines


def _curves(data: RunData) -> dict[str, list[_Drawn]]:
    """Key of a curve -> it."""
    levels_of_cell = {result.id: result.cell.factors for result in data.cells}
    curves: dict[str, list[_Drawn]] = {}
    for figure in data.plan.time_series:
        rows = data.tables.get(data.plan.rows_of(figure), ())
        factors = curve_factors(data, figure, rows)
        several = len({flow_shown(data, figure, row) for row in rows}) > 1
        for row in rows:
            key = curve_key(data, figure, row, factors)
            if key not in curves:
                # of one flow, or one group, the look is that of the variant
                every = {**levels_of_cell[row["cell_id"]], FLOW: flow_shown(data, figure, row) if several else ""}
                # the level of a panel is no part of what a line in all panels is
                told = _telling(data).union(factors) - ({*figure.panels} - {*factors})
                levels = frozenset((name, every[name]) for name in told)
                curves[key] = [_Drawn(figure.name, levels, levels, (every[FLOW], row["path"]))]
    return curves


def _telling(data: RunData) -> set[str]:
    """The factors by which lines are told apart."""
    return {factor for figure in data.plan.figures for factor in figure.lines}
