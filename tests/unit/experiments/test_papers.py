"""The rules of docs/verdicts.md that only the papers' own files can break."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from netwarp.core.outputs import placeholders
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.results.claims import flows_of, judge
from netwarp.results.run_results import Results

ROOT = Path(__file__).resolve().parents[3]
PAPERS = ("choi2009", "ha2005", "kim2002", "lee2008", "min2013")
DRAWS = 12
"""Orders of which each claim must fail one: a claim that half of them pass would pass them all once in 4096."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_every_claim_can_fail(name: str) -> None:
    """By some order of the same numbers among the cells, or where all are equal: a rule that all of them pass says
    nothing of what is measured.
    """
    plan = make_plan(load_spec(name), repetitions=1)
    claims = tuple(replace(claim, clock="any") for claim in plan.claims if not claim.condition and claim.tested)
    cells = tuple(replace(cell, random=False) for cell in plan.cells if not cell.repetition)
    plan = replace(plan, cells=cells, claims=claims)
    names = [cell.id for cell in cells]
    asked = {
        (flow, metric) for claim in claims for flow in flows_of(claim) for metric in (claim.metric, claim.metric_b)
    }
    outcomes = {cell: CellOutcome(Outcome.COMPLETED, "", None, 0.0) for cell in names}
    drawn = random.Random(20261129)
    numbers = [drawn.uniform(1, 2) for _ in names]
    always = {claim.id for claim in claims}
    for draw in range(DRAWS + 1):
        if not always:
            break
        some = numbers if draw else [1.0] * len(names)
        orders = {key: drawn.sample(some, len(names)) for key in sorted(asked)}
        measured = [
            Measurement(cell, *key, orders[key][at], "") for at, cell in enumerate(names) for key in sorted(asked)
        ]
        left = replace(plan, claims=tuple(claim for claim in claims if claim.id in always))
        judged = judge(Results(left, outcomes, measured))
        always &= {entry.claim.id for entry in judged if entry.verdict == "holds"}
    assert always == set()


@pytest.mark.parametrize("name", PAPERS)
def test_answers_are_made_from_claims(name: str) -> None:
    """Every statement of an answer names the claims that it is about."""
    spec = load_spec(name)
    items = re.split(r"\n\s*\n|\n(?=- )", (ROOT / "experiments" / name / "answer.md").read_text().strip())
    known = {claim.id for claim in spec.claims}
    assert spec.summary is not None
    for item in (*items, spec.summary.text):
        named = {field.claim for field in placeholders(item)} | set(
            re.findall(r"\b[A-Z]\d+[a-z]*(?:-\d+)?\b", item)
        ) & known
        assert named and named <= known, item


@pytest.mark.parametrize("name", PAPERS)
def test_a_word_says_where_its_bound_is_from(name: str) -> None:
    for word in load_spec(name).words:
        assert re.search(r"section|Table|abstract|Figure|shares|about", word.source), word
