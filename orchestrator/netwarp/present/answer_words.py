"""Answers of the spec, from tables/answer-*.csv: sentences for the terminal and the report, and the report's grid of
verdicts for each condition.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..core.numbers import with_unit
from ..core.outputs import Answer
from ..core.units import counted_of
from ..plan.types import Plan
from ..results.answers import AT_A_COST, FAILS, NOT_MEASURED, SUFFICES, TEMPTING, VERDICTS, file_name, value_words
from ..store.tables import number, read_rows
from .run_data import Row, RunData

_NUMBERS = re.compile(r"\d[\d.,]*( (ms|s)\b)?")
LEADS = {
    AT_A_COST: "Suffices at a cost",
    TEMPTING: "Looks sufficient, but fails",
    FAILS: "Fails",
    NOT_MEASURED: "Not measured",
}


def sentences(plan: Plan, answer: Answer, rows: Sequence[Row]) -> tuple[str, ...]:
    """One sentence per condition and budget: the settings that suffice, those that do at a cost, those that fail, and
    why.
    """
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((*(row[factor] for factor in answer.given), row["budget"]), []).append(row)
    said = []
    for first, *others in groups.values():
        conditions = [
            f"{plan.factor_title(factor)} {plan.level_title(factor, first[factor])}"
            for factor in answer.given
            if first[factor] != "-"
        ]
        head = ", ".join([*conditions, f"budget {first['budget']}"])
        said.append(f"{head}: {_choices([first, *others], answer.settings, plan)}")
    return tuple(said)


def _settings(rows: Sequence[Row], factors: Sequence[str], plan: Plan) -> list[str]:
    """A phrase for each setting; those that differ in the first factor only share one ("path_max 0/1, RTO 1 s")."""
    first, *rest = factors
    if not rest:
        return [plan.level_title(first, row[first]) for row in rows]
    by_others: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        by_others.setdefault(tuple(row[factor] for factor in rest), []).append(row)
    same: dict[tuple[str, ...], list[Row]] = {}
    for group in by_others.values():
        same.setdefault(tuple(row[first] for row in group), []).append(group[0])
    phrases = []
    for firsts, group in same.items():
        levels = [(first, firsts), *((factor, [row[factor] for row in group]) for factor in rest)]
        phrases.append(
            ", ".join(
                f"{plan.factor_title(factor)} "
                + "/".join(dict.fromkeys(plan.level_title(factor, level) for level in mine))
                for factor, mine in levels
            )
        )
    return phrases


def _choices(rows: Sequence[Row], settings: Sequence[str], plan: Plan) -> str:
    by_verdict = {verdict: [row for row in rows if row["verdict"] == verdict] for verdict in VERDICTS}
    good = by_verdict[SUFFICES]
    if good:
        parts = [f"{_listed(good, settings, plan)} {'suffices' if len(good) == 1 else 'suffice'}."]
    else:
        parts = [f"Nothing measured suffices{' without a cost' if by_verdict[AT_A_COST] else ''}."]
    for verdict, lead in LEADS.items():
        alike: dict[str, list[Row]] = {}
        for row in by_verdict[verdict]:
            alike.setdefault(_NUMBERS.sub("#", row["because"]), []).append(row)
        clauses = [_listed(group, settings, plan) + _why(group, settings, plan) for group in alike.values()]
        if clauses:
            parts.append(f"{lead}: {'; '.join(clauses)}.")
    return " ".join(parts)


def _listed(rows: Sequence[Row], settings: Sequence[str], plan: Plan) -> str:
    """Choices with their worst values; choices of one value share it."""
    alike: dict[str, list[Row]] = {}
    for row in rows:
        alike.setdefault(_worst(row), []).append(row)
    return ", ".join(f"{' and '.join(_settings(group, settings, plan))} ({worst})" for worst, group in alike.items())


def _why(rows: Sequence[Row], settings: Sequence[str], plan: Plan) -> str:
    """The reason of the choices; if its numbers differ, those of the choice with the smallest worst value."""
    nearest = min(rows, key=lambda row: float(row["worst"]) if row["worst"] else float("inf"))
    if not nearest["because"]:
        return ""
    if len({row["because"] for row in rows}) == 1:
        return f", because {nearest['because']}"
    return f", because (here of {_settings([nearest], settings, plan)[0]}) {nearest['because']}"


def _worst(row: Row) -> str:
    if not row["worst"]:
        if row["absent"] == row["cells"]:
            return "did not run"
        return f"not over at the end of {counted_of(int(row['without_value']), int(row['cells']), 'cell')}"
    return f"at most {value_words(float(row['worst']), row['unit'])}{' where it ran' if row['absent'] != '0' else ''}"


SIGNS = {
    SUFFICES: ("\u2713", "holds"),
    AT_A_COST: ("\u2713*", "unsure"),
    TEMPTING: ("\u2717!", "fails"),
    FAILS: ("\u2717", "fails"),
    NOT_MEASURED: ("\u2013", "untested"),
}
"""Verdict of results/answers.py -> (sign, CSS class)."""


def answer_words(data: RunData) -> list[dict[str, Any]]:
    """Every [answer.NAME] of the spec that this run has rows for, as answers.html.j2 takes it. sentences: condition and
    budget, and the settings that suffice and those that fail. signs: (sign, CSS class, meaning) of those used.
    """
    answers = []
    for answer in data.plan.answers:
        table = f"{file_name(answer)}.csv"
        rows = read_rows(data.run.tables / table)
        words = sentences(data.plan, answer, rows)
        if words:
            metric = data.metrics.get(answer.metric)
            conditions = _conditions(data, answer, rows)
            used = {verdict for _, choices in conditions for one in choices for verdict, *_ in one["verdicts"]}
            answers.append(
                {
                    "title": answer.title,
                    "metric": metric.title if metric else answer.metric,
                    "settings": ", ".join(data.plan.factor_title(factor) for factor in answer.settings),
                    "budgets": answer.budgets,
                    "conditions": conditions,
                    "sentences": [(head, text) for head, _, text in (sentence.partition(": ") for sentence in words)],
                    "signs": [(*sign, name) for name, sign in SIGNS.items() if name in used],
                    "table": table,
                }
            )
    return answers


def _conditions(data: RunData, answer: Answer, rows: Sequence[Row]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each combination of the given factors ("RTT: 10 ms", empty if there are none), and its choices, best first."""
    grouped: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}
    for row in rows:
        given = tuple(row[factor] for factor in answer.given)
        setting = tuple(row[factor] for factor in answer.settings)
        grouped.setdefault(given, {}).setdefault(setting, []).append(row)

    def title(given: Sequence[str]) -> str:
        levels = zip(answer.given, given, strict=True)
        return ", ".join(
            f"{data.plan.factor_title(f)}: {data.plan.level_title(f, level)}" for f, level in levels if level != "-"
        )

    def order(choice: tuple[tuple[str, ...], list[Row]]) -> float:
        """The smallest worst value first, those without a value last."""
        value = number(choice[1][0].get("worst"))
        return float("inf") if value is None else value

    return [
        (title(given), [_choice(data, answer, setting, own) for setting, own in sorted(choices.items(), key=order)])
        for given, choices in grouped.items()
    ]


def _choice(data: RunData, answer: Answer, setting: tuple[str, ...], rows: Sequence[Row]) -> dict[str, Any]:
    """One setting under one condition. verdicts: (verdict, sign, CSS class) per budget. why: each reason once."""
    by_budget = {row["budget"]: row for row in rows}
    first = rows[0]
    value = number(first.get("worst"))
    verdicts = [by_budget[budget]["verdict"] if budget in by_budget else NOT_MEASURED for budget in answer.budgets]
    levels = zip(answer.settings, setting, strict=True)
    absent = "not all ran" if first.get("absent") not in ("", "0", None) else "not over by the end"
    return {
        "setting": ", ".join(data.plan.level_title(factor, level) for factor, level in levels if level != "-"),
        "worst": with_unit(value, first.get("unit") or "") if value is not None else absent,
        "exact": first.get("worst") or "",
        "verdicts": [(verdict, *SIGNS.get(verdict, ("?", "unsure"))) for verdict in verdicts],
        "why": list(dict.fromkeys(row["because"] for row in rows if row.get("because"))),
    }
