"""Reads tables/*.csv as rows."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from pathlib import Path

from ..core.errors import StoreError
from ..core.outputs import looks_like_a_formula

TableRow = dict[str, str | float | None]
NUMBERS = frozenset(
    ("absent", "bytes", "cells", "ci95_high", "ci95_low", "number", "repetition", "repetitions", "seed", "t_s", "value",
     "virtual_s", "without_value", "worst")
)  # fmt: skip
"""Columns of numbers, in every table that has them (docs/formats.md)."""


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file as they are written; empty if the file does not exist. Raises StoreError."""
    return list(each_row(path))


def each_row(path: Path) -> Iterator[dict[str, str]]:
    """As `read_rows`, one row at a time: measurements.csv of many cells has millions."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def typed_rows(path: Path, *, numbers: Collection[str], texts: Collection[str]) -> list[TableRow]:
    """Rows with numbers as numbers (None if empty) and text without the quote that protects spreadsheets from formulas.

    numbers, texts: further columns that hold numbers or text, whatever their names. Raises StoreError.
    """
    if not path.is_file():
        names = ", ".join(sorted(other.stem for other in path.parent.glob("*.csv"))) or "none"
        raise StoreError(f"{path}: there is no such table; there is: {names}")
    columns = (NUMBERS | set(numbers)) - set(texts)
    return [
        {name: _number(field) if name in columns else unguarded(field) for name, field in row.items()}
        for row in read_rows(path)
    ]


def _number(field: str) -> str | float | None:
    """A number (int if it is whole); None if empty; a word in its place stays text."""
    if not field:
        return None
    try:
        return int(field)
    except ValueError:
        pass
    try:
        return float(field)
    except ValueError:
        return unguarded(field)


def unguarded(field: str) -> str:
    """A text without the quote that keeps a spreadsheet from evaluating it."""
    return field[1:] if field[:1] == "'" and looks_like_a_formula(field[1:]) else field
