"""Messages drawn from the seed: their laws, and that what is drawn does not depend on anything else."""

from __future__ import annotations

import itertools
import math
import random
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.messages import US, Law, Messages, message_rows

S = 10**9
FIXED = Law("fixed", 100.0)
LAWS = [
    Law("fixed", 50e6),
    Law("uniform", 20e6, 80e6),
    Law("exponential", 50e6),
    Law("lognormal", 50e6, 0.5),
    Law("pareto", 10e6, 2.5),
]


def poisson(seed: int = 7, flow: str = "n2", **more: object) -> list[tuple[int, int, int]]:
    messages = Messages("gaps", more.pop("sizes", FIXED), 10_000, wait=Law("exponential", 50e6), **more)  # type: ignore[arg-type]
    return message_rows(messages, seed, flow, 1000 * S)


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.kind)
def test_a_law_has_its_mean_and_its_distribution(law: Law) -> None:
    """Against the formulas of the laws (median, quantiles), with five standard errors of 20,000 draws."""
    values = list(itertools.islice(law.draws(random.Random(1)), 20_000))
    spread = statistics.pstdev(values)
    assert statistics.fmean(values) == pytest.approx(law.mean, abs=5 * spread / math.sqrt(len(values)) + 1e-9)
    below = sum(value <= law.scale for value in values) / len(values)
    share = {
        "fixed": 1.0, "uniform": 0.0, "exponential": 1 - math.exp(-1), "lognormal": 0.5, "pareto": 0.0,
    }  # fmt: skip
    assert below == pytest.approx(share[law.kind], abs=5 * 0.5 / math.sqrt(len(values)))


def test_poisson_messages_are_a_poisson_process() -> None:
    """20 a second for 1000 s; counts in windows of a second have their mean as variance."""
    times = [at for at, _, _ in poisson()]
    assert len(times) == pytest.approx(20_000, abs=5 * math.sqrt(20_000))
    counts = [0] * 1000
    for at in times:
        counts[at // S] += 1
    assert statistics.pvariance(counts) == pytest.approx(20, rel=0.25)
    assert all(at % US == 0 for at in times)


def test_what_is_drawn_follows_from_seed_and_flow_alone() -> None:
    """Times do not change with the sizes, the protocol or the streams: variants meet the same arrivals."""
    rows = poisson()
    assert poisson() == rows
    assert [row[0] for row in poisson(sizes=Law("pareto", 100.0, 1.3), streams=3)] == [row[0] for row in rows]
    assert [row[2] for row in poisson(streams=3)][:4] == [0, 1, 2, 0]
    assert poisson(seed=8) != rows
    assert poisson(flow="n2.back") != rows
    # of this version and of all later ones: a changed draw would be another experiment under the same seed
    assert rows[:3] == [(7288000, 100, 0), (21252000, 100, 0), (79319000, 100, 0)]


def test_pauses_stand_between_the_messages() -> None:
    """Voice: on for 1 s, off for 1.35 s on the mean: 42.6 % of the time; within a talkspurt 20 ms apart."""
    messages = Messages(
        "gaps", FIXED, 200, wait=Law("fixed", 20e6), on=Law("exponential", 1e9), off=Law("exponential", 1.35e9)
    )
    rows = message_rows(messages, 3, "voice", 2000 * S)
    gaps = [two[0] - one[0] for one, two in itertools.pairwise(rows)]
    assert min(gaps) == 20_000_000
    assert len(rows) * 0.020 / 2000 == pytest.approx(1 / 2.35, rel=0.1)
    assert messages.count(2000 * S) == pytest.approx(len(rows), rel=0.1)


@given(st.sampled_from(LAWS), st.sampled_from(LAWS), st.integers(1, 5), st.integers(1, 4), st.integers(0, 2**53))
@settings(max_examples=40)
def test_every_list_is_one_that_the_programs_take(wait: Law, size: Law, burst: int, streams: int, seed: int) -> None:
    sizes = Law(size.kind, size.scale / 1e4, size.shape / 1e4 if size.kind == "uniform" else size.shape)
    messages = Messages("gaps", sizes, 3000, streams, wait, burst)
    rows = message_rows(messages, seed, "x", 5 * S)
    assert all(one[0] <= two[0] for one, two in itertools.pairwise(rows))
    assert all(0 < at < 5 * S and 1 <= size <= 3000 and stream < streams for at, size, stream in rows)
    assert len(rows) % burst == 0
