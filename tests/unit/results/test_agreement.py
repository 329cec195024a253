"""The same numbers on two back ends: agree, differ, or unclear."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import pytest
from netwarp.core.types import CellOutcome, Outcome
from netwarp.engine.compare import same_repetition
from netwarp.measure.first_divergence import Divergence
from netwarp.present.comparison_words import levels_words, sentences
from netwarp.present.pages.comparison import comparison_page
from netwarp.results import Results
from netwarp.results.compared_numbers import ComparedNumber, Comparison, Moved, agree, compare
from netwarp.results.run_comparison import CellPair, RunComparison
from netwarp.results.tolerance import Circumstances, tolerance
from support.report_kit import side_of
from support.results_kit import ONE_LEVEL, one_factor_run

LATE_S = 0.01
OUTAGE = '[event.outage]\naction = "cut"\nlink = "p1"\nat = "2 s"\nfor = "1 s"\n'


def run(values: Sequence[float | None], **more: Any) -> Results:
    """A run whose k-th repetition measured the k-th value."""
    return one_factor_run(values, levels=ONE_LEVEL, **more)


def one(a: Results, b: Results, metric: str = "packets", lateness_s: float = LATE_S) -> ComparedNumber:
    return next(number for number in agree(a, b, lateness_s).numbers if number.metric == metric)


def test_deterministic_numbers_agree_within_their_bound() -> None:
    exact = run([1000.0], random=False)
    found = one(exact, run([1000.0, 1001.0, 1001.0], random=False))
    assert found.verdict == "agree"
    assert found.low is not None and found.high is not None
    assert found.low <= 2 / 3 <= found.high
    assert one(exact, run([1100.0, 1101.0, 1101.0], random=False)).verdict == "differ"
    # the interval reaches over the bound, the difference does not lie beyond it by more than chance
    assert one(exact, run([1000.0, 1010.0, 1020.0], random=False)).verdict == "unclear"


def test_either_side_may_be_the_one_with_the_repetitions() -> None:
    many, exact = run([1000.0, 1001.0, 1001.0], random=False), run([1000.0], random=False)
    assert one(many, exact).verdict == one(exact, many).verdict == "agree"
    assert one(many, run([1100.0], random=False)).verdict == "differ"


def test_one_draw_of_the_wall_clock_may_agree_and_cannot_differ() -> None:
    a = run([1000.0], random=False)
    assert one(a, run([1001.0], random=False)).verdict == "agree"
    assert one(a, run([1100.0], random=False)).verdict == "unclear"
    # in virtual time on both sides there is nothing else to see
    assert one(a, run([1100.0], random=False), lateness_s=2e-6).verdict == "differ"


def test_random_draws_agree_differ_or_are_too_few() -> None:
    draws = [100.0, 104.0, 96.0, 102.0, 98.0, 101.0, 99.0, 103.0, 97.0, 100.0]
    same = one(run(draws), run([value + 0.2 for value in reversed(draws)], seed=50))
    assert same.verdict == "agree"
    assert same.bound == pytest.approx(2 + statistics.stdev(draws), rel=0.05)
    assert one(run(draws), run([value + 20 for value in draws], seed=50)).verdict == "differ"
    assert one(run(draws[:1]), run([130.0], seed=50)).verdict == "unclear"


def test_a_few_equal_draws_prove_nothing() -> None:
    """Three against three, equal within and far apart: shuffled, that is one in ten."""
    assert one(run([10.0] * 3), run([50.0] * 3, seed=9)).verdict == "unclear"
    assert one(run([10.0] * 5), run([50.0] * 5, seed=9)).verdict == "differ"


def test_equal_seeds_meet_equal_losses_and_are_held_pair_by_pair() -> None:
    """A step of 4 in every pair, in values that differ by hundreds between the seeds."""
    values = [100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0, 800.0]
    shifted = [value + 4 + 0.1 * (number % 2) for number, value in enumerate(values)]
    paired, apart = one(run(values), run(shifted)), one(run(values), run(shifted, seed=50))
    assert paired.low is not None
    assert apart.low is not None
    assert paired.low > 3.9
    assert apart.low < 0
    assert paired.verdict == "agree", "the bound is the spread between seeds"
    # one of the pairs is broken: its other half would shift the mean by tens
    broken = one(run(values), run([None, *shifted[1:]]))
    assert broken.draws == (7, 7)
    assert broken.low is not None and broken.high is not None
    assert broken.difference is not None
    assert broken.low <= broken.difference <= broken.high < 5


def test_false_discoveries_are_held_metric_by_metric() -> None:
    """One metric far off in its place is found, however many numbers of other metrics are alike."""
    others = {f"m{number}": 1.0 for number in range(400)}
    a = run([1000.0], random=False, others=others)
    b = run([1100.0, 1104.0, 1096.0], random=False, others=others)
    assert one(a, b).verdict == "differ"
    assert sum(number.verdict == "differ" for number in agree(a, b, LATE_S).numbers) == 1


def test_a_number_that_only_one_side_has() -> None:
    assert one(run([10.0, 11.0]), run([None, None], seed=9)).verdict == "differ"
    assert one(run([10.0, None]), run([None, None], seed=9)).verdict == "not comparable"
    failed = run([10.0, 11.0], seed=9)
    outcomes = {name: CellOutcome(Outcome.INVALID, "late", 1.0, 1.0) for name in failed.outcomes}
    assert one(run([10.0, 11.0]), Results(failed.plan, outcomes, [])).verdict == "not comparable"


def test_a_value_that_the_clocks_of_two_machines_took_away_is_not_comparable() -> None:
    a, b = run([10.0, 11.0]), run([None, None], seed=9)
    lost = {(b.plan.cells[0].id, "f", "packets")}
    (number,) = agree(a, b, LATE_S, lost).numbers
    assert (number.verdict, number.a, number.b) == ("not comparable", 10.5, None)
    other = {(b.plan.cells[0].id, "f", "outage_s"), ("another cell", "f", "packets")}
    assert agree(a, b, LATE_S, other).numbers[0].verdict == "differ"


def test_cpu_time_says_something_of_a_machine_and_is_not_compared() -> None:
    a = run([1e-8, 1.1e-8], metric="sender_cpu_per_byte_s", unit="s")
    b = run([9e-8, 9.1e-8], metric="sender_cpu_per_byte_s", unit="s", seed=9)
    found = one(a, b, "sender_cpu_per_byte_s")
    assert (found.verdict, found.a, found.b) == ("not comparable", 1.05e-8, 9.05e-8)
    own = '[metric.per_bit]\nvalue = "sender_cpu_per_byte_s / 8"\nunit = "s"\n'
    sides = [run([value, 1.1 * value], metric="per_bit", unit="s", more=own) for value in (1e-9, 9e-9)]
    assert one(*sides, "per_bit").verdict == "not comparable"


def at(fault_s: float = 0.0, silence_s: float = 0.0) -> Circumstances:
    return Circumstances(
        lateness_s=LATE_S, fault_s=fault_s, silence_s=silence_s, window_s=100.0, packets=1000.0, acks=500.0,
        mtu_bytes=1500, sample_s=0.1, own={"own_s": "cwnd_window_time_s + 1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("metric", "unit", "value", "fault_s", "silence_s", "bound"),
    [
        ("completion_time_s", "s", 50.0, 0.0, 0.0, 0.02),
        ("outage_s", "s", 11.0, 10.0, 11.0, 0.02 + 11 * 8 / 63),
        ("recovery_time_s", "s", 1.0, 10.0, 11.0, 0.02 + 11 * 8 / 63),
        ("goodput_bit_s", "bit/s", 5e5, 0.0, 0.0, 5e5 * (0.0002 + 0.002)),
        ("goodput_bit_s", "bit/s", 5e5, 10.0, 6.3, 5e5 * (0.82 / 100 + 0.002)),
        ("packets", "packets", 1000.0, 10.0, 6.3, 2 + 1000 * 0.82 / 100),
        ("sacks_other_path_ratio", "ratio", 0.0, 0.0, 0.0, 2 / 500),
        ("cwnd_end_bytes", "bytes", 0.0, 0.0, 0.0, 1500.0),
        ("own_s", "s", 3.0, 0.0, 0.0, 0.02 + 0.1),
        ("srtt_s", "s", 1.0, 10.0, 6.3, 0.02 + 0.82 / 100),
        ("rtt_mean_s", "s", 1.0, 10.0, 6.3, 0.02 + 0.82 / 100),  # a mean of delays
        ("first_timeout_s", "s", 1.0, 10.0, 6.3, 0.02 + 8 / 63),  # a timer decides it
    ],
)
def test_a_bound_is_what_may_shift(
    metric: str, unit: str, value: float, fault_s: float, silence_s: float, bound: float
) -> None:
    assert tolerance(metric, unit, value, at(fault_s, silence_s), None).bound == pytest.approx(bound)
    assert tolerance(metric, unit, value, at(fault_s, silence_s), 3.0).bound == pytest.approx(bound + 3)


def test_the_silence_of_either_side_widens_the_bounds() -> None:
    a = run([1000.0] * 2, random=False, more=OUTAGE, others={"outage_s": 2.0})
    b = run([1000.0, 1001.0], random=False, more=OUTAGE, others={"outage_s": 4.0})
    cell = a.plan.cells[0]
    window_s = (cell.flows[0].stop_ns or cell.duration_ns) / 1e9
    assert one(a, b).bound == pytest.approx(2 + 1000.5 * (2 * LATE_S + 4 * 8 / 63) / window_s)


def agreement() -> Comparison:
    return agree(run([1000.0], random=False), run([1100.0, 1101.0, 1101.0], random=False), LATE_S)


def test_sentences_and_rows_of_an_agreement() -> None:
    found = agreement()
    assert found.differs
    said = sentences(found, ["virtual", "guest"])
    assert said[0].startswith("1 number at 1 combination of levels compared: 0 agree within their bounds, 1 differ")
    assert "Metrics with differences beyond their bounds that chance does not explain: packets (1)." in said
    rows = found.rows()
    row = dict(zip(rows.header, rows.rows[0], strict=True))
    assert (row["x"], row["metric"], row["verdict"]) == ("1 s", "packets", "differ")
    assert row["difference"] == pytest.approx(100.667, abs=0.01)
    assert row["low"] < row["difference"] < row["high"]
    assert levels_words(found.numbers[0].levels) == "1 s"


def test_the_page_escapes_what_it_is_given() -> None:
    side = side_of("<b>virtual", title="<u>title", part="everything", outcomes="1 COMPLETED", again=("<i>late",))
    found = agreement()
    divergences = {found.numbers[0].levels: (Divergence("<script>alert(1)</script>", 1, None, None),)}
    page = comparison_page(RunComparison(side, side, numbers=found, divergences=divergences)).decode()
    assert "<script" not in page
    assert "&lt;u&gt;title" in page
    assert "&lt;b&gt;virtual" in page
    assert "&lt;i&gt;late" in page
    assert "First different packets" in page
    assert page.count("<circle") == len(found.numbers)
    assert 'src="' not in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_page_of_what_changed_has_no_bounds() -> None:
    a, b = side_of("A"), side_of("B")
    numbers = compare(run([1000.0], random=False), run([1100.0], random=False))
    pairs = (CellPair("x", "x", "equal"), CellPair("y", "y", "differ"), CellPair("z", None, "only in A"))
    page = comparison_page(RunComparison(a, b, (Moved("seed", "<1", "2"),), pairs, numbers)).decode()
    assert "What changed from A to B?" in page
    assert "2 cells are in both runs; the captures of 1 are equal byte for byte." in page
    assert "&lt;1" in page and "1 changed" in page
    assert "<circle" not in page and "How the bounds are computed" not in page


def test_packets_are_held_against_those_of_the_same_repetition() -> None:
    """Each side's first completed one may be another: another seed, other losses."""
    a, b = run([1.0, 2.0, 3.0]).plan.cells, run([1.0, 2.0, 3.0]).plan.cells
    pair = same_repetition(a[1:], b)
    assert pair is not None and [cell.repetition for cell in pair] == [1, 1]
    assert same_repetition(a[:1], b[1:]) is None
    assert same_repetition((), b) is None
    exact = run([1.0, 1.0], random=False).plan.cells
    assert same_repetition(exact[:1], exact[1:]) == (exact[0], exact[1]), "nothing in them is random"
