"""Answers for the report, from tables/answer-*.csv: a grid of verdicts per condition, and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.numbers import with_unit
from ..core.outputs import Answer
from ..results.answers import file_name
from ..store.tables import number, read_rows
from .answer_words import sentences
from .run_data import Row, RunData

SIGNS = {
    "does it": ("\u2713", "holds"),
    "does it, at a cost": ("\u2713*", "unsure"),
    "looks tempting, does not": ("\u2717!", "fails"),
    "does not": ("\u2717", "fails"),
    "not measured": ("\u2013", "untested"),
}
"""Verdict of tables/answers.py -> (sign, CSS class)."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting under one condition. verdicts: (verdict, sign, CSS class) per budget. why: each reason once."""

    setting: str
    worst: str
    exact: str
    verdicts: tuple[tuple[str, str, str], ...]
    why: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Condition:
    """One combination of the given factors ("RTT: 10 ms", empty if there are none), the best choice first."""

    title: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """An answer: its grid (conditions by budgets), its sentences (condition and budget, the settings that suffice and
    those that fail), and the file name of its table in tables/.
    """

    title: str
    metric: str
    settings: str
    budgets: tuple[str, ...]
    conditions: tuple[Condition, ...]
    sentences: tuple[tuple[str, str], ...]
    table: str

    @property
    def signs(self) -> tuple[tuple[str, str, str], ...]:
        """The signs that this answer uses: (sign, CSS class, meaning)."""
        used = {v[0] for condition in self.conditions for choice in condition.choices for v in choice.verdicts}
        return tuple((*sign, name) for name, sign in SIGNS.items() if name in used)


def answer_words(data: RunData) -> tuple[AnswerWords, ...]:
    """Every [answer.NAME] of the spec that this run has rows for."""
    answers = []
    for answer in data.plan.answers:
        table = f"{file_name(answer)}.csv"
        rows = read_rows(data.run.tables / table)
        words = sentences(data.plan, answer, rows)
        if words:
            metric = data.metrics.get(answer.metric)
            answers.append(
                AnswerWords(
                    title=answer.title,
                    metric=metric.title if metric else answer.metric,
                    settings=", ".join(data.factor_title(factor) for factor in answer.settings),
                    budgets=answer.budgets,
                    conditions=_conditions(data, answer, rows),
                    sentences=tuple((head, text) for head, _, text in (sentence.partition(": ") for sentence in words)),
                    table=table,
                )
            )
    return tuple(answers)


def _conditions(data: RunData, answer: Answer, rows: Sequence[Row]) -> tuple[Condition, ...]:
    grouped: dict[tuple[str, ...], dict[tuple[str, ...], list[Row]]] = {}
    for row in rows:
        given = tuple(row[factor] for factor in answer.given)
        setting = tuple(row[factor] for factor in answer.settings)
        grouped.setdefault(given, {}).setdefault(setting, []).append(row)
    return tuple(
        Condition(
            ", ".join(
                f"{data.factor_title(factor)}: {data.level_title(factor, level)}"
                for factor, level in zip(answer.given, given, strict=True)
                if level != "-"
            ),
            tuple(_choice(data, answer, setting, own) for setting, own in sorted(choices.items(), key=_worst)),
        )
        for given, choices in grouped.items()
    )


def _worst(choice: tuple[tuple[str, ...], list[Row]]) -> float:
    """Sort key of choices: the smallest worst value first, those without a value last."""
    value = number(choice[1][0].get("worst"))
    return float("inf") if value is None else value


def _choice(data: RunData, answer: Answer, setting: tuple[str, ...], rows: Sequence[Row]) -> Choice:
    by_budget = {row["budget"]: row for row in rows}
    first = rows[0]
    value = number(first.get("worst"))
    verdicts = [by_budget[budget]["verdict"] if budget in by_budget else "not measured" for budget in answer.budgets]
    levels = zip(answer.settings, setting, strict=True)
    absent = "not all ran" if first.get("absent") not in ("", "0", None) else "not over by the end"
    return Choice(
        setting=", ".join(data.level_title(factor, level) for factor, level in levels if level != "-"),
        worst=with_unit(value, first.get("unit") or "") if value is not None else absent,
        exact=first.get("worst") or "",
        verdicts=tuple((verdict, *SIGNS.get(verdict, ("?", "unsure"))) for verdict in verdicts),
        why=tuple(dict.fromkeys(row["because"] for row in rows if row.get("because"))),
    )
