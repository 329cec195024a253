"""Computes answers: which settings keep a metric within a budget, which only appear to, and why. One row per choice.

Over everything that is neither a setting nor given (other factors, repetitions) the worst value counts. A cell that
completed without a value is worse than any number: the event had not ended by the cell's end. A cell that did not
complete might have been worse still, so if the others are within the budget, the verdict is open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.numbers import in_short
from ..core.outputs import FLOW, Answer
from ..core.types import Cell
from ..core.units import counted_of, parse_quantity
from .rows import Field, Rows, combinations
from .run_results import CellFlow, Results

SUFFICES, AT_A_COST, TEMPTING = "does it", "does it, at a cost", "looks tempting, does not"
FAILS, NOT_MEASURED = "does not", "not measured"
VERDICTS = (SUFFICES, AT_A_COST, TEMPTING, FAILS, NOT_MEASURED)
COUNTED = ("timeouts", "chunks", "messages", "events")
"""Units that a reason's text names itself."""
_NAME = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class _Choice:
    """One setting under one condition: its cells, the worst of them, the values, and how many had no value or did not
    run.
    """

    worst: CellFlow
    value: float | None
    cells: int
    without: int
    absent: int
    lost: str
    """The reason why one of those did not complete, in brackets; "" where that is not known."""
    cost: float | None
    cost_at: CellFlow | None


def file_name(answer: Answer) -> str:
    """The table's name."""
    return f"answer-{answer.name}"


def answer_rows(results: Results, answer: Answer) -> Rows:
    """answer-<name>.csv: given factors, budget, settings, verdict, the worst value, and why.

    cells: number of cells of which the value is the worst; without_value: those in which the event had not ended;
    absent: those that did not run to their end. With absent cells the others can exceed a budget, but cannot prove that
    it is kept.
    """
    groups = dict(combinations(results, answer))
    units = {metric.name: metric.unit for metric in results.plan.metrics}
    rows: list[tuple[Field, ...]] = []
    for given in dict.fromkeys(key[: len(answer.given)] for key in groups):
        for budget in answer.budgets:
            for key, group in groups.items():
                if key[: len(answer.given)] != given:
                    continue
                choice = _choice(results, answer, group)
                verdict, why = _judge(results, answer, choice, _number(budget), units)
                rows.append(
                    (
                        *given,
                        budget,
                        *key[len(answer.given) :],
                        verdict,
                        choice.value,
                        units.get(answer.metric, ""),
                        choice.cells,
                        choice.without,
                        choice.absent,
                        why,
                    )
                )
    header = (*answer.given, "budget", *answer.settings, *COLUMNS)
    return Rows(file_name(answer), header, tuple(rows))


COLUMNS = ("verdict", "worst", "unit", "cells", "without_value", "absent", "because")


def _number(budget: str) -> float:
    quantity = parse_quantity(budget)
    return float(quantity.value) / 1e9 if quantity.kind == "time" else float(quantity.value)


def _choice(results: Results, answer: Answer, group: Sequence[CellFlow]) -> _Choice:
    measured = [
        (cell_flow, _value(results, cell_flow, answer.metric))
        for cell_flow in group
        if results.completed(cell_flow.cell.id)
    ]
    without = [cell_flow for cell_flow, value in measured if value is None]
    known = [(value, cell_flow) for cell_flow, value in measured if value is not None]
    value, worst = max(known, key=lambda pair: pair[0]) if known and not without else (None, None)
    cost, cost_at = _cost(results, answer, group[0])
    return _Choice(
        worst=worst or (without or group)[0],
        value=value,
        cells=len(group),
        without=len(without),
        absent=len(group) - len(measured),
        lost=next((why for cell_flow in group if (why := _lost(results, cell_flow.cell))), ""),
        cost=cost,
        cost_at=cost_at,
    )


def _value(results: Results, at: CellFlow, metric: str) -> float | None:
    return results.value(at.cell.id, at.flow, metric)


def _lost(results: Results, cell: Cell) -> str:
    """The reason why a cell has no value; "" if it completed, or if no reason is known."""
    outcome = results.outcomes.get(cell.id)
    if outcome is None or results.completed(cell.id) or not outcome.reason:
        return ""
    return f" ({outcome.outcome}: {outcome.reason})"


def _cost(results: Results, answer: Answer, like: CellFlow) -> tuple[float | None, CellFlow | None]:
    """The largest cost among the cells with the same settings, and the same of what is given as far as they vary it."""
    if answer.cost is None:
        return None, None
    largest: tuple[float | None, CellFlow | None] = (None, None)
    for cell in results.cells(answer.cost.where):
        at = CellFlow(cell, like.flow, {**cell.factors, FLOW: like.flow})
        if any(at.levels[name] != like.levels[name] for name in answer.axes):
            continue
        value = _value(results, at, answer.cost.metric)
        if value is not None and (largest[0] is None or value > largest[0]):
            largest = (value, at)
    return largest


def _judge(
    results: Results, answer: Answer, choice: _Choice, budget: float, units: Mapping[str, str]
) -> tuple[str, str]:
    if choice.absent == choice.cells:
        return NOT_MEASURED, ""
    within = choice.value is not None and choice.value <= budget
    if within and choice.absent:
        return (
            NOT_MEASURED,
            f"{counted_of(choice.absent, choice.cells, 'cell')} did not run to their end{choice.lost}",
        )
    if within:
        if answer.cost is not None and choice.cost and choice.cost_at is not None:
            why = _filled(results, choice.cost_at, answer.cost.text, choice.cost, answer.cost.metric, units)
            return AT_A_COST, why
        return SUFFICES, ""
    reasons = (
        _filled(results, choice.worst, reason.text, value, reason.metric, units)
        for reason in answer.because
        if (value := _value(results, choice.worst, reason.metric)) is not None
        and value > (budget if reason.above is None else reason.above)
        and _may_explain(answer, choice, reason.metric, value)
    )
    why = next(reasons, "")
    looks = _value(results, choice.worst, answer.tempting) if answer.tempting else None
    return (TEMPTING if looks is not None and looks <= budget else FAILS), why


def _may_explain(answer: Answer, choice: _Choice, metric: str, value: float) -> bool:
    """True if a reason's number may be part of the answer's own: what took longer than it did came after it."""
    both_times = metric.endswith("_s") and answer.metric.endswith("_s")
    return choice.value is None or not both_times or value <= choice.value


def _filled(results: Results, at: CellFlow, text: str, value: float, metric: str, units: Mapping[str, str]) -> str:
    def word(match: re.Match[str]) -> str:
        name = metric if match[1] == "value" else match[1]
        number = value if match[1] == "value" else _value(results, at, name)
        return "nothing" if number is None else value_words(number, "s" if name.endswith("_s") else units.get(name, ""))

    return _NAME.sub(word, text)


def value_words(value: float, unit: str) -> str:
    """A number with its unit for a sentence, three digits: 1.06 s, 258 ms, 12."""
    return in_short(value, "" if unit in COUNTED else unit)
