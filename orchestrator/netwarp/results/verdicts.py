"""The verdict of each claim: by our numbers under every column, and by the published numbers of every source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from ..core.outputs import Verdict
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


REFUTED: Verdict = "its own source refutes it"


@dataclass(frozen=True, slots=True)
class Decided:
    """A claim under one condition.

    own: judged by the measurements; sources: by each source's numbers; columns: by the measurements under the levels of
    each column. The last two leave out those without a number.
    """

    own: Judged
    verdict: Verdict
    sources: Mapping[str, Judged]
    columns: Mapping[str, Judged]


def decide(results: Results) -> tuple[Decided, ...]:
    """Every claim of the plan in order; those of columns stand beside their own claim."""
    judged = judge(results)
    others = published(results.plan)
    papers = [source.name for source in results.plan.sources if source.kind == "paper"]
    by_column = {(entry.claim.id, entry.claim.column): entry for entry in judged if entry.claim.column}
    columns = [column.name for column in results.plan.columns]
    return tuple(
        Decided(
            entry,
            _verdict(entry, others, papers),
            {source: there[entry.claim.name] for source, there in others.items() if entry.claim.name in there},
            {
                name: by_column[entry.claim.id, name]
                for name in columns
                if not entry.claim.condition and (entry.claim.id, name) in by_column
            },
        )
        for entry in judged
        if not entry.claim.column
    )


def _verdict(entry: Judged, others: Published, papers: list[str]) -> Verdict:
    """The verdict, where the paper's own numbers can refute its claim: such a claim says nothing about a kernel. Checks
    of our own are not refuted in this way.
    """
    if entry.claim.claim_class == "own":
        return entry.verdict
    refuted = any(
        others[paper][entry.claim.name].verdict == "does not hold"
        for paper in papers
        if entry.claim.name in others[paper]
    )
    return REFUTED if refuted else entry.verdict
