"""Writes the report of a run: a new folder next to report/ that then replaces it completely."""

from __future__ import annotations

import importlib.util
import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from ...core.errors import StoreError
from ...core.types import Cell
from ...results.rows import NOT_RUN
from ...store.run_dir import UNFINISHED, RunDir
from ..answer_words import answer_words
from ..cell_list import ROWS_AT_ONCE, Listing, listing_data, make_listing, spans
from ..claim_blocks import statements
from ..claim_evidence import NOTHING, evidence
from ..figures import describe_figures
from ..figures.description import Drawing, level_scale, payload
from ..figures.line import line_key
from ..figures.over_time import make_events, series_titles
from ..figures.print import printed
from ..html import environment, file_name, script_json, url
from ..looks import report_looks
from ..result_tables import make_grid
from ..run_data import GROUP_ORDER, RunData, read_run
from ..run_summary import Checks, summarise
from ..schedule_maps import make_schedules
from ..setup import networks, run_notes, varied
from ..style import OUTCOMES, UNTESTED, VERDICTS, Look, look, swatch, variant_css
from ..stylesheets import stylesheet
from .calibration import write_calibration_page
from .cell_page import cell_view

log = logging.getLogger(__name__)
STATIC = Path(__file__).parents[1] / "static"
CELL_ID = re.compile(r"[\w.]+_r\d+_[0-9a-f]{10}")
PALETTE = 64
"""Looks that the page's scripts may give to lines that no figure of the spec draws."""


def make_report(run: RunDir, changed: Sequence[str] = ()) -> Path:
    """Write report/ of a run directory and return its index.html.

    Reads plan.json, manifest.json, calibration.json, tables/*.csv and the cells' JSON files; never a capture. An
    earlier report is replaced as a whole. changed: the files that are not what the run wrote, which it names. Raises
    StoreError: something cannot be read or written.
    """
    data = read_run(run)
    try:
        folder = run.report.temporary(UNFINISHED)
        try:
            _write(data, folder, changed)
            if run.report.exists():
                run.report.remove_tree()
            folder.replace(run.report)
        finally:
            folder.remove_tree(ignore_errors=True)
    except OSError as error:
        raise StoreError(f"{run.report}: cannot be written: {error.strerror}") from error
    return run.report / "index.html"


def _write(data: RunData, folder: Path, changed: Sequence[str]) -> None:
    """Every file of the report below `folder`."""
    assets, cells, figures = (folder / name for name in ("assets", "cells", "figures"))
    for part in (assets, cells, figures):
        part.mkdir(parents=True)
    for source in sorted(STATIC.iterdir()):
        (assets / source.name).write_bytes(source.read_bytes())
    (assets / "report.css").write_text(stylesheet("index"), encoding="utf-8")
    (assets / "plotly.min.js").write_bytes(plotly_script().read_bytes())
    listing = make_listing(data)
    checks = _write_cells(data, cells, listing)
    looks = report_looks(data)
    for name, call, content in (
        ("explore-data", "exploreLoaded", explore_data(data)),
        ("cell-list", "cellsListed", listing_data(listing)),
    ):
        (assets / f"{name}.js").write_text(f"netwarp.{call}({script_json(content)});\n", encoding="utf-8")
    described = describe_figures(data)
    grids = [grid for table in data.plan.tables if (grid := make_grid(data, table)) is not None]
    events = [events for table in data.plan.event_tables if (events := make_events(data, table)) is not None]
    claims = statements(data)
    behind = evidence(data, grids, {figure.name: figure.title for figure in described})
    labels = {row.id: row.label for row in listing.rows}
    swatches = {key: swatch(own) for key, own in looks.items()}
    page = environment().get_template("index.html.j2")
    text = page.render(
        data=data,
        plan=data.plan,
        manifest=data.manifest,
        summary=summarise(data, grids, claims, checks),
        answers=answer_words(data),
        networks=networks(data),
        machine_notes=run_notes(data),
        changed=changed,
        varied=varied(data),
        verdict_names=list(VERDICTS),
        untested_verdicts=UNTESTED,
        grids=grids,
        figures=[(figure, _write_files(figure, looks, figures)) for figure in described],
        events=events,
        schedules=make_schedules(data),
        claims=claims,
        behind=lambda claim: behind.get(claim, NOTHING),
        listing=listing,
        label_of=labels,
        cells_named=lambda text: CELL_ID.sub(lambda found: labels.get(found[0], found[0]), text),
        at_once=ROWS_AT_ONCE,
        payload={
            "figures": {figure.name: payload(figure.marks) for figure in described},
            "looks": {key: asdict(own) for key, own in looks.items()},
            "palette": [asdict(look(number)) for number in range(PALETTE)],
            "series": series_titles(),
            "claims": {claim: spans(evidence.cells) for claim, evidence in behind.items() if evidence.cells},
            "system": data.system,
        },
        style=Markup(variant_css(looks.values())),
        swatches=swatches,
        row_swatch=lambda grid, row: swatches.get(line_key(grid.row_names, grid.row_levels[row]), ""),
    )
    (folder / "index.html").write_bytes(text.encode())
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
    return done, failed


def _write_files(figure: Drawing, looks: Mapping[str, Look], folder: Path) -> dict[str, str]:
    """Its PDF, SVG and CSV; returns suffix -> link."""
    name = file_name(figure.name)
    files = {**printed(figure.marks, looks), "csv": figure.csv}
    for suffix, content in files.items():
        (folder / f"{name}.{suffix}").write_bytes(content)
    return {suffix: url("figures", f"{name}.{suffix}") for suffix in files}


def plotly_script() -> Path:
    """plotly.min.js of the installed plotly package, found without importing it."""
    spec = importlib.util.find_spec("plotly")
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(folder, "package_data", "plotly.min.js")
        if path.is_file():
            return path
    raise StoreError("plotly.min.js is not installed; run `make setup` (or pip install plotly)")


def explore_data(data: RunData) -> dict[str, Any]:
    """Factors with their levels and the numbers of these, metrics, and a row a completed cell: levels by index, values
    by metric and flow.
    """
    factors: list[dict[str, Any]] = []
    for factor in data.plan.factors:
        used = {result.cell.factors.get(factor.name, "-") for result in data.cells}
        levels = [level.name for level in factor.levels if level.name in used]
        levels += ["-"] if "-" in used else []
        if len(levels) > 1:
            titles = [data.plan.level_title(factor.name, level) if level != "-" else "without" for level in levels]
            scale = level_scale(levels, titles)
            factors.append(
                {
                    "name": factor.name,
                    "title": data.plan.factor_title(factor.name),
                    "unit": scale.unit if scale else "",
                    "levels": levels,
                    "at": scale.values if scale else None,
                    "titles": titles,
                }
            )
    parts = _parts_alike(data)
    if parts:
        factors.append(
            {"name": "experiment", "title": "part of the run", "unit": "", "levels": parts, "at": None, "titles": parts}
        )  # fmt: skip
    columns = sorted({(metric, flow) for (_, flow, metric), value in data.values.items() if value is not None})
    order = {name: place for place, name in enumerate(data.metrics)}
    columns.sort(key=lambda column: (GROUP_ORDER.index(data.metrics[column[0]].group), order[column[0]], column[1]))
    metrics = [(data.metrics[name], flow) for name, flow in columns]
    cells = [(result.id, result.cell) for result in data.cells if result.outcome == next(iter(OUTCOMES))]
    return {
        "factors": factors,
        "metrics": [
            {"name": m.name, "flow": flow, "title": m.title, "group": m.group, "unit": m.unit} for m, flow in metrics
        ],
        "cells": [
            {
                "id": name,
                "levels": [factor["levels"].index(_level(cell, factor["name"])) for factor in factors],
                "values": [data.values.get((name, flow, metric)) for metric, flow in columns],
            }
            for name, cell in cells
        ],
    }


def _level(cell: Cell, factor: str) -> str:
    return cell.experiment if factor == "experiment" and factor not in cell.factors else cell.factors.get(factor, "-")


def _parts_alike(data: RunData) -> list[str]:
    """Experiments of the spec, where cells of several have the same levels: those are no repetitions of each other."""
    by_levels: dict[frozenset[tuple[str, str]], set[str]] = {}
    for result in data.cells:
        by_levels.setdefault(frozenset(result.cell.factors.items()), set()).add(result.cell.experiment)
    alike = any(len(parts) > 1 for parts in by_levels.values())
    named = any(factor.name == "experiment" for factor in data.plan.factors)
    return list(dict.fromkeys(result.cell.experiment for result in data.cells)) if alike and not named else []
