"""Reads tables/*.csv of a run: rows of text as they are written, or with numbers as numbers. Nothing else reads them
but frames.py, which takes from here which columns are numbers.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec

from ..core.errors import SpecError, StoreError
from ..core.metrics.catalogue import HEADLINE
from ..core.outputs import Metric, Source, looks_like_a_formula
from ..experiment.problems import nearest
from .run_dir import RunDir, read_json

TableRow = dict[str, str | float | None]
MOST_LINE = 1 << 20
INTEGERS = frozenset(("absent", "bytes", "cells", "repetition", "repetitions", "seed", "without_value"))
NUMBERS = INTEGERS | {"ci95_high", "ci95_low", "number", "t_s", "value", "virtual_s", "worst"}
"""Columns of numbers, in every table that has them (docs/formats.md)."""
LAST_OF_EVERY_CELL = "virtual_s"
"""The column of cells.csv behind which the factors stand."""


class _Outputs(msgspec.Struct):
    """The part of outputs.json that says which more columns hold numbers, and which more names are metrics."""

    sources: tuple[Source, ...]
    metrics: tuple[Metric, ...] = ()


class Tables:
    """The tables of a run directory; each is read when it is asked for."""

    def __init__(self, run: RunDir) -> None:
        self._run = run

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tables."""
        return tuple(sorted(path.stem for path in self._run.tables.glob("*.csv")))

    def path(self, name: str) -> Path:
        """tables/<name>.csv. Raises StoreError if there is no such table."""
        path = self._run.tables / f"{name}.csv"
        if not path.is_file():
            raise StoreError(f"{path}: there is no such table; there is: {', '.join(self.names) or 'none'}")
        return path

    @cached_property
    def outputs(self) -> _Outputs:
        """Of outputs.json. Raises StoreError."""
        return read_json(self._run.outputs, _Outputs)

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The names of the factors: the last columns of cells.csv."""
        columns = list(next(each_row(self.path("cells")), {}))
        return tuple(columns[columns.index(LAST_OF_EVERY_CELL) + 1 :] if columns else ())

    @cached_property
    def numbers(self) -> frozenset[str]:
        """The columns of numbers: a source's too, a factor's never."""
        return (NUMBERS | {source.name for source in self.outputs.sources}) - set(self.factors)

    def typed(self, name: str) -> list[TableRow]:
        """The rows of a table, numbers as numbers (None if empty) and text without the quote that protects spreadsheets
        from formulas. Raises StoreError.
        """
        return [
            {column: _value(field) if column in self.numbers else unguarded(field) for column, field in row.items()}
            for row in each_row(self.path(name))
        ]


def no_metric(run: Path, name: str, there: Collection[str]) -> SpecError:
    """The error where no cell of a run has a metric: what may be meant, or what there is, the most wanted first."""
    known = [*(metric for metric in HEADLINE if metric in there), *sorted(there)]
    return SpecError(f"{run}: no cell has the metric {name!r}{nearest(name, known)}")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Rows of a CSV file as they are written; empty if the file does not exist. Raises StoreError."""
    return list(each_row(path))


def each_row(path: Path) -> Iterator[dict[str, str]]:
    """As `read_rows`, one row at a time: measurements.csv of many cells has millions."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            yield from csv.DictReader(_lines(file))
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StoreError(f"{path}: cannot be read: {error}") from error


def _lines(file: IO[str]) -> Iterator[str]:
    """Its lines. Raises csv.Error: one is longer than any of a table, and might fill all memory."""
    while line := file.readline(MOST_LINE):
        if len(line) == MOST_LINE:
            raise csv.Error(f"a line of more than {MOST_LINE} characters")
        yield line


def number(text: str | None) -> float | None:
    """A field as a number; None if it is empty or not a number."""
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _value(field: str) -> str | float | None:
    """A number (int if it is whole); None if empty; a word in its place stays text."""
    try:
        return int(field)
    except ValueError:
        value = number(field)
        return unguarded(field) if field and value is None else value


def unguarded(field: str) -> str:
    """A text without the quote that keeps a spreadsheet from evaluating it."""
    return field[1:] if field[:1] == "'" and looks_like_a_formula(field[1:]) else field
