"""Writes the tables of a run; each file is whole or as it was."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..core.outputs import looks_like_a_formula
from ..core.types import CellOutcome, Measurement
from ..plan.types import Plan
from ..store.run_dir import RunDir, write_atomic
from .answers import answer_rows
from .claims import Judged, judge
from .published import published
from .rows import Rows, cell_rows, claim_rows, detail_rows, draw_rows, measurement_rows, number_rows
from .run_results import Results
from .time_tables import event_rows, series_rows


def write_tables(
    plan: Plan, outcomes: Mapping[str, CellOutcome], measurements: Iterable[Measurement], folder: Path
) -> tuple[Judged, ...]:
    """Write every table of a plan into `folder` (made if need be) and return the claims' verdicts.

    Raises StoreError where a file cannot be written; the files of before are then still whole.
    """
    results = Results(plan, outcomes, measurements)
    judged = judge(results)
    tables = [cell_rows(results), measurement_rows(results), claim_rows(judged), detail_rows(judged, published(plan))]
    tables += [number_rows(results, table) for table in plan.tables]
    tables += [
        draw_rows(results, output) if output.distribution else number_rows(results, output) for output in plan.figures
    ]
    tables += [answer_rows(results, output) for output in plan.answers]
    for rows in tables:
        write_atomic(folder / f"{rows.name}.csv", csv_text(rows).encode())
    return judged


def write_timelines(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir) -> None:
    """Write the figures over time and the tables of events. Raises StoreError."""
    tables = [series_rows(plan, outcomes, run, figure) for figure in plan.time_series]
    tables += [event_rows(plan, outcomes, run, table) for table in plan.event_tables]
    for rows in tables:
        write_atomic(run.tables / f"{rows.name}.csv", csv_text(rows).encode())


def csv_text(table: Rows) -> str:
    """A table as CSV."""
    return csv_bytes(table.header, table.rows).decode()


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """CSV: LF, `.` as decimal point, floats by repr, nothing for None, no text that a spreadsheet would compute."""
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([_text(field) for field in row] for row in (header, *rows))
    return out.getvalue().encode()


def _text(field: object) -> str:
    if isinstance(field, str) and looks_like_a_formula(field):
        return f"'{field}"  # a spreadsheet shows it instead of computing it
    return "" if field is None else repr(float(field)) if isinstance(field, float) else str(field)
