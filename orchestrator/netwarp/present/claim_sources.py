"""What stands behind a claim: the cells it is tested on, and the tables and figures that show the same numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.outputs import Claim, Figure, Levels, Table
from .result_tables import Grid
from .run_data import RunData


@dataclass(frozen=True, slots=True)
class Evidence:
    """cells: places in the list of cells. shown: (anchor, short title) of tables and figures."""

    cells: tuple[int, ...]
    shown: tuple[tuple[str, str], ...]


NOTHING = Evidence((), ())


def evidence(data: RunData, grids: Sequence[Grid], drawn: Iterable[str]) -> Mapping[str, Evidence]:
    """Claim id -> what is behind it. drawn: names of the figures on the page."""
    claims = {claim.id: claim for claim in data.plan.claims}
    tables = {grid.name for grid in grids}
    figures = set(drawn)
    places: list[tuple[str, Table | Figure]] = [
        *((f"table-{table.name}", table) for table in data.plan.tables if table.name in tables),
        *((f"figure-{figure.name}", figure) for figure in data.plan.figures if figure.name in figures),
    ]
    found = {}
    for claim in claims.values():
        selectors = [selector for one in _parts(claim, claims) for selector in _selectors(one)]
        cells = tuple(
            number
            for number, result in enumerate(data.cells)
            if any(data.selection.has(result.cell, selector) for selector in selectors)
        )
        metrics = {one.metric for one in _parts(claim, claims)}
        shown = tuple(
            (anchor, short(place.title))
            for anchor, place in places
            if place.metric in metrics and any(data.selection.has(data.cells[n].cell, place.where) for n in cells)
        )
        found[claim.id] = Evidence(cells, shown)
    return found


def _parts(claim: Claim, claims: Mapping[str, Claim]) -> list[Claim]:
    """A claim, or, of a mean of claims, those it is of."""
    return [claims[name] for name in getattr(claim, "of", ()) if name in claims] or [claim]


def _selectors(claim: Claim) -> list[Levels]:
    """Every selector of a claim, over all its levels at once."""
    over = {claim.over: claim.levels} if claim.over else {}
    return [{**selector, **over} for selector in (*claim.a, *claim.b)]


def short(title: str) -> str:
    """ "Figure 5: throughput against ..." -> "Figure 5"."""
    head = title.partition(":")[0].strip()
    return head if any(letter.isdigit() for letter in head) else title
