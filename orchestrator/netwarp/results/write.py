"""Writes the tables of a run; each file is either new and complete, or unchanged."""

from __future__ import annotations

import csv
import io
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from ..core.outputs import looks_like_a_formula
from ..core.outside_text import one_line
from ..core.types import CellOutcome
from ..plan.types import Plan
from ..store.run_dir import RunDir, write_atomic
from .answers import answer_rows
from .rows import (
    Rows,
    cell_rows,
    claim_rows,
    detail_rows,
    draw_rows,
    event_rows,
    measurement_rows,
    number_rows,
    series_rows,
    window_rows,
)
from .run_results import Results
from .schedule_costs import has_schedules, schedule_rows
from .verdicts import Decided, decide

ROWS_OF_A_BLOCK = 10_000


def write_tables(results: Results, folder: Path) -> tuple[Decided, ...]:
    """Write every table of a run into `folder` (created if needed), and return the verdicts of the claims.

    Raises StoreError if a file cannot be written; the files from before are then unchanged.
    """
    plan = results.plan
    decided = decide(results)
    tables = [cell_rows(results), measurement_rows(results), claim_rows(plan, decided), detail_rows(decided)]
    tables += [number_rows(results, table) for table in plan.tables]
    tables += [
        draw_rows(results, output) if output.distribution else number_rows(results, output) for output in plan.figures
    ]
    tables += [answer_rows(results, output) for output in plan.answers]
    tables += [schedule_rows(results)] if has_schedules(plan) else []
    for rows in tables:
        write_atomic(folder / f"{rows.name}.csv", csv_blocks(rows.header, rows.rows))
    return decided


def write_measurements(results: Results, folder: Path) -> None:
    """Write measurements.csv alone. Raises StoreError."""
    rows = measurement_rows(results)
    write_atomic(folder / f"{rows.name}.csv", csv_blocks(rows.header, rows.rows))


def write_timelines(plan: Plan, outcomes: Mapping[str, CellOutcome], run: RunDir, folder: Path) -> None:
    """Write the figures over time and the tables of events into `folder`. Raises StoreError."""
    tables = [series_rows(plan, outcomes, run, figure) for figure in plan.time_series]
    tables += [event_rows(plan, outcomes, run, table) for table in plan.event_tables]
    tables += [window_rows(plan, outcomes, run)] if any(cell.measure for cell in plan.cells) else []
    for rows in tables:
        write_atomic(folder / f"{rows.name}.csv", csv_blocks(rows.header, rows.rows))


def csv_text(table: Rows) -> str:
    """A table as CSV."""
    return csv_bytes(table.header, table.rows).decode()


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[object]]) -> bytes:
    """CSV with LF, `.` as decimal point, floats as repr(), None as an empty field, and no text that a spreadsheet would
    evaluate.
    """
    return b"".join(csv_blocks(header, rows))


def csv_blocks(header: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[bytes]:
    """`csv_bytes` in blocks of rows, since a table may be larger than the memory."""
    every = itertools.chain((header,), rows)
    while block := list(itertools.islice(every, ROWS_OF_A_BLOCK)):
        out = io.StringIO(newline="")
        csv.writer(out, lineterminator="\n").writerows([_text(field) for field in row] for row in block)
        yield out.getvalue().encode()


def _text(field: object) -> str:
    if isinstance(field, str):
        field = one_line(field)
        # a spreadsheet shows it instead of computing it
        return f"'{field}" if looks_like_a_formula(field) else field
    return "" if field is None else repr(float(field)) if isinstance(field, float) else str(field)
