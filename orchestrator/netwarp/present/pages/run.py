"""index.html from its template: names escaped by Jinja2, data for the scripts as JSON that cannot end its element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...core.numbers import duration, fixed, given, readable, with_unit
from ...core.units import counted
from ..answer_grids import answer_words
from ..cell_list import Listing
from ..claim_blocks import Statement
from ..claim_sources import NOTHING, Evidence
from ..embed import script_json
from ..figures.figure_registry import Drawing
from ..figures.line.data import line_key
from ..figures.over_time.data import Events, series_titles
from ..markers import swatch, variant_css
from ..result_tables import Grid
from ..run_data import RunData
from ..run_summary import Summary
from ..style import OUTCOMES, VERDICTS, Look, look
from .cell_page import CellView

UNKNOWN = ("?", "unsure")
PALETTE = 64
"""Looks that the page's scripts may give to what no figure of the spec draws."""


def environment() -> Environment:
    """Autoescape everything: names come from a spec that anybody may have written."""
    found = Environment(
        loader=PackageLoader("netwarp.present"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters.update(
        readable=readable, given=given, fixed=fixed, script_json=lambda value: Markup(script_json(value))
    )
    found.globals.update(
        duration=duration,
        with_unit=with_unit,
        counted=counted,
        verdict=lambda name: VERDICTS.get(name, UNKNOWN),
        outcome=lambda name: OUTCOMES.get(name, UNKNOWN),
    )
    return found


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
    ordered = list(looks.values())
    numbers = {key: number for number, key in enumerate(looks)}
    swatches = {key: swatch(own, numbers[key]) for key, own in looks.items()}
    payload = {
        "figures": {drawing.name: drawing.payload for drawing, _ in figures},
        "looks": {key: asdict(own) | {"number": numbers[key]} for key, own in looks.items()},
        "palette": [asdict(look(number)) for number in range(PALETTE)],
        "series": series_titles(),
        "cells": listing.scripts,
        "claims": {claim: found.cells for claim, found in behind.items() if found.cells},
        "system": data.system,
    }
    page = environment().get_template("index.html.j2")
    return page.render(
        data=data,
        plan=data.plan,
        manifest=data.manifest,
        summary=summary,
        answers=answer_words(data),
        grids=grids,
        figures=figures,
        events=events,
        claims=claims,
        behind=lambda claim: behind.get(claim, NOTHING),
        listing=listing,
        payload=payload,
        style=Markup(variant_css(ordered)),
        swatches=swatches,
        row_swatch=lambda grid, row: _row_swatch(grid, row, swatches),
    ).encode()


def _row_swatch(grid: Grid, row: int, swatches: Mapping[str, Markup]) -> Markup | str:
    """The variant's drawing beside a table row that is one."""
    return swatches.get(line_key(grid.row_names, grid.row_levels[row]), "")


def cell_script(view: CellView) -> bytes:
    """The file that a script tag loads when the cell is opened (file:// pages cannot fetch)."""
    return f"netwarp.cellLoaded({script_json(view)});\n".encode()
