"""Judges the claims of a spec by the published numbers of its sources alone; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ..core.outputs import Source
from ..experiment import Spec
from ..plan import make_plan
from ..results.claims import Judged, judge
from ..results.published import published
from ..results.run_results import Results
from .planning import load_experiment


@dataclass(frozen=True, slots=True)
class ClaimBySources:
    """A claim without a measurement (`claim`: its expectation), and its verdict on each source that has the numbers."""

    claim: Judged
    sources: Mapping[str, Judged]


@dataclass(frozen=True, slots=True)
class ClaimsBySources:
    """The claims of a spec under their own conditions, and its sources in order."""

    claims: tuple[ClaimBySources, ...]
    sources: tuple[Source, ...]

    def refuted(self, source: str) -> list[str]:
        """The claims whose test fails on this source's numbers."""
        return [
            one.claim.claim.id
            for one in self.claims
            if source in one.sources and one.sources[source].verdict == "does not hold"
        ]

    @property
    def without_number(self) -> list[str]:
        """The tested claims for which no source has the numbers."""
        return [one.claim.claim.id for one in self.claims if not one.sources and one.claim.claim.tested]


def claims_by_sources(spec: str | Path | Spec) -> ClaimsBySources:
    """Feed the numbers of every source to the judge. Raises SpecError."""
    plan = make_plan(load_experiment(spec))
    others = published(plan)
    return ClaimsBySources(
        tuple(
            ClaimBySources(
                one, {name: there[one.claim.name] for name, there in others.items() if one.claim.name in there}
            )
            for one in judge(Results(plan, {}, ()))
            if not one.claim.condition
        ),
        plan.sources,
    )
