"""Verdicts of claims: classes, what the paper's own numbers refute, columns of other levels, words and amendments."""

from __future__ import annotations

import functools
import math
import random
from pathlib import Path

import pytest
from netwarp import claims_by_sources
from netwarp.core.errors import SpecError
from netwarp.core.outputs import Overlap
from netwarp.core.types import Measurement
from netwarp.engine.claim_sources import ClaimsBySources
from netwarp.plan import make_plan
from netwarp.results import Decided, Results, decide
from support.results_kit import completed
from support.specs import BASE, spec_of

HEAD = '[source.paper]\nkind = "paper"\n[source.sim]\nkind = "simulator"\n'
PAPER = 'class = "conclusion"\npaper = { ko = "가", en = "a beats b" }\n'
FACTORS = """\
[factor.who]
levels = ["a", "b"]
[factor.who.level.b]
link.p1.queue = "51 packets"
[factor.stack]
usual = "today"
levels = ["today", "era"]
[factor.stack.level.era]
node.a.sysctl = { "net.ipv4.tcp_sack" = "0" }
"""
ERA = '[column.era]\ntitle = "as then"\nwhere = { stack = "era" }\n'


def claim(more: str = PAPER, name: str = "C1", kind: str = "greater") -> str:
    head = f'[[claim]]\nid = "{name}"\ntext = "t"\nsource = "s"\nkind = "{kind}"\nmetric = "packets"\n'
    return head + 'a = { who = "a" }\nb = { who = "b" }\n' + more


def decided(folder: Path, claims: str, printed: dict[str, tuple[float, float]]) -> tuple[Decided, ...]:
    """printed: source -> the numbers of a and b. Measured are 3 and 2 today, 2 and 2 with the stack of the era."""
    rows = [f"{s},packets,{who},{value}\n" for s, two in printed.items() for who, value in zip("ab", two, strict=True)]
    (folder / "published.csv").write_text("source,metric,who,value\n" + "".join(rows))
    (folder / "claims.toml").write_text(claims)
    text = 'expected = "claims.toml"\npublished = "published.csv"\n' + BASE + FACTORS
    plan = make_plan(spec_of(text, folder))
    numbers = {("a", "today"): 3.0, ("b", "today"): 2.0, ("a", "era"): 2.0, ("b", "era"): 2.0}
    values = [
        Measurement(cell.id, "f", "packets", numbers[cell.factors["who"], cell.factors["stack"]], "packets")
        for cell in plan.cells
    ]
    return decide(Results(plan, completed(plan), values))


def decided_by(folder: Path, claims: str) -> Decided:
    """The first claim, by the published numbers of numbers.csv; nothing is measured."""
    (folder / "claims.toml").write_text(claims)
    text = 'expected = "claims.toml"\npublished = "numbers.csv"\n' + BASE + FACTORS
    plan = make_plan(spec_of(text, folder))
    return decide(Results(plan, completed(plan), ()))[0]


def test_a_claim_that_the_papers_numbers_refute_says_so_and_keeps_what_was_measured(tmp_path: Path) -> None:
    (one,) = decided(tmp_path, HEAD + claim(), {"paper": (1, 2), "sim": (2, 1)})
    assert one.verdict == "its own source refutes it"
    assert (one.own.verdict, one.own.measured) == ("holds", 0.5)
    assert (one.sources["paper"].verdict, one.sources["paper"].measured) == ("does not hold", -0.5)
    assert one.sources["sim"].verdict == "holds"


def test_a_simulator_refutes_no_paper_and_an_own_check_has_no_source(tmp_path: Path) -> None:
    both = HEAD + claim() + claim("", "O1")
    first, own = decided(tmp_path, both, {"sim": (1, 2)})
    assert (first.verdict, own.verdict) == ("holds", "holds")
    _, own = decided(tmp_path, both, {"paper": (1, 2)})
    assert (own.own.claim.claim_class, own.verdict) == ("own", "holds")


@pytest.mark.parametrize(("a", "verdict"), [(1.2, "holds"), (1.05, "weaker, same direction"), (1.0, "does not hold")])
def test_a_lead_below_its_word_is_weaker_in_the_same_direction(tmp_path: Path, a: float, verdict: str) -> None:
    text = claim(PAPER + "tolerance = 0.1\n")
    (one,) = decided(tmp_path, HEAD + text, {"paper": (a, 1)})
    assert one.sources["paper"].verdict == verdict


@pytest.mark.parametrize(("a", "verdict"), [(1.4, "holds"), (1.2, "weaker, same direction"), (0.9, "does not hold")])
def test_a_gain_below_its_number_is_weaker_in_the_same_direction(tmp_path: Path, a: float, verdict: str) -> None:
    text = claim(PAPER + "expected = 0.4\ntolerance = 0.05\n", kind="gain")
    (one,) = decided(tmp_path, HEAD + text, {"paper": (a, 1)})
    assert one.sources["paper"].verdict == verdict


def test_a_check_of_our_own_has_no_third_word(tmp_path: Path) -> None:
    (one,) = decided(tmp_path, HEAD + claim("tolerance = 0.1\n"), {"paper": (1.05, 1)})
    assert one.sources["paper"].verdict == "does not hold"


@pytest.mark.parametrize(("a", "refuted"), [(0.030, False), (0.031, False), (0.029, True)])
def test_no_number_that_prints_alike_is_a_refutation(tmp_path: Path, a: float, refuted: bool) -> None:
    """0.030 against 0.031: cut or rounded, the first may be the larger."""
    entries = [f"paper,packets,{who},{value},0.001\n" for who, value in (("a", a), ("b", 0.031))]
    (tmp_path / "numbers.csv").write_text("source,metric,who,value,digit\n" + "".join(entries))
    one = decided_by(tmp_path, HEAD + claim())
    assert (one.verdict == "its own source refutes it") is refuted


@pytest.mark.parametrize("kind", ["greater", "less", "equal", "gain", "mean_greater", "value", "increasing"])
def test_what_a_source_prints_is_not_refuted_by_its_own_rounding(kind: str, tmp_path: Path) -> None:
    """Numbers are drawn, the claim is true of them, and what is printed is rounded or cut: never a contradiction."""
    drawn = random.Random(7829)
    for case in range(20):
        low, high = sorted(drawn.uniform(0.01, 0.03) for _ in range(2))
        a, b = (low, high) if kind == "less" else (high, low)
        cut = drawn.random() < 0.5
        printed = [math.floor(x / 0.001 + (0 if cut else 0.5)) * 0.001 for x in (a, b)]
        more = {
            "equal": f"tolerance = {abs(a / b - 1) + 1e-9}\n",
            "gain": f"expected = {a / b - 1}\ntolerance = 1e-9\n",
            "value": f"expected = {a}\ntolerance = 1e-9\n",
            "increasing": 'over = { who = ["b", "a"] }\n',
        }.get(kind, "")
        head = f'[[claim]]\nid = "C1"\ntext = "t"\nsource = "s"\nkind = "{kind}"\nmetric = "packets"\n'
        sides = "" if kind == "increasing" else 'a = { who = "a" }\n'
        sides += "" if kind in ("value", "increasing") else 'b = { who = "b" }\n'
        sides = sides or 'a = { stack = "today" }\n'
        folder = tmp_path / str(case)
        folder.mkdir()
        entries = [f"paper,packets,{who},{value!r},0.001\n" for who, value in zip("ab", printed, strict=True)]
        (folder / "numbers.csv").write_text("source,metric,who,value,digit\n" + "".join(entries))
        assert decided_by(folder, HEAD + head + sides + PAPER + more).verdict != "its own source refutes it", (a, b)


@pytest.mark.parametrize(("readings", "refuted"), [("", False), ('["C1"]', True), ('["C2"]', False), ('["C3"]', True)])
def test_a_printed_number_is_refuted_by_every_reading_or_not_at_all(
    tmp_path: Path, readings: str, refuted: bool
) -> None:
    def read(name: str, kind: str, expected: float, more: str) -> str:
        return claim(f"expected = {expected}\ntolerance = 0.01\n" + more, name=name, kind=kind)

    number = 'class = "number"\npaper = { en = "18 %" }\n' + (f"readings = {readings}\n" if readings else "")
    text = read("C1", "gain", 0.5, number) + read("C2", "gain", 1.0, "") + read("C3", "gain", 0.2, "")
    one = decided(tmp_path, HEAD + text, {"paper": (2, 1)})[0]
    assert (one.verdict == "its own source refutes it") is refuted


def test_an_amended_claim_has_both_verdicts(tmp_path: Path) -> None:
    amended = 'amended = [{ date = "2026-11-22", reason = "why", was = 0.6 }]\n'
    (one,) = decided(tmp_path, HEAD + claim(PAPER + amended), {})
    assert (one.first, one.verdict) == ("weaker, same direction", "holds")


def test_a_column_stands_beside_the_claim_and_is_no_condition_of_it(tmp_path: Path) -> None:
    (one,) = decided(tmp_path, HEAD + ERA + claim(), {"paper": (2, 1)})
    assert (one.verdict, one.own.measured) == ("holds", 0.5)
    assert (one.columns["era"].verdict, one.columns["era"].measured) == ("does not hold", 0.0)


def test_a_claim_that_compares_the_levels_of_a_column_has_none(tmp_path: Path) -> None:
    body = claim().replace('b = { who = "b" }', 'b = { who = "a", stack = "era" }')
    (one,) = decided(tmp_path, HEAD + ERA + body, {})
    assert (one.own.measured, one.columns) == (0.5, {})


def test_what_is_not_testable_here_has_its_reason_and_no_number(tmp_path: Path) -> None:
    text = '[[claim]]\nid = "C1"\ntext = "t"\nsource = "s"\nkind = "untestable"\nreason = "no time passes"\n' + PAPER
    (one,) = decided(tmp_path, HEAD + text, {})
    assert (one.verdict, one.own.reason, one.own.measured) == ("not testable here", "no time passes", None)


def test_a_word_of_the_paper_is_a_tolerance(tmp_path: Path) -> None:
    words = '[word.same]\ntolerance = 0.6\nsource = "Table 1"\n'
    (one,) = decided(tmp_path, words + HEAD + claim(PAPER + 'tolerance = "same"\n', kind="equal"), {})
    assert (one.verdict, one.own.claim.word, one.own.claim.tolerance) == ("holds", "same", 0.6)


@pytest.mark.parametrize(("word", "opposite"), [("same", "better"), ("better", "same")])
def test_a_word_that_overlaps_its_opposite_says_so_of_claims_of_both(tmp_path: Path, word: str, opposite: str) -> None:
    words = '[word.better]\ntolerance = 0.1\nsource = "Table 2"\n'
    words += '[word.same]\ntolerance = 0.6\nsource = "Table 1"\noverlaps = "better"\n'
    text = words + HEAD + claim(PAPER + f'tolerance = "{word}"\n') + claim(PAPER + "tolerance = 0.3\n", "C2")
    first, second = decided(tmp_path, text, {})
    assert (first.own.claim.overlap, second.own.claim.overlap) == (Overlap(opposite, 0.1, 0.6), None)


def test_claims_share_a_sentence_and_say_how_they_were_amended(tmp_path: Path) -> None:
    changed = 'class = "number"\npaper = "C1"\namended = [{ date = "2026-11-22", reason = "misread" }]\n'
    first, second = decided(tmp_path, HEAD + claim() + claim(changed, "C2"), {})
    assert first.own.claim.sentence == second.own.claim.sentence is not None
    assert [(one.date, one.reason) for one in second.own.claim.amendments] == [("2026-11-22", "misread")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + claim('class = "conclusion"\n'), "needs the paper's sentence"),
        (HEAD + claim('class = "own"\npaper = { en = "x" }\n'), "give it a class"),
        (HEAD + claim('class = "number"\npaper = "C9"\n'), 'no claim "C9" before this one'),
        (HEAD + claim('class = "number"\npaper = { ko = "x" }\n'), "its en is missing"),
        (HEAD + claim('class = "number"\npaper = 3\n'), "must be a table or the id"),
        (HEAD + claim(PAPER + 'tolerance = "same"\n'), 'there is no word "same"'),
        (HEAD + claim(PAPER + 'amended = [{ date = "soon", reason = "r" }]\n'), "its date is no day"),
        (HEAD + claim(PAPER + 'amended = [{ date = "2026-11-22" }]\n'), "its reason is missing"),
        ('[word.same]\ntolerance = 0\nsource = "s"\n', "needs a tolerance above 0"),
        ("[word.same]\ntolerance = 0.1\n", "needs the place it comes from"),
        ('[word.a]\ntolerance = 0.1\nsource = "s"\noverlaps = "b"\n', 'there is no other word "b"'),
        (HEAD + '[source.other]\nkind = "paper"\n', "a second paper"),
        ('[column.era]\ntitle = "t"\n', "its where is missing"),
        ('[column.who]\nwhere = { stack = "era" }\n', "is a column of the tables already"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        decided(tmp_path, text, {})


@functools.cache
def by_sources(name: str) -> ClaimsBySources:
    """Seconds for a paper, and the same in every test."""
    return claims_by_sources(name)


@pytest.mark.slow
def test_every_claim_of_the_papers_is_classified_and_the_sources_judge_them() -> None:
    judged = by_sources("choi2009")
    claims = [one.claim.claim for one in judged.claims]
    assert all(one.sentence is not None for one in claims if one.claim_class != "own")
    assert {one.claim_class for one in claims} == {"conclusion", "number", "cause", "own"}
    both = set(judged.refuted("paper")) & set(judged.refuted("ns2_29"))
    known = {"C9b", "C9c", "C9d", "C17b", "C17c", "C18e", "C22", "C23b", "C31", "C32", "C33", "C34p", "C34b", "C34c"}
    # ours: each level of what the paper says of a whole curve
    assert both == known | {"C24e", "C25e", "C34e"}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["choi2009", "ha2005", "min2013"])
def test_no_order_that_a_paper_concludes_hangs_on_a_margin_of_0(name: str) -> None:
    """A difference of 0.008 % between deterministic cells would decide it."""
    orders = ("greater", "less", "mean_greater", "increasing", "decreasing", "varies")
    claims = [one.claim.claim for one in by_sources(name).claims]
    concluded = [one for one in claims if one.claim_class == "conclusion" and one.kind in orders]
    assert len(concluded) > 5
    assert [one.id for one in concluded if one.tolerance <= 0] == []


def test_a_papers_numbers_are_judged_whatever_the_clock_of_the_claim(tmp_path: Path) -> None:
    """Ours cannot be measured in virtual time; the paper's are printed."""
    (one,) = decided(tmp_path, HEAD + claim(PAPER + 'clock = "wall"\nreason = "work of a CPU"\n'), {"paper": (2, 1)})
    assert one.own.verdict == "not testable here"
    assert (one.sources["paper"].verdict, one.sources["paper"].measured) == ("holds", 1.0)
