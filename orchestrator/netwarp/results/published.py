"""Judges each claim by published numbers: the same statistic and rule, applied to a source's numbers instead of
ours.
"""

from __future__ import annotations

import msgspec

from ..core.types import CellOutcome, Measurement, Outcome
from ..plan.types import Plan, Selection
from .claims import Judged, flows_of, judge
from .run_results import Results

Published = dict[str, dict[str, Judged]]
"""Source -> claim, by its name -> what it comes to there; claims that need a number the source lacks are left out."""


def published(plan: Plan) -> Published:
    """Every claim, judged by the numbers of every source."""
    cells = tuple(msgspec.structs.replace(cell, random=False) for cell in plan.cells if not cell.repetition)
    # a source's number is there, whatever clock it was measured by
    claims = tuple(msgspec.structs.replace(claim, clock="any") for claim in plan.claims)
    plan = msgspec.structs.replace(plan, cells=cells, claims=claims)
    names = [(cell.id, cell) for cell in cells]
    selection = Selection(plan)
    outcomes = {name: CellOutcome(Outcome.COMPLETED, "", None, 0.0) for name, _ in names}
    flows: dict[str, dict[str, None]] = {}
    for claim in plan.claims:
        for metric in (claim.metric, claim.metric_b):
            flows.setdefault(metric, {}).update(dict.fromkeys(flows_of(claim)))
    by_source: Published = {}
    for source in plan.sources:
        numbers = [each for each in plan.expected if each.source == source.name]
        values = [
            Measurement(name, flow, number.metric, number.value, "")
            for name, cell in names
            for number in numbers
            for flow in flows.get(number.metric, ())
            if selection.has(cell, number.at, flow)
        ]
        judged = judge(Results(plan, outcomes, values))
        by_source[source.name] = {entry.claim.name: entry for entry in judged if entry.measured is not None}
    return by_source
