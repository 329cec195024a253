"""An answer's table as sentences, for the terminal and the report. Made from the rows of answer-<name>.csv alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..study import Answer, Plan
from .answers import VERDICTS, said

Row = Mapping[str, str]


def sentences(plan: Plan, answer: Answer, rows: Sequence[Row]) -> tuple[str, ...]:
    """One sentence for each condition and budget: what does it, what does at a cost, what only looks as if, and why."""
    titles = {
        factor.name: (factor.title or factor.name, {level.name: level.title or level.name for level in factor.levels})
        for factor in plan.factors
    }

    def name(row: Row, factors: Sequence[str]) -> str:
        words = [titles[factor][1].get(row[factor], row[factor]) for factor in factors if row[factor] != "-"]
        return ", ".join(words)

    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((*(row[factor] for factor in answer.given), row["budget"]), []).append(row)
    found = []
    for group in groups.values():
        conditions = [
            f"{titles[factor][0]} {titles[factor][1].get(group[0][factor], group[0][factor])}"
            for factor in answer.given
            if group[0][factor] != "-"
        ]
        found.append(
            f"{', '.join([*conditions, 'budget ' + group[0]['budget']])}: {_choices(group, answer.settings, name)}"
        )
    return tuple(found)


def _choices(rows: Sequence[Row], settings: Sequence[str], name: Callable[[Row, Sequence[str]], str]) -> str:
    by_verdict = {verdict: [row for row in rows if row["verdict"] == verdict] for verdict in VERDICTS}
    parts = []
    good = by_verdict["does it"]
    if good:
        listed = ", ".join(f"{name(row, settings)} ({_worst(row)})" for row in good)
        parts.append(f"{listed} {'does' if len(good) == 1 else 'do'} it.")
    else:
        parts.append(
            "Nothing measured does it without a price." if by_verdict[VERDICTS[1]] else "Nothing measured does it."
        )
    for verdict, lead in (
        ("does it, at a cost", "At a price"),
        ("looks tempting, does not", "Tempting, but not"),
        ("does not", "Not"),
        ("not measured", "Not measured"),
    ):
        reasons: dict[str, list[str]] = {}
        for row in by_verdict[verdict]:
            reasons.setdefault(row["because"], []).append(f"{name(row, settings)} ({_worst(row)})")
        if reasons:
            listed = "; ".join(", ".join(names) + (f", because {why}" if why else "") for why, names in reasons.items())
            parts.append(f"{lead}: {listed}.")
    return " ".join(parts)


def _worst(row: Row) -> str:
    if not row["worst"]:
        if row["absent"] == row["cells"]:
            return "did not run"
        return f"not over at the end of {row['without_value']} of {row['cells']} cells"
    return f"at most {said(float(row['worst']), row['unit'])}"
