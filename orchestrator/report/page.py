"""index.html from its template: names escaped by Jinja2, data for the scripts as JSON that cannot end its element."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..units import counted
from .answers import answer_words
from .cellview import CellView
from .claims import Statement
from .data import RunData
from .drawings import Drawing
from .embed import script_json
from .evidence import NOTHING, Evidence
from .figures import line_key
from .grids import Grid
from .listing import Listing
from .markers import swatch, variant_css
from .numbers import duration, fixed, given, readable, with_unit
from .style import OUTCOMES, VERDICTS, Look, look
from .summary import Summary
from .timelines import Events, series_titles

UNKNOWN = ("?", "unsure")
PALETTE = 64
"""Looks that the page's scripts may give to what no figure of the spec draws."""


def environment() -> Environment:
    """Autoescape everything: names come from a spec that anybody may have written."""
    found = Environment(
        loader=PackageLoader("orchestrator.report"),
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
