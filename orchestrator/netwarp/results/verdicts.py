"""The verdict of each claim: by our numbers under every column, and by the published numbers of every source."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import msgspec

from ..core.outputs import Claim, Verdict
from ..core.types import CellOutcome, Measurement, Outcome
from ..plan.types import Plan, Selection
from .claims import WEAKER, Judged, can_hold, flows_of, judge
from .run_results import Results

Published = dict[str, dict[str, Judged]]
"""Source -> claim, by its name -> what it comes to there; claims that need a number the source lacks are left out."""


@dataclass(frozen=True, slots=True)
class _Source:
    """A source's numbers as if they were measured, and every claim judged by them that they suffice for."""

    results: Results
    judged: dict[str, Judged]

    def contradicts(self, claim: Claim) -> bool:
        """True if no numbers that print as these do show what the claim says."""
        entry = self.judged.get(claim.name)
        if entry is None or entry.verdict not in ("does not hold", WEAKER):
            return False
        less = entry.verdict == WEAKER and claim.claim_class != "number"  # of a direction alone it is no contradiction
        return not less and not can_hold(claim, self.results)


def published(plan: Plan) -> Published:
    """Every claim, judged by the numbers of every source."""
    return {name: source.judged for name, source in _sources(plan).items()}


def _sources(plan: Plan) -> dict[str, _Source]:
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
    by_source: dict[str, _Source] = {}
    for source in plan.sources:
        numbers = [each for each in plan.expected if each.source == source.name]
        values = [
            Measurement(name, flow, number.metric, number.value, "")
            for name, cell in names
            for number in numbers
            for flow in flows.get(number.metric, ())
            if selection.has(cell, number.at, flow)
        ]
        digits = {
            (name, number.metric): number.digit
            for name, cell in names
            for number in numbers
            if number.digit
            for flow in flows.get(number.metric, ())
            if selection.has(cell, number.at, flow)
        }
        results = Results(plan, outcomes, values, digits)
        judged = {entry.claim.name: entry for entry in judge(results) if entry.measured is not None}
        by_source[source.name] = _Source(results, judged)
    return by_source


REFUTED: Verdict = "its own source refutes it"


@dataclass(frozen=True, slots=True)
class Decided:
    """A claim under one condition.

    own: judged by the measurements; sources: by each source's numbers; columns: by the measurements under the levels of
    each column. The last two leave out those without a number. first: the verdict on the measurements by the rule of
    before its first amendment, where that was another tolerance; "" else.
    """

    own: Judged
    verdict: Verdict
    sources: Mapping[str, Judged]
    columns: Mapping[str, Judged]
    first: Verdict | Literal[""] = ""


def decide(results: Results) -> tuple[Decided, ...]:
    """Every claim of the plan in order; those of columns stand beside their own claim."""
    judged = judge(results)
    sources = _sources(results.plan)
    others = {name: source.judged for name, source in sources.items()}
    papers = [sources[source.name] for source in results.plan.sources if source.kind == "paper"]
    known = {entry.claim.name: entry.claim for entry in judged}
    first = _first_verdicts(results)
    by_column = {(entry.claim.id, entry.claim.column): entry for entry in judged if entry.claim.column}
    columns = [column.name for column in results.plan.columns]
    return tuple(
        Decided(
            entry,
            _verdict(entry, papers, known),
            {source: there[entry.claim.name] for source, there in others.items() if entry.claim.name in there},
            {
                name: by_column[entry.claim.id, name]
                for name in columns
                if not entry.claim.condition and (entry.claim.id, name) in by_column
            },
            first.get(entry.claim.name, ""),
        )
        for entry in judged
        if not entry.claim.column
    )


def _first_verdicts(results: Results) -> dict[str, Verdict]:
    """The verdicts on the measurements by each claim's tolerance of before it was amended."""
    before = tuple(
        msgspec.structs.replace(claim, tolerance=claim.first_tolerance)
        for claim in results.plan.claims
        if claim.first_tolerance is not None and not claim.column
    )
    return {entry.claim.name: entry.verdict for entry in judge(results, before)}


def _verdict(entry: Judged, papers: list[_Source], known: Mapping[str, Claim]) -> Verdict:
    """The verdict, where the paper's own numbers can refute its claim: such a claim says nothing about a kernel. Checks
    of our own are not refuted in this way, and a printed number only if every reading of it is.
    """
    claim = entry.claim
    if claim.claim_class == "own":
        return entry.verdict
    names = (f"{other} {claim.condition_text}".rstrip() for other in claim.readings)
    readings = [known[name] for name in names if name in known]
    if claim.claim_class == "number" and not readings:
        return entry.verdict
    refuted = any(all(paper.contradicts(each) for each in (claim, *readings)) for paper in papers)
    return REFUTED if refuted else entry.verdict
