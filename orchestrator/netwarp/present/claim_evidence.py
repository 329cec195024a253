"""The cells on which claims are tested, and the tables and figures that show their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..core.outputs import Claim, Figure, Levels, Table
from .result_tables import Grid
from .run_data import RunData


@dataclass(frozen=True, slots=True)
class Evidence:
    """The places that show a claim's numbers. cells: indices in the list of cells. places: (anchor, short title) of
    tables and figures.
    """

    cells: tuple[int, ...]
    places: tuple[tuple[str, str], ...]


NOTHING = Evidence((), ())


def evidence(data: RunData, grids: Sequence[Grid], figures: Mapping[str, str]) -> Mapping[str, Evidence]:
    """Claim, by its name -> its cells, tables and figures. figures: name -> title, of those on the page."""
    tables = {grid.name: grid.title for grid in grids}
    outputs: list[tuple[str, str, Table | Figure]] = [
        *((f"table-{one.name}", tables[one.name], one) for one in data.plan.tables if one.name in tables),
        *((f"figure-{one.name}", figures[one.name], one) for one in data.plan.figures if one.name in figures),
    ]
    by_claim = {}
    for claim in data.plan.claims:
        selectors = [selector for part in _parts(claim, data.plan.claims) for selector in _selectors(part)]
        cells = tuple(
            index
            for index, result in enumerate(data.cells)
            if any(data.selection.has(result.cell, selector) for selector in selectors)
        )
        metrics = {part.metric for part in _parts(claim, data.plan.claims)}
        places = tuple(
            (anchor, _short(title))
            for anchor, title, output in outputs
            if output.metric in metrics and any(data.selection.has(data.cells[n].cell, output.where) for n in cells)
        )
        by_claim[claim.name] = Evidence(cells, places)
    return by_claim


def _parts(claim: Claim, claims: Sequence[Claim]) -> list[Claim]:
    """A claim, or for a mean of claims the claims it averages."""
    return [other for other in claims if other.id in claim.of and other.condition == claim.condition] or [claim]


def _selectors(claim: Claim) -> list[Levels]:
    """Every selector of a claim, over all its levels at once."""
    over = {claim.over: claim.levels} if claim.over else {}
    return [{**selector, **over} for selector in (*claim.a, *claim.b)]


def _short(title: str) -> str:
    """ "Figure 5: throughput against ..." -> "Figure 5"."""
    head = title.partition(":")[0].strip()
    return head if any(letter.isdigit() for letter in head) else title
