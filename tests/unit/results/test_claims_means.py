"""Claims over several numbers, and over values that were drawn once."""

from __future__ import annotations

import random
import statistics
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.core.outputs import ClaimKind
from netwarp.plan import make_plan
from netwarp.results import Results, write_tables
from netwarp.results.contrasts import contrasts
from netwarp.results.run_results import RepeatedValue
from netwarp.results.verdicts import published
from support.cells import two_path_cell
from support.claims import FACTORS, OVER, claim, judged, plan_of, rows
from support.results_kit import LOSS
from support.run_files import rows as csv_rows
from support.specs import BASE, spec_of

A_B = 'a = { who = "a" }\nb = { who = "b" }\n'
BOUND = "expected = 0.5\ntolerance = 0.005\n"
MEAN = '[[claim]]\nid = "M"\ntext = "t"\nsource = "s"\nkind = "mean"\n'


def test_mean_gain_is_the_mean_of_the_ratios(tmp_path: Path) -> None:
    numbers = {"a": rows(2, 1, 3), "b": rows(1, 1, 2)}
    (found,) = judged(plan_of(tmp_path, claim("mean_gain", A_B + OVER + BOUND)), numbers)
    assert (found.verdict, found.measured) == ("holds", pytest.approx((1 + 0 + 0.5) / 3))
    (found,) = judged(plan_of(tmp_path, claim("gain", A_B + OVER + BOUND)), numbers)
    assert found.measured == pytest.approx(6 / 4 - 1), "the ratio of the sums is another number"
    (found,) = judged(plan_of(tmp_path, claim("mean_gain", A_B + OVER + "expected = 0.4\ntolerance = 0.05\n")), numbers)
    assert found.verdict == "does not hold"


def test_mean_greater_lets_one_level_make_up_for_another(tmp_path: Path) -> None:
    numbers = {"a": rows(2, 0.9, 1), "b": rows(1, 1, 1)}
    (found,) = judged(plan_of(tmp_path, claim("mean_greater", A_B + OVER + "tolerance = 0.1\n")), numbers)
    assert (found.verdict, found.measured) == ("holds", pytest.approx(0.3))
    (found,) = judged(plan_of(tmp_path, claim("greater", A_B + OVER + "tolerance = 0.1\n")), numbers)
    assert found.verdict == "does not hold"


def test_a_difference_is_judged_in_the_metrics_unit(tmp_path: Path) -> None:
    numbers = {"a": rows(4, 5, 6), "b": rows(1, 2, 4)}
    (found,) = judged(plan_of(tmp_path, claim("difference", A_B + OVER + "expected = 2.5\ntolerance = 0.5\n")), numbers)
    assert (found.verdict, found.measured) == ("holds", 3)
    (found,) = judged(plan_of(tmp_path, claim("difference", A_B + OVER + "expected = 3\ntolerance = 0.5\n")), numbers)
    assert (found.verdict, found.measured) == ("does not hold", 2)


def test_an_elasticity_is_taken_against_the_quantities_of_the_levels(tmp_path: Path) -> None:
    body = 'a = { who = "a" }\n' + OVER
    numbers = {"a": rows(1, 7, 9)}  # from 1 s to 3 s: as the square
    (found,) = judged(plan_of(tmp_path, claim("elasticity", body + "expected = 2\ntolerance = 0.01\n")), numbers)
    assert (found.verdict, found.measured, found.unit) == ("holds", pytest.approx(2), "ratio")
    (found,) = judged(plan_of(tmp_path, claim("elasticity", body + "expected = 1\ntolerance = 0.5\n")), numbers)
    assert found.verdict == "does not hold"
    with pytest.raises(SpecError, match="unlike quantities above 0"):
        plan_of(tmp_path, claim("elasticity", 'a = { x = "1 s" }\nover = { who = ["a", "b"] }\n' + BOUND))


@pytest.mark.parametrize("numbers", [(0, 7, 9), (1, 7, 0), (0, 7, 0), (-1, 7, 9), (-1, 7, -9)])
def test_an_elasticity_without_a_logarithm_is_inconclusive(tmp_path: Path, numbers: tuple[float, ...]) -> None:
    body = 'a = { who = "a" }\n' + OVER + "expected = 2\ntolerance = 0.01\n"
    (found,) = judged(plan_of(tmp_path, claim("elasticity", body)), {"a": rows(*numbers)})
    assert (found.verdict, found.measured) == ("inconclusive", None)
    assert found.reason == "a number to divide by, or to take the logarithm of, is 0"


def test_pooled_gain_takes_lists_as_one(tmp_path: Path) -> None:
    body = 'a = { who = "a" }\nb = [{ who = "b" }, { who = "c" }]\n' + OVER
    numbers = {"a": rows(3, 3, 3), "b": rows(1, 1, 1), "c": rows(3, 3, 3)}
    (found,) = judged(plan_of(tmp_path, claim("pooled_gain", body + BOUND)), numbers)
    assert (found.verdict, found.measured, found.unit) == ("holds", pytest.approx(0.5), "ratio")


def test_a_ratio_is_that_of_the_means_with_its_interval(tmp_path: Path) -> None:
    """Draws that do not belong together: here b's are a's in another order. The mean of their ratios is 1.03."""
    body = A_B + 'over = { x = ["1 s"] }\ntolerance = 0.05\n'
    numbers = {"a": [[10.0, 12.0, 14.0]] * 3, "b": [[12.0, 14.0, 10.0]] * 3}
    (found,) = judged(plan_of(tmp_path, claim("equal", body), 3, LOSS), numbers)
    # by hand: 3 * 1 - 2 * (12 + 14) / (14 + 10), ...
    pseudo = [3 - 2 * 26 / 24, 3 - 2 * 24 / 22, 3 - 2 * 22 / 26]
    mean = sum(pseudo) / 3
    assert found.measured == pytest.approx(mean - 1)
    assert found.verdict == "inconclusive"
    half = 4.303 * (sum((value - mean) ** 2 for value in pseudo) / 2 / 3) ** 0.5
    assert (found.low, found.high) == (pytest.approx(mean - 1 - half), pytest.approx(mean - 1 + half))


def drawn(draw: random.Random, size: float) -> RepeatedValue:
    """20 draws with a spread of 40 %."""
    values = {number: draw.gammavariate(6.25, size) for number in range(20)}
    return RepeatedValue((two_path_cell(),), values, "", failed=False)


@pytest.mark.parametrize(("kind", "sizes"), [("equal", (1,)), ("gain", (1, 1.5, 2)), ("mean_gain", (1, 1.5, 2))])
def test_an_interval_covers_its_number_as_often_as_it_says(kind: ClaimKind, sizes: tuple[float, ...]) -> None:
    """In about 95 of 100. An interval of the mean of each repetition's number has it in 89, 93 and 57."""
    draw = random.Random(5)
    covered = 0
    for _ in range(1000):
        a, b = ([drawn(draw, size) for size in sizes] for _ in "ab")
        (comparison,) = contrasts(kind, [a], [b])
        found = comparison.estimate()
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= 0 <= found.high
    assert 920 <= covered <= 975


@pytest.mark.parametrize("kind", ["equal", "gain", "mean_gain", "pooled_gain", "increasing", "constant", "elasticity"])
def test_no_number_is_one_that_cannot_be(tmp_path: Path, kind: str) -> None:
    """Rates of which some draws are near 0, as of a link that hardly works: none falls by more than 100 %, and no
    spread is below 0. A number of an inconclusive claim is that of the plain means.
    """
    draw = random.Random(11)
    alone = kind in ("increasing", "constant", "elasticity")
    bound = {"increasing": "", "constant": "tolerance = 0.1\n", "equal": "tolerance = 0.1\n"}.get(kind, BOUND)
    body = ('a = { who = "a" }\n' if alone else A_B) + OVER + bound
    plan = plan_of(tmp_path, claim(kind, body), 5, LOSS)
    least = {"constant": 0.0, "elasticity": float("-inf")}.get(kind, -1.0)
    unusable = 0
    for _ in range(60):
        numbers = {who: [[draw.gammavariate(0.3, 1) + 1e-6 for _ in range(5)] for _ in range(3)] for who in "ab"}
        (found,) = judged(plan, numbers)
        assert found.measured is not None
        assert found.measured >= least
        assert found.low is None or found.low >= least
        if "not usable" in found.reason:
            unusable += 1
            assert (found.verdict, found.low, found.high) == ("inconclusive", None, None)
    assert unusable or kind == "constant", "its interval is that of differences, over one mean of all"


def test_a_ratio_over_what_may_be_0_is_not_usable(tmp_path: Path) -> None:
    """kim2002's C22m, as ns-2: one draw of five carries the base. The jackknife says -181 %, which no rate can fall by;
    the ratio of the means is +16 %.
    """
    body = A_B + 'over = { x = ["1 s"] }\ntolerance = 0.05\n'
    numbers = {"a": [[500.0, 700.0, 600.0, 500.0, 551.5]] * 3, "b": [[10.0, 20.0, 1850.0, 5.0, 566.5]] * 3}
    (found,) = judged(plan_of(tmp_path, claim("equal", body), 5, LOSS), numbers)
    assert (found.verdict, found.low) == ("inconclusive", None)
    assert found.measured == pytest.approx(2851.5 / 2451.5 - 1)
    assert "not usable (the number to divide by may be 0: 490.3" in found.reason


def test_noise_alone_does_not_vary(tmp_path: Path) -> None:
    """Ten draws at each of three levels of one distribution (spread 5 %): the largest less the smallest of each draw is
    8 % on the mean. Said to vary by more than 1 % in about one of forty, and not to be constant within 5 % in as few.
    """
    draw = random.Random(7)
    both = claim("varies", 'a = { who = "a" }\n' + OVER + "tolerance = 0.01\n")
    both += claim("constant", 'a = { who = "a" }\n' + OVER + "tolerance = 0.05\n", "C2")
    plan = plan_of(tmp_path, both, 10, LOSS)
    wrong = [0, 0]
    for _ in range(100):
        found = judged(plan, {"a": [[draw.gauss(1, 0.05) for _ in range(10)] for _ in range(3)]})
        wrong[0] += found[0].verdict == "holds"
        wrong[1] += found[1].verdict == "does not hold"
    assert max(wrong) <= 7


def test_a_range_has_the_interval_of_its_farthest_pairs(tmp_path: Path) -> None:
    """By hand: means 10, 11 and 14. Between the second and the third the draws differ by 5, 3 and 1, which reaches
    farthest up; between the first and the third by 4.0, 4.1 and 3.9, which stays farthest from 0.
    """
    body = 'a = { who = "a" }\n' + OVER + "tolerance = 0.6\n"
    numbers = {"a": [[11.0, 10.0, 9.0], [10.0, 11.0, 12.0], [15.0, 14.1, 12.9]]}
    (found,) = judged(plan_of(tmp_path, claim("constant", body), 3, LOSS), numbers)
    mean = 35 / 3
    assert found.measured == pytest.approx(4 / mean)
    # gaps of 5, 3.1 and 0.9, and of 4, 4.1 and 3.9; Student's t of 2 degrees at 5 %, and at a third of that
    assert found.high == pytest.approx((3 + 4.3027 * statistics.stdev([5, 3.1, 0.9]) / 3**0.5) / mean, rel=1e-4)
    assert found.low == pytest.approx((4 - 7.6488 * 0.1 / 3**0.5) / mean, rel=1e-4)
    assert found.verdict == "inconclusive"


def test_a_ratio_has_a_number_where_a_draw_is_0(tmp_path: Path) -> None:
    """In one draw b is 0, too: that draw has no quotient, the means have one. a is always 0: less by all of it."""
    body = A_B + 'over = { x = ["1 s"] }\n'
    numbers = {"a": [[0.0, 0.0, 0.0]] * 3, "b": [[2.0, 0.0, 1.0]] * 3}
    (found,) = judged(plan_of(tmp_path, claim("less", body), 3, LOSS), numbers)
    assert (found.verdict, found.measured, found.expected) == ("holds", -1, "< 0")
    (found,) = judged(plan_of(tmp_path, claim("greater", body), 3, LOSS), numbers)
    assert (found.verdict, found.measured, found.expected) == ("does not hold", -1, "> 0")
    (found,) = judged(plan_of(tmp_path, claim("less", body), 3, LOSS), numbers | {"b": [[0.0, 0.0, 0.0]] * 3})
    assert (found.verdict, found.measured) == ("inconclusive", None)


def test_a_ratio_of_what_is_not_random_is_that_of_one_run(tmp_path: Path) -> None:
    body = A_B + OVER + "tolerance = 0.5\n"
    numbers = {"a": rows(3, 3, 3), "b": rows(2, 4, 3)}
    (found,) = judged(plan_of(tmp_path, claim("equal", body)), numbers)
    assert (found.verdict, found.measured, found.reason) == ("holds", pytest.approx(0.5), "deterministic, n = 1")


def test_mean_of_claims_also_under_other_conditions(tmp_path: Path) -> None:
    at = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\nalso = [{ x = "2 s" }]\n' + BOUND
    other = 'a = { who = "c", x = "1 s" }\nb = { who = "b", x = "1 s" }\nalso = [{ x = "2 s" }]\n' + BOUND
    mean = MEAN + 'of = ["C1", "C2"]\nexpected = 2\ntolerance = 0.1\nalso = [{ x = "2 s" }]\n'
    plan = plan_of(tmp_path, claim("gain", at) + claim("gain", other, "C2") + mean)
    found = {one.claim.name: one for one in judged(plan, {"a": rows(2, 3, 0), "b": rows(1, 1, 1), "c": rows(4, 2, 0)})}
    assert (found["M"].verdict, found["M"].measured) == ("holds", pytest.approx(2.0))
    assert (found["M x=2 s"].verdict, found["M x=2 s"].measured) == ("does not hold", pytest.approx(1.5))
    found = {one.claim.name: one for one in judged(plan, {"a": rows(2, 3, 0), "b": rows(1, 1, 1)})}
    assert found["M"].verdict == "inconclusive", "a number of one of its claims is missing"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (MEAN + "expected = 1\ntolerance = 0.1\n", 'its of is missing; for example of = ["C17", "C23"]'),
        (MEAN + "of = []\nexpected = 1\ntolerance = 0.1\n", 'is empty; for example ["C17", "C23"]'),
        (MEAN + 'of = ["C9"]\nexpected = 1\ntolerance = 0.1\n', '"C9" is no claim of kind gain, mean_gain or'),
        (MEAN + 'of = ["C1"]\ntolerance = 0.1\n', 'kind "mean" needs expected = a number'),
        (MEAN + 'of = ["C1"]\nexpected = 1\n', 'kind "mean" needs its tolerance'),
        (MEAN + 'of = ["C1"]\nmetric = "packets"\nexpected = 1\ntolerance = 1\n', "takes this from the claims"),
        (claim("gain", A_B + OVER + BOUND + 'of = ["C2"]\n', "C3"), 'only kind "mean" is of other claims, not "gain"'),
    ],
)  # fmt: skip
def test_mistakes_in_means(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(SpecError) as caught:
        spec_of('expected = "claims.toml"\n' + BASE + FACTORS, tmp_path)
    (line,) = [line for line in str(caught.value).splitlines() if says in line]
    assert "claims.toml:" in line


# -- one draw


REPEAT = '[experiment.x]\nfactors = ["x", "who"]\nrepetitions = 1\n'
"""`who` = c is repeated by another experiment, listed first."""
TWICE = '[experiment.c]\nfactors = ["x"]\nfixed = { who = "c" }\nrepetitions = 2\n'


@pytest.mark.parametrize(
    ("drawn", "verdict"),
    [
        (1.3, "holds"),  # 30 % ahead; what was repeated differs by 10 %
        (1.15, "inconclusive"),  # both 10 % off: 0.9 * 1.15 / 1.1 < 1
        (0.7, "does not hold"),
    ],
)
def test_one_draw_decides_if_no_other_draw_seen_would_change_it(tmp_path: Path, drawn: float, verdict: str) -> None:
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'
    (tmp_path / "claims.toml").write_text(claim("greater", body))
    text = 'expected = "claims.toml"\n' + BASE + LOSS + FACTORS + TWICE + REPEAT
    plan = make_plan(spec_of(text, tmp_path))
    assert len(plan.cells) == 3 * 2 + 3 * 2
    steady, spread = [[1.0]] * 3, [[0.95, 1.05]] * 3
    (found,) = judged(plan, {"a": [[drawn]] * 3, "b": steady, "c": spread})
    assert (found.verdict, found.measured) == (verdict, pytest.approx(drawn - 1))
    assert found.reason.startswith("one draw, no interval of its own: ")
    assert "if every drawn number were 10.00% off, a spread borrowed from c_1s_r0_" in found.reason
    assert "(the widest of 3 repeated of its kind;" in found.reason


@pytest.mark.parametrize(
    "body",
    [
        'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n',
        'a = { who = "a" }\n' + OVER + "expected = 2\ntolerance = 0.01\n",
    ],
    ids=["greater", "elasticity"],
)
@pytest.mark.parametrize("other", [3.0, 9.0], ids=["100 % off", "160 % off"])
def test_one_draw_that_could_be_0_is_inconclusive(tmp_path: Path, body: str, other: float) -> None:
    """What was repeated differs by 100 % or more: with that, the number to divide by could be 0."""
    kind = "elasticity" if "expected" in body else "greater"
    (tmp_path / "claims.toml").write_text(claim(kind, body))
    plan = make_plan(spec_of('expected = "claims.toml"\n' + BASE + LOSS + FACTORS + TWICE + REPEAT, tmp_path))
    (found,) = judged(plan, {"a": rows(1, 4, 9), "b": rows(1, 1, 1), "c": [[1.0, other]] * 3})
    assert found.verdict == "inconclusive"
    assert found.measured is not None
    assert found.reason.startswith("one repetition of cells that are random")


def test_both_numbers_of_a_quotient_are_moved_at_once(tmp_path: Path) -> None:
    """0.55 * 1.3 / 0.7 is above 1, although 0.55 * 1.3 / 1 and 0.55 / 0.7 together raise 0.55 by less than that."""
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'
    (tmp_path / "claims.toml").write_text(claim("less", body))
    plan = make_plan(spec_of('expected = "claims.toml"\n' + BASE + LOSS + FACTORS + TWICE + REPEAT, tmp_path))
    (found,) = judged(plan, {"a": [[0.55]] * 3, "b": [[1.0]] * 3, "c": [[0.85, 1.15]] * 3})
    assert found.verdict == "inconclusive"
    assert " to 2.143 % if every drawn number were 30.00% off" in found.reason


def test_one_draw_of_another_kind_says_nothing(tmp_path: Path) -> None:
    """What is repeated has other sysctls: its spread is its own. And 0 is moved by the distance, not by a share."""
    body = 'a = { who = "a", x = "1 s" }\nexpected = 0\ntolerance = 0\n'
    (tmp_path / "claims.toml").write_text(claim("value", body))
    text = 'expected = "claims.toml"\n' + BASE + LOSS + FACTORS
    other = '[factor.who.level.c]\nnode.a.sysctl = { "net.ipv4.tcp_sack" = "0" }\n'
    numbers = {"a": rows(0, 1, 1), "b": rows(1, 1, 1), "c": [[0.0, 1.0]] * 3}
    (found,) = judged(make_plan(spec_of(text + other + TWICE + REPEAT, tmp_path)), numbers)
    assert (found.verdict, found.reason.partition(";")[0]) == (
        "inconclusive",
        "one repetition of cells that are random",
    )
    (found,) = judged(make_plan(spec_of(text + TWICE + REPEAT, tmp_path)), numbers)
    assert found.verdict == "inconclusive"
    assert "no interval of its own: -1 to 1 if" in found.reason
    (found,) = judged(make_plan(spec_of(text + TWICE + REPEAT, tmp_path)), numbers | {"c": [[0.0, 0.0]] * 3})
    assert found.verdict == "holds"


def test_one_draw_alone_decides_nothing(tmp_path: Path) -> None:
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'
    (found,) = judged(plan_of(tmp_path, claim("greater", body), more=LOSS), {"a": rows(9, 9, 9), "b": rows(1, 1, 1)})
    assert (found.verdict, found.reason) == (
        "inconclusive",
        "one repetition of cells that are random; --repetitions 5 or more decides",
    )


def test_deterministic_cells_stand_for_every_seed(tmp_path: Path) -> None:
    """TCP once (nothing random in it), SCTP through a fault three times: compared over all three."""
    body = 'a = { who = "a", x = "1 s" }\nb = { who = "b", x = "1 s" }\n'
    (tmp_path / "claims.toml").write_text(claim("greater", body))
    sctp = '[factor.who.level.a]\nflow.f.protocol = "sctp"\n[event.e]\naction = "cut"\n'
    sctp += 'link = "p1"\nat = "2 s"\nfor = "1 s"\n'
    text = 'expected = "claims.toml"\n' + BASE + FACTORS + sctp
    text += '[experiment.x]\nfactors = ["x", "who"]\nrepetitions = 3\nrepeat = "random"\n'
    plan = make_plan(spec_of(text, tmp_path))
    assert {cell.repetition for cell in plan.cells if cell.factors["who"] == "b"} == {0}
    assert {cell.repetition for cell in plan.cells if cell.factors["who"] == "a"} == {0, 1, 2}
    assert plan.repetitions == 3
    (found,) = judged(plan, {"a": [[2.0, 2.1, 2.2]] * 3, "b": rows(1, 1, 1)})
    assert (found.verdict, found.measured) == ("holds", pytest.approx(1.1))
    assert "n = 3" in found.reason
    assert len(make_plan(spec_of(text, tmp_path), repetitions=2).cells) == 9 * 2, "--repetitions is for every cell"


def test_claims_stand_beside_verdicts_on_published_numbers(tmp_path: Path) -> None:
    body = 'a = { who = "a" }\nb = { who = "b" }\n' + OVER + BOUND
    source = '[source.paper]\ntitle = "P"\n[source.other]\ntitle = "O"\n'
    numbers = {("paper", "a"): (2, 3, 4), ("paper", "b"): (1, 2, 3), ("other", "a"): (1, 1, 1)}
    lines = [f"{s},packets,{who},{n} s,{v}\n" for (s, who), three in numbers.items() for n, v in enumerate(three, 1)]
    (tmp_path / "published.csv").write_text("source,metric,who,x,value\n" + "".join(lines))
    (tmp_path / "claims.toml").write_text(source + claim("gain", body))
    plan = make_plan(
        spec_of('expected = "claims.toml"\npublished = "published.csv"\n' + BASE + LOSS + FACTORS, tmp_path),
        repetitions=2,
    )
    others = published(plan)
    found = {source: {name: one.measured for name, one in there.items()} for source, there in others.items()}
    assert found == {"paper": {"C1": pytest.approx(9 / 6 - 1)}, "other": {}}, "as printed, without an interval"
    write_tables(Results(plan, {}, []), tmp_path / "tables")
    (row,) = csv_rows(tmp_path / "tables" / "claims.csv")
    assert (row["paper"], row["other"]) == ("0.5", "")
