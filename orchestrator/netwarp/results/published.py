"""What each claim comes to from the numbers others published: the same statistic over theirs instead of ours."""

from __future__ import annotations

import msgspec

from ..core.types import CellOutcome, Measurement, Outcome
from ..plan.types import Plan, Selection
from .claims import judge
from .run_results import Results


def published(plan: Plan) -> dict[str, dict[str, float]]:
    """Source -> claim -> its number there; a claim that needs a number the source does not print is left out."""
    cells = tuple(msgspec.structs.replace(cell, random=False) for cell in plan.cells if not cell.repetition)
    plan = msgspec.structs.replace(plan, cells=cells)
    names = [(cell.id, cell) for cell in cells]
    selection = Selection(plan)
    outcomes = {name: CellOutcome(Outcome.COMPLETED, "", None, 0.0) for name, _ in names}
    found: dict[str, dict[str, float]] = {}
    for source in plan.sources:
        numbers = [one for one in plan.expected if one.source == source.name]
        flows = {claim.metric: claim.flow for claim in plan.claims}
        values = [
            Measurement(name, flows.get(one.metric, ""), one.metric, one.value, "")
            for name, cell in names
            for one in numbers
            if selection.has(cell, one.at)
        ]
        judged = judge(Results(plan, outcomes, values))
        found[source.name] = {one.claim.id: one.measured for one in judged if one.measured is not None}
    return found
