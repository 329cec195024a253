"""Judges the claims of a spec by the published numbers of its sources alone; runs nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.outputs import Source
from ..experiment import AnyExperiment, load_experiment
from ..plan import make_plan
from ..results.claims import Judged, judge
from ..results.run_results import Results
from ..results.verdicts import published


@dataclass(frozen=True, slots=True)
class ClaimBySources:
    """A claim without a measurement (`claim`: its expectation), and its verdict on each source that has the numbers."""

    claim: Judged
    sources: Mapping[str, Judged]


@dataclass(frozen=True, slots=True)
class ClaimsBySources:
    """The claims of a spec under their own conditions, its sources in order, and its name."""

    claims: tuple[ClaimBySources, ...]
    sources: tuple[Source, ...]
    name: str

    def refuted(self, source: str) -> list[str]:
        """The claims whose test fails on this source's numbers."""
        return [
            decided.claim.claim.id
            for decided in self.claims
            if source in decided.sources and decided.sources[source].verdict == "does not hold"
        ]

    @property
    def without_number(self) -> list[str]:
        """The tested claims for which no source has the numbers."""
        return [decided.claim.claim.id for decided in self.claims if not decided.sources and decided.claim.claim.tested]


def claims_by_sources(spec: AnyExperiment) -> ClaimsBySources:
    """Feed the numbers of every source to the judge. Raises SpecError."""
    plan = make_plan(load_experiment(spec))
    others = published(plan)
    return ClaimsBySources(
        tuple(
            ClaimBySources(
                judged, {name: there[judged.claim.name] for name, there in others.items() if judged.claim.name in there}
            )
            for judged in judge(Results(plan, {}, ()))
            if not judged.claim.condition
        ),
        plan.sources,
        plan.name,
    )
