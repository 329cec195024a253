"""Reads published.csv: published numbers, one per row. Grammar: docs/spec.md, Published numbers."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Collection, Iterator, Sequence

from ..core.outputs import EXPERIMENT, PublishedNumber
from .factors import DOES_NOT_APPLY
from .problems import nearest
from .read_outputs import OutputReader
from .toml_positions import LARGEST_FILE_BYTES

REQUIRED = ("source", "metric", "value")
FIXED = (*REQUIRED, "printed", "digit")
"""Columns that are no selector. All others are EXPERIMENT, `flow` and factors: empty where any will do."""
SEVERAL = " | "
"""Between the levels that a number is for, where it is for several."""


def read_published(
    text: bytes, file: str, sources: Collection[str], known: OutputReader
) -> tuple[PublishedNumber, ...]:
    """Every row of the file; collects all mistakes, each with its line and column."""
    reader = _Reader(file, sources, known)
    return tuple(number for line, row in reader.rows(text) if (number := reader.number(line, row)) is not None)


class _Reader:
    def __init__(self, file: str, sources: Collection[str], known: OutputReader) -> None:
        self._file, self._sources, self._names, self._problems = file, sources, known, known.problems

    def rows(self, text: bytes) -> Iterator[tuple[int, dict[str, str]]]:
        """Line and fields of every row; none where the file or its header is not as it must be."""
        if len(text) > LARGEST_FILE_BYTES:
            self._add(1, "", f"larger than {LARGEST_FILE_BYTES} bytes")
            return
        try:
            table = csv.reader(io.StringIO(text.decode("utf-8-sig"), newline=""), strict=True)
        except UnicodeDecodeError as error:
            self._add(1 + text[: error.start].count(b"\n"), "", "not UTF-8 text; save the file as UTF-8")
            return
        try:
            header = next(table, [])
            if not self._check_header(header):
                return
            for row in table:
                if len(row) == len(header):
                    yield table.line_num, dict(zip(header, row, strict=True))
                elif row:
                    self._add(table.line_num, "", f"has {len(row)} fields, the header {len(header)}")
        except csv.Error as error:
            self._add(table.line_num, "", f"not CSV: {error}")

    def number(self, line: int, row: dict[str, str]) -> PublishedNumber | None:
        """The number of a row; None after saying what is wrong."""
        before = len(self._problems)
        self._check_name(line, "source", row["source"], self._sources)
        self._check_name(line, "metric", row["metric"], self._names.metrics)
        try:
            value = float(row["value"])
        except ValueError:
            value = math.nan
        if not math.isfinite(value):
            self._add(line, "value", f'"{row["value"][:40]}" is no number in the metric\'s unit; for example 0.123')
        digit = self._digit(line, row.get("digit", ""))
        at = {column: self._levels(line, column, text) for column, text in row.items() if column not in FIXED and text}
        if len(self._problems) > before:
            return None
        return PublishedNumber(row["source"], row["metric"], at, value, row.get("printed", ""), digit)

    def _digit(self, line: int, text: str) -> float:
        """The unit of the last printed digit, 0 if the field is empty."""
        try:
            digit = float(text or 0)
        except ValueError:
            digit = math.nan
        if not (math.isfinite(digit) and digit >= 0):
            self._add(line, "digit", f'"{text[:40]}" is no unit of a last digit; for example 0.001')
            return 0.0
        return digit

    def _check_header(self, header: Sequence[str]) -> bool:
        before = len(self._problems)
        known = [*FIXED, EXPERIMENT, *self._names.factors]
        for column in REQUIRED:
            if column not in header:
                self._add(1, column, "the column is missing; the header is, for example, source,metric,outage,value")
        for column in header:
            if column not in known:
                self._add(1, column[:40], f"is neither a factor nor one of {', '.join(FIXED)}{nearest(column, known)}")
            elif header.count(column) > 1:
                self._add(1, column, "stands in the header twice")
        return len(self._problems) == before

    def _levels(self, line: int, column: str, text: str) -> tuple[str, ...]:
        if column == EXPERIMENT:
            known: list[str] = list(self._names.experiments)
        else:
            known = [DOES_NOT_APPLY, *(level.name for level in self._names.factors[column].levels)]
        levels = (text,) if text in known else tuple(text.split(SEVERAL))
        for level in levels:
            self._check_name(line, column, level, known)
        return levels

    def _check_name(self, line: int, column: str, text: str, known: Collection[str]) -> None:
        if text not in known:
            self._add(line, column, f'there is no "{text[:64]}"{nearest(text, known)}')

    def _add(self, line: int, column: str, text: str) -> None:
        self._problems.add_at(self._file, line, column, text)
