"""The tables of a run as polars data frames, and as Parquet files beside the CSV files. Needs polars."""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import polars as pl

from ..core.errors import StoreError
from ..core.metrics.catalogue import METRICS
from ..core.units import base_values
from .run_dir import RunDir, write_atomic
from .tables import INTEGERS, Tables, no_metric, unguarded

NAMES = frozenset(("experiment", "flow", "metric", "outcome", "series", "unit"))
"""Columns of few different texts, kept as Categorical: a fifth of the memory."""


@dataclass(frozen=True)
class RunFrames:
    """The tables of a run directory as data frames; each is read when it is first accessed.

    Numbers are Float64 or Int64, null if the file has no value; factors are text, with levels as the spec writes them.
    """

    path: Path

    @cached_property
    def _files(self) -> Tables:
        return Tables(RunDir(self.path))

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of its tables."""
        return self._files.names

    @cached_property
    def cells(self) -> pl.DataFrame:
        """One row per cell of the plan: cells.csv, plus a numeric column for each factor whose levels are quantities.

        `delay` ("10 s") also gives `delay_s` (10.0), `rate` ("5 Mbit/s") `rate_bit_s` (5e6); null if a factor does
        not apply ("-"). Where a metric has that name, `level` is in the column's (`outage_level_s`): one table may have
        both.
        """
        metrics = {*METRICS, *(metric.name for metric in self._files.outputs.metrics)}
        frame = self.table("cells")
        quantities = []
        for factor in self.factors:
            levels = frame[factor].unique().to_list()
            read = base_values([level for level in levels if level != "-"])
            if read is None:
                continue
            name = f"{factor}_{read.unit}"
            name = f"{factor}_level_{read.unit}" if name in metrics else name
            if name not in frame.columns:
                quantities.append(_mapped(frame[factor], read.values, pl.Float64).alias(name))
        return frame.with_columns(quantities)

    @cached_property
    def measurements(self) -> pl.DataFrame:
        """One row per cell, flow and metric of every COMPLETED cell: measurements.csv. Null: there was nothing to
        measure.
        """
        return self.table("measurements")

    @cached_property
    def windows(self) -> pl.DataFrame:
        """One row per cell, flow (or direction of a link; "": the cell), series and window of time: windows.csv. t_s:
        the window's beginning. Raises StoreError if the spec has no [measure].
        """
        return self.table("windows")

    @cached_property
    def claims(self) -> pl.DataFrame:
        """One row per claim and condition: claims.csv."""
        return self.table("claims")

    @cached_property
    def factors(self) -> tuple[str, ...]:
        """The names of the factors: the last columns of cells.csv."""
        return self._files.factors

    def metric(self, name: str) -> pl.DataFrame:
        """A metric with the factors of its cells: one row per flow, with `value`, `unit` and the columns of `cells`.
        Raises SpecError if no cell has the metric.
        """
        rows = self.measurements.filter(pl.col("metric") == name).drop("metric")
        if rows.is_empty():
            raise no_metric(self.path, name, self.measurements["metric"].unique().to_list())
        return rows.join(self.cells, on="cell_id", how="left", maintain_order="left")

    def table(self, name: str) -> pl.DataFrame:
        """tables/<name>.csv. Raises StoreError if there is no such table."""
        path = self._files.path(name)
        try:
            frame = pl.read_csv(path.read_bytes(), infer_schema=False).fill_null("")
        except (OSError, pl.exceptions.PolarsError) as error:
            raise StoreError(f"{path}: cannot be read: {error}") from error
        numbers = self._files.numbers
        return frame.with_columns(
            _number(column) if column.name in numbers else _text(column) for column in frame.get_columns()
        )

    def write_parquet(self) -> None:
        """Write tables/<name>.parquet beside every tables/<name>.csv. Raises StoreError."""
        for name in self.tables:
            out = io.BytesIO()
            (self.cells if name == "cells" else self.table(name)).write_parquet(out)
            write_atomic(self.path / "tables" / f"{name}.parquet", out.getvalue())


def _number(column: pl.Series) -> pl.Series:
    """A column of numbers, null if empty; a column of text if a word stands in it."""
    given = column.replace("", None)
    numbers = given.cast(pl.Int64 if column.name in INTEGERS else pl.Float64, strict=False)
    return numbers if numbers.null_count() == given.null_count() else _text(column)


def _text(column: pl.Series) -> pl.Series:
    """A column of text without the quote that protects spreadsheets from formulas."""
    guarded = column.filter(column.str.starts_with("'")).unique().to_list()
    texts = column.replace({text: unguarded(text) for text in guarded}) if guarded else column
    return texts.cast(pl.Categorical) if column.name in NAMES else texts


def _mapped(column: pl.Series, values: Mapping[str, float], kind: type[pl.DataType]) -> pl.Series:
    return column.replace_strict(values, default=None, return_dtype=kind)
