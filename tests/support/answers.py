"""A small spec that asks a question (`[answer]`), with given measurements."""

from __future__ import annotations

from typing import Any

from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.present.answer_words import sentences
from netwarp.results import Results
from netwarp.results.answers import answer_rows

from support.results_kit import text_rows
from support.specs import BASE, spec_of

STUDY = (
    BASE
    + """
[factor]
knob = { levels = ["low", "mid", "high"] }
rtt = { title = "RTT", levels = ["10 ms", "50 ms"] }
load = { levels = ["thin", "none"] }
[experiment]
main = { factors = ["knob", "rtt", "load"], repetitions = 2 }
[answer.budget]
title = "Which knob?"
metric = "outage_s"
settings = ["knob"]
given = ["rtt"]
budgets = ["500 ms", "2 s"]
where = { load = "thin" }
tempting = "first_retransmission_other_path_s"
because = [
    { metric = "theory_timeouts", above = 1, text = "it takes {theory_timeouts} timeouts, {value} of them" },
    { metric = "outage_s", text = "the outage of {outage_s} is above the budget" },
]
cost = { metric = "spurious_retransmissions", where = { load = "none" }, text = "{value} were sent for nothing" }
"""
)

OUTAGE = {"low": 0.3, "mid": 1.0, "high": 5.0}


def study(text: str = STUDY) -> Plan:
    return make_plan(spec_of(text))


def measure(plan: Plan, **metrics: Any) -> list[Measurement]:
    """metrics: name -> function of a cell's factors and repetition."""
    return [
        Measurement(cell.id, "f", name, value(cell.factors, cell.repetition), "s")
        for cell in plan.cells
        for name, value in metrics.items()
    ]


def answered(plan: Plan, measurements: list[Measurement], failed: str = "") -> tuple[list[dict[str, str]], list[str]]:
    outcomes = {
        cell.id: CellOutcome(Outcome.FAILED if cell.factors["knob"] == failed else Outcome.COMPLETED, "", 1.0, 1.0)
        for cell in plan.cells
    }
    (answer,) = plan.answers
    rows = text_rows(answer_rows(Results(plan, outcomes, measurements), answer))
    return rows, list(sentences(plan, answer, rows))


def usual(plan: Plan) -> list[Measurement]:
    return measure(
        plan,
        # the second repetition is the worse one
        outage_s=lambda levels, number: OUTAGE[levels["knob"]] + number / 10 if levels["load"] == "thin" else None,
        first_retransmission_other_path_s=lambda levels, number: 0.1,
        theory_timeouts=lambda levels, number: {"low": 1.0, "mid": 1.0, "high": 3.0}[levels["knob"]],
        spurious_retransmissions=lambda levels, number: (
            12.0 if levels["knob"] == "low" and levels["rtt"] == "50 ms" and levels["load"] == "none" else 0.0
        ),
    )
