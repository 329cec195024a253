"""What `netwarp run` prints at its end: the paper's tables with ours, the claims, where the report is."""

from __future__ import annotations

import csv
import os
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from ..model import Outcome
from ..report.metrics import Metric, metric_names, unit_beside
from ..spec.metrics import METRICS
from ..store import RunDir
from ..study import Answer, Plan, in_level_order
from ..study import Table as StudyTable
from ..tables.answers import file_name
from ..tables.words import sentences
from .stages import Results

SHOWN_FAILURES = 10
SHOWN_SENTENCES = 4
SHOWN_CLAIMS = 12
PLAIN_WIDTH = 120


def read_csv(path: Path) -> list[dict[str, str]]:
    """Rows of a table; none if the run has no such table."""
    if not path.exists():
        return []
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def summary_console() -> Console:
    """Standard output, plain where it is no terminal, and then as wide as COLUMNS says, or of a fixed width."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = PLAIN_WIDTH
    return console


def print_summary(plan: Plan, directory: RunDir, results: Results, page: Path | None, *, wall_s: float | None) -> None:
    """The last line is the run directory (contract)."""
    console = summary_console()
    virtual_s = sum(outcome.virtual_s or 0.0 for outcome in results.outcomes.values())
    console.print(f"\n{plan.title}", style="bold")
    metrics = metric_names(plan, METRICS)
    for table in plan.tables:
        rows = read_csv(directory.tables / f"{table.name}.csv")
        if rows:
            title, shown = _pivot(plan, table, metrics[table.metric], rows, [source.name for source in plan.sources])
            console.print(title, style="bold")
            console.print(shown)
    for answer in plan.answers:
        _print_answer(console, plan, answer, read_csv(directory.tables / f"{file_name(answer)}.csv"))
    claims = read_csv(directory.tables / "claims.csv")
    if claims:
        own = [row for row in claims if " " not in row["claim"]]
        console.print(f"claims: {_verdicts(own, names=True)}")
        if len(own) < len(claims):
            console.print(
                f"the same under other conditions: {_verdicts([row for row in claims if ' ' in row['claim']])}"
            )
        console.print("each with its number and reason: tables/claims.csv")
    outcomes = Counter(str(outcome.outcome) for outcome in results.outcomes.values())
    speed = "" if wall_s is None else f" ({virtual_s:.0f} virtual s in {wall_s:.1f} s)"
    console.print(f"cells: {', '.join(f'{count} {name}' for name, count in outcomes.items())}{speed}")
    failed = [(cell_id, o) for cell_id, o in results.outcomes.items() if o.outcome is not Outcome.COMPLETED]
    for cell_id, outcome in failed[:SHOWN_FAILURES]:
        console.print(f"  {outcome.outcome} {cell_id}: {outcome.reason}")
    if len(failed) > SHOWN_FAILURES:
        console.print(f"  ... and {len(failed) - SHOWN_FAILURES} more: tables/cells.csv")
    if page is not None:
        print(f"report: {page.resolve()}")
    print(directory.root)


def _print_answer(console: Console, plan: Plan, answer: Answer, rows: list[dict[str, str]]) -> None:
    """The answer in words, as many sentences as fit; the table holds all of it."""
    words = sentences(plan, answer, rows)
    if not words:
        return
    console.print(f"\n{answer.title}", style="bold")
    for sentence in words[:SHOWN_SENTENCES]:
        console.print(f"- {sentence}")
    if len(words) > SHOWN_SENTENCES:
        more = len(words) - SHOWN_SENTENCES
        console.print(f"  ... and {more} more in the report; every choice: tables/{file_name(answer)}.csv")


def _verdicts(claims: list[dict[str, str]], names: bool = False) -> str:
    """2 holds (C1, C2), 1 not tested."""
    found: dict[str, list[str]] = {}
    for row in claims:
        found.setdefault(row["verdict"], []).append(row["claim"])
    return ", ".join(
        f"{len(ids)} {verdict}" + (_named(ids) if names and verdict != "not tested" else "")
        for verdict, ids in sorted(found.items(), key=lambda one: -len(one[1]))
    )


def _named(ids: list[str]) -> str:
    return f" ({', '.join(ids[:SHOWN_CLAIMS])}{', ...' if len(ids) > SHOWN_CLAIMS else ''})"


def shown_number(value: float) -> str:
    """Four digits, and no exponent where a person would write none."""
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e12 else f"{value:.4g}"


def _pivot(
    plan: Plan, table: StudyTable, metric: Metric, rows: list[dict[str, str]], sources: list[str]
) -> tuple[str, Table]:
    """Its title (a line of its own: rich would wrap it at the table's width) and row factors down, column factors
    across; ours, and the first published number beside it in parentheses.
    """
    published = next((source for source in sources if any(row.get(source) for row in rows)), "")
    unit = "" if metric.unit in table.title.lower().split() else unit_beside(metric.title, metric.unit)
    title = f"{table.title}: measured" + (f" ({published})" if published else "") + (f", {unit}" if unit else "")
    shown = Table()
    for factor in table.rows:
        shown.add_column(Text(factor), no_wrap=True)
    lines: dict[tuple[str, ...], dict[tuple[str, ...], str]] = {}
    for row in rows:
        value = shown_number(float(row["value"])) if row["value"] else "-"
        beside = f" ({shown_number(float(row[published]))})" if published and row[published] else ""
        place = tuple(row[factor] for factor in table.columns)
        lines.setdefault(tuple(row[factor] for factor in table.rows), {})[place] = value + beside
    columns = in_level_order(plan, table.columns, (place for line in lines.values() for place in line))
    for column in columns:
        head = " ".join(level for level in column if level != "-")
        shown.add_column(Text(head or metric.title), justify="right")
    for levels, values in lines.items():
        shown.add_row(*map(Text, levels), *(Text(values.get(column, "")) for column in columns))
    return title, shown
