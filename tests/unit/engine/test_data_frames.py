"""Tables as data frames and Parquet: the same rows as the CSV files, with types."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import netwarp
import polars as pl
import pytest
from netwarp.core.units import base_values
from netwarp.engine.data_frames import replace_parquet
from netwarp.store.run_dir import RunDir
from support.report_kit import hostile_run, small_run


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return small_run(tmp_path / "run")


@pytest.mark.parametrize("made", [small_run, hostile_run])
def test_a_frame_has_the_rows_of_the_table(made: Any, tmp_path: Path) -> None:
    run = made(tmp_path / "run")
    opened, frames = netwarp.open_run(run.root), netwarp.load_run(run.root)
    assert frames.tables == opened.tables and frames.tables
    for name in frames.tables:
        rows = frames.table(name).to_dicts()
        assert rows == [
            {column: "" if field is None and isinstance(row[column], str) else field for column, field in each.items()}
            for each, row in zip(opened.table(name), rows, strict=True)
        ], name


def test_columns_have_their_types(run: RunDir) -> None:
    frames = netwarp.load_run(run.root)
    schema = frames.cells.schema
    assert (schema["repetition"], schema["seed"], schema["virtual_s"]) == (pl.Int64, pl.Int64, pl.Float64)
    assert (schema["outage"], schema["cell_id"], schema["experiment"]) == (pl.String, pl.String, pl.Categorical)
    assert frames.measurements.schema["value"] == pl.Float64
    assert frames.table("outages").schema["paper"] == pl.Float64, "a source of published numbers"


def test_levels_that_are_quantities_are_numbers_too(run: RunDir) -> None:
    frames = netwarp.load_run(run.root)
    assert frames.factors == ("outage", "variant", "failover")
    seconds = dict(frames.cells.select("outage", "outage_level_s").iter_rows())
    assert seconds == {"0 s": 0.0, "5 s": 5.0, "10 s": 10.0, "20 s": 20.0}
    assert frames.cells.columns[-1] == "outage_level_s", "variant and failover are words"


def test_a_wide_table_has_one_column_of_a_name(run: RunDir) -> None:
    """The notebook's: a factor `outage` had a column `outage_s`, as the metric is called."""
    frames = netwarp.load_run(run.root)
    wide = frames.measurements.filter(pl.col("flow") != "").pivot("metric", index=["cell_id", "flow"], values="value")
    columns = wide.join(frames.cells, on="cell_id").columns
    assert "outage_s" in columns and "outage_level_s" in columns
    assert not [name for name in columns if name.endswith("_right")]


def test_a_metric_stands_beside_the_factors_of_its_cells(run: RunDir) -> None:
    goodput = netwarp.load_run(run.root).metric("goodput_bit_s")
    of_tcp = goodput.filter((pl.col("variant") == "tcp") & (pl.col("outage_level_s") == 10.0))
    assert of_tcp["value"].to_list() == [410000.0] and of_tcp["flow"].to_list() == ["ftp"]
    with pytest.raises(netwarp.SpecError, match=r"no cell has the metric 'speed'; there is: .*goodput_bit_s"):
        netwarp.load_run(run.root).metric("speed")


def test_pandas_has_the_same(run: RunDir) -> None:
    frame = netwarp.load_run(run.root).metric("goodput_bit_s")
    assert frame.to_pandas()["value"].tolist() == frame["value"].to_list()


def test_parquet_has_the_frames(run: RunDir) -> None:
    frames = netwarp.load_run(run.root)
    replace_parquet(run, wanted=True)
    assert sorted(path.stem for path in run.tables.glob("*.parquet")) == list(frames.tables)
    assert pl.read_parquet(run.tables / "cells.parquet").equals(frames.cells)
    assert pl.read_parquet(run.tables / "measurements.parquet").equals(frames.measurements)
    first = (run.tables / "measurements.parquet").read_bytes()
    replace_parquet(run, wanted=True)
    assert (run.tables / "measurements.parquet").read_bytes() == first


def test_parquet_of_tables_that_changed_is_removed(run: RunDir) -> None:
    replace_parquet(run, wanted=True)
    replace_parquet(run, wanted=False)
    assert not list(run.tables.glob("*.parquet"))


def test_no_run_and_no_table(run: RunDir, tmp_path: Path) -> None:
    with pytest.raises(netwarp.StoreError, match="no run with tables"):
        netwarp.load_run(tmp_path)
    with pytest.raises(netwarp.StoreError, match="no such table; there is: cells, "):
        netwarp.load_run(run.root).table("nothing")


def test_without_polars_nothing_is_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "polars":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)

    monkeypatch.delitem(sys.modules, "polars")
    monkeypatch.setattr(builtins, "__import__", without)
    for call in (
        lambda: netwarp.load_run(tmp_path),
        lambda: netwarp.run("choi2009", out=tmp_path / "run", parquet=True),
        lambda: netwarp.analyze(tmp_path, parquet=True),
    ):
        with pytest.raises(netwarp.SpecError, match=r"make setup EXTRAS=all"):
            call()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("levels", "unit", "numbers"),
    [
        (("200 ms", "1 s"), "s", (0.2, 1.0)),
        (("5 Mbit/s", "500 kbit/s"), "bit_s", (5e6, 5e5)),
        (("64 KiB", "1 kB"), "bytes", (65536.0, 1000.0)),
        (("1 %", "1e-5"), "ratio", (0.01, 1e-5)),
        (("0.5 bdp", "2 bdp"), "bdp", (0.5, 2.0)),
        (("50 packets",), "packets", (50.0,)),
    ],
)
def test_base_values(levels: tuple[str, ...], unit: str, numbers: tuple[float, ...]) -> None:
    read = base_values(levels)
    assert read is not None and (read.unit, tuple(read.values[level] for level in levels)) == (unit, numbers)


@pytest.mark.parametrize("levels", [(), ("tcp", "1 s"), ("1 s", "1 %"), ("3", "4")])
def test_no_base_values(levels: tuple[str, ...]) -> None:
    assert base_values(levels) is None
