"""The verdict of each claim, with its result in every source, on this kernel and under every column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .claims import Judged, Verdict, judge
from .published import Published, published
from .run_results import Results

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
