"""Writes the report of a run: a new folder next to report/ that then replaces it completely."""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import tempfile
from pathlib import Path

from ...core.errors import StoreError
from ...results.rows import NOT_RUN
from ...store.run_dir import UNFINISHED, RunDir
from ..cell_list import Listing, listing_data, make_listing
from ..claim_blocks import evidence, statements
from ..event_tables import make_events
from ..figures.figure_registry import SCRIPTS, Drawing, draw_figures
from ..html import file_name, script_json, url
from ..looks import report_looks
from ..result_tables import make_grid
from ..run_data import RunData, read_run
from ..run_summary import Checks, summarise
from .calibration import write_calibration_page
from .cell_page import cell_view
from .run import explore_data, index_page

log = logging.getLogger(__name__)
STATIC = Path(__file__).parents[1] / "static"


def make_report(run: RunDir) -> Path:
    """Write report/ of a run directory and return its index.html.

    Reads plan.json, manifest.json, calibration.json, tables/*.csv and the cells' JSON files; never a capture. An
    earlier report is replaced as a whole. Raises StoreError: something cannot be read or written.
    """
    data = read_run(run)
    try:
        with tempfile.TemporaryDirectory(dir=run.root, prefix=".report-", suffix=UNFINISHED) as scratch:
            folder = Path(scratch, "report")
            _write(data, folder)
            os.chmod(folder, 0o755)
            if run.report.exists():
                shutil.rmtree(run.report)
            os.replace(folder, run.report)
    except OSError as error:
        raise StoreError(f"{run.report}: cannot be written: {error.strerror}") from error
    return run.report / "index.html"


def _write(data: RunData, folder: Path) -> None:
    """Every file of the report below `folder`."""
    assets, cells, figures = (folder / name for name in ("assets", "cells", "figures"))
    for part in (assets, cells, figures):
        part.mkdir(parents=True)
    for name, source in {**{path.name: path for path in sorted(STATIC.iterdir())}, **SCRIPTS}.items():
        shutil.copyfile(source, assets / name)
    shutil.copyfile(plotly_script(), assets / "plotly.min.js")
    listing = make_listing(data)
    checks = _write_cells(data, cells, listing)
    looks = report_looks(data)
    drawings = draw_figures(data, looks)
    grids = [grid for table in data.plan.tables if (grid := make_grid(data, table)) is not None]
    for name, call, content in (
        ("explore-data", "exploreLoaded", explore_data(data)),
        ("cell-list", "cellsListed", listing_data(listing)),
    ):
        (assets / f"{name}.js").write_text(f"netwarp.{call}({script_json(content)});\n", encoding="utf-8")
    claims = statements(data)
    behind = evidence(data, grids, [drawing.name for drawing in drawings])
    page = index_page(
        data,
        summary=summarise(data, grids, claims, checks),
        grids=grids,
        events=[
            events for event_table in data.plan.event_tables if (events := make_events(data, event_table)) is not None
        ],
        figures=[(drawing, _write_files(drawing, figures)) for drawing in drawings],
        looks=looks,
        listing=listing,
        claims=claims,
        behind=behind,
    )
    (folder / "index.html").write_bytes(page)
    if data.calibration is not None:
        write_calibration_page(folder / "calibration.html", data.calibration, back="index.html")


def _write_cells(data: RunData, folder: Path, listing: Listing) -> Checks:
    """Writes a script file per finished cell; returns the sum of their self-checks."""
    done = failed = 0
    for result in data.cells:
        if result.outcome == NOT_RUN:
            continue
        view = cell_view(data, result)
        done += len(view["checks"])
        failed += sum(not check["ok"] for check in view["checks"])
        (folder / listing.scripts[result.id]).write_text(
            f"netwarp.cellLoaded({script_json(view)});\n", encoding="utf-8"
        )
    return Checks(done, failed)


def _write_files(drawing: Drawing, folder: Path) -> dict[str, str]:
    """Its PDF, SVG and CSV; returns suffix -> link."""
    name = file_name(drawing.name)
    for suffix, content in drawing.files.items():
        (folder / f"{name}.{suffix}").write_bytes(content)
    return {suffix: url("figures", f"{name}.{suffix}") for suffix in drawing.files}


def plotly_script() -> Path:
    """plotly.min.js of the installed plotly package, found without importing it."""
    spec = importlib.util.find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "package_data", "plotly.min.js")
        if path.is_file():
            return path
    raise StoreError("plotly.min.js is not installed; run `make setup` (or pip install plotly)")
