"""tables/*.csv as rows."""

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
    """Rows of a CSV file as they are written; none if there is no such file. Raises StoreError."""
    return list(each_row(path))


def each_row(path: Path) -> Iterator[dict[str, str]]:
    """`read_rows`, one row after the other: measurements.csv of many cells has millions."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            yield from csv.DictReader(file)
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def typed_rows(path: Path, *, numbers: Collection[str], texts: Collection[str]) -> list[TableRow]:
    """Rows with numbers as numbers, an empty one None, and text without the quote that guards it in spreadsheets.

    numbers, texts: more columns that hold the one or the other, whatever their name. Raises StoreError.
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
    """A number, integers as such; None if empty; a word that stands in its place as it is."""
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
    """A text without the quote that keeps a spreadsheet from computing it."""
    return field[1:] if field[:1] == "'" and looks_like_a_formula(field[1:]) else field
