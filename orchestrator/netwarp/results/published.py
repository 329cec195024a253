"""What each claim comes to from the numbers others published: the same statistic over theirs instead of ours."""

from __future__ import annotations

import msgspec

from ..core.types import CellOutcome, Measurement, Outcome
from ..plan.types import Plan, Selection
from .claims import flows_of, judge
from .run_results import Results


def published(plan: Plan) -> dict[str, dict[str, float]]:
    """Source -> claim -> its number there; a claim that needs a number the source does not print is left out."""
    cells = tuple(msgspec.structs.replace(cell, random=False) for cell in plan.cells if not cell.repetition)
    plan = msgspec.structs.replace(plan, cells=cells)
    names = [(cell.id, cell) for cell in cells]
    selection = Selection(plan)
    outcomes = {name: CellOutcome(Outcome.COMPLETED, "", None, 0.0) for name, _ in names}
    flows: dict[str, dict[str, None]] = {}
    for claim in plan.claims:
        for metric in (claim.metric, claim.metric_b):
            flows.setdefault(metric, {}).update(dict.fromkeys(flows_of(claim)))
    by_source: dict[str, dict[str, float]] = {}
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
        by_source[source.name] = {each.claim.name: each.measured for each in judged if each.measured is not None}
    return by_source
