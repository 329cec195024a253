"""The page of a run: index.html from its templates, and the data from which its scripts draw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from markupsafe import Markup

from ..answer_grids import answer_words
from ..axes import level_axis
from ..cell_list import ROWS_AT_ONCE, Listing, spans
from ..claim_blocks import NOTHING, Evidence, Statement
from ..event_tables import Events
from ..figures.figure_registry import SCRIPTS, Drawing
from ..figures.line.data import line_key
from ..figures.over_time.data import series_titles
from ..html import environment
from ..machines import run_notes
from ..metric_names import GROUP_ORDER
from ..result_tables import Grid
from ..run_data import RunData
from ..run_summary import Summary
from ..schedules import make_schedules
from ..setup import level_settings, networks
from ..style import OUTCOMES, VERDICTS, Look, look, swatch, variant_css

PALETTE = 64
"""Looks that the page's scripts may give to lines that no figure of the spec draws."""


def index_page(
    data: RunData,
    *,
    summary: Summary,
    grids: Sequence[Grid],
    figures: Sequence[tuple[Drawing, Mapping[str, str]]],
    events: Sequence[Events],
    looks: Mapping[str, Look],
    listing: Listing,
    claims: Sequence[Statement],
    behind: Mapping[str, Evidence],
) -> bytes:
    """The page. figures: each with its download links by suffix."""
    swatches = {key: swatch(own) for key, own in looks.items()}
    payload = {
        "figures": {drawing.name: drawing.payload for drawing, _ in figures},
        "looks": {key: asdict(own) for key, own in looks.items()},
        "palette": [asdict(look(number)) for number in range(PALETTE)],
        "series": series_titles(),
        "claims": {claim: spans(evidence.cells) for claim, evidence in behind.items() if evidence.cells},
        "system": data.system,
    }
    page = environment().get_template("index.html.j2")
    return page.render(
        data=data,
        plan=data.plan,
        manifest=data.manifest,
        summary=summary,
        answers=answer_words(data),
        networks=networks(data),
        machine_notes=run_notes(data),
        factors=level_settings(data),
        verdict_names=list(VERDICTS),
        grids=grids,
        figures=figures,
        events=events,
        schedules=make_schedules(data),
        claims=claims,
        behind=lambda claim: behind.get(claim, NOTHING),
        listing=listing,
        at_once=ROWS_AT_ONCE,
        payload=payload,
        figure_scripts=list(SCRIPTS),
        style=Markup(variant_css(looks.values())),
        swatches=swatches,
        row_swatch=lambda grid, row: _row_swatch(grid, row, swatches),
    ).encode()


def _row_swatch(grid: Grid, row: int, swatches: Mapping[str, Markup]) -> Markup | str:
    """The variant's drawing beside a table row that is one."""
    return swatches.get(line_key(grid.row_names, grid.row_levels[row]), "")


def explore_data(data: RunData) -> dict[str, Any]:
    """Factors with their axes, metrics, and a row a completed cell: levels by index, values by metric and flow."""
    factors: list[dict[str, Any]] = []
    for factor in data.plan.factors:
        used = {result.cell.factors.get(factor.name, "-") for result in data.cells}
        levels = [level.name for level in factor.levels if level.name in used]
        levels += ["-"] if "-" in used else []
        if len(levels) > 1:
            axis = level_axis(data, factor.name, [level for level in levels if level != "-"])
            factors.append(
                {
                    "name": factor.name,
                    "title": axis.title,
                    "unit": axis.unit,
                    "kind": axis.kind,
                    "levels": levels,
                    "at": axis.at,
                    "titles": [data.level_title(factor.name, level) if level != "-" else "\u2013" for level in levels],
                }
            )
    columns = sorted({(metric, flow) for (_, flow, metric), value in data.values.items() if value is not None})
    order = {name: place for place, name in enumerate(data.metrics)}
    columns.sort(key=lambda column: (GROUP_ORDER.index(data.metrics[column[0]].group), order[column[0]], column[1]))
    cells = [(result.id, result.cell) for result in data.cells if result.outcome == next(iter(OUTCOMES))]
    return {
        "factors": factors,
        "metrics": [
            {
                "name": metric,
                "flow": flow,
                "title": data.metrics[metric].title,
                "group": data.metrics[metric].group,
                "unit": data.metrics[metric].unit,
            }
            for metric, flow in columns
        ],
        "cells": [
            {
                "id": name,
                "levels": [factor["levels"].index(cell.factors.get(factor["name"], "-")) for factor in factors],
                "values": [data.values.get((name, flow, metric)) for metric, flow in columns],
            }
            for name, cell in cells
        ],
    }
