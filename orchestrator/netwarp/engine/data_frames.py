"""The tables of a run as data frames and Parquet files. They need polars, an optional dependency."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import SpecError, StoreError
from ..core.extras import install_extra
from ..store.run_dir import RunDir

if TYPE_CHECKING:
    from ..store.frames import RunFrames


def load_run(directory: str | Path) -> RunFrames:
    """The tables of a run directory as polars data frames (`cells`, `measurements`, `claims`, `metric(NAME)`,
    `table(NAME)`); `.to_pandas()` converts one to pandas.

    Raises StoreError if there are no tables, SpecError if polars is not installed.
    """
    need_polars()
    from ..store.frames import RunFrames

    run = RunDir(Path(directory))
    if not (run.tables / "cells.csv").is_file() or not run.outputs.is_file():
        raise StoreError(f"{run.root}: holds no run with tables; `netwarp analyze RUN_DIR` makes those of a run")
    return RunFrames(run.root)


def need_polars() -> None:
    """Raise SpecError if polars is not installed."""
    try:
        import polars  # noqa: F401
    except ModuleNotFoundError as error:
        raise SpecError(
            f"data frames and Parquet files need polars, which is not installed: {install_extra('data')}"
        ) from error


def replace_parquet(run: RunDir, wanted: bool) -> None:
    """Called after the tables were written: remove the Parquet files of the old tables, and write new ones if
    wanted.
    """
    for path in run.tables.glob("*.parquet"):
        path.unlink()
    if wanted:
        load_run(run.root).write_parquet()
