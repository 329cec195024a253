"""Under which conditions a claim holds, in words: levels tested alone, and what those that turn it share."""

from dataclasses import replace

import pytest
from netwarp.core.outputs import Overlap
from netwarp.present import claim_blocks, style
from netwarp.present.claim_blocks import Statement

LONG, TWO_S, MTCP = (("run length", "100 s"), ("run length", "2 s"), ("network", "mtcp"))


def statement(*tests: tuple[str, tuple[tuple[str, str], ...]]) -> Statement:
    """Of tests: verdict, and levels that differ from its own."""
    made = tuple(claim_blocks.Tested("C1", levels, verdict, "", "", "", "", "") for verdict, levels in tests)
    return Statement("C1", "It helps.", "", "", made, levels=(("run length", "8 s"), ("network", "wired")))


def test_levels_tested_alone_are_told_apart_and_stand_in_order() -> None:
    claim = statement(
        ("holds", ()),
        ("does not hold", (LONG,)),
        ("holds", (("run length", "20 s"),)),
        ("does not hold", (TWO_S,)),
        ("does not hold", (TWO_S, MTCP)),
    )
    assert claim.ranges == {"run length": "holds for 8 s, 20 s, does not hold for 2 s, 100 s"}
    assert claim.held == "2 of 5"
    assert claim.turned == "run length: 2 s", "in each test with it that is not in the range"


def test_what_turns_it_is_named_by_the_levels_that_always_do() -> None:
    queue = ("queue", "red")
    claim = statement(
        ("holds", ()),
        ("does not hold", (MTCP,)),
        ("does not hold", (MTCP, queue)),
        ("does not hold", (MTCP, TWO_S)),
        ("holds", (queue,)),
        ("holds", (TWO_S,)),
    )
    assert claim.turned == "network: mtcp"
    assert claim.robustness == "holds in 3 of 6 conditions; not with network: mtcp"
    mixed = statement(("holds", ()), ("does not hold", (MTCP, queue)), ("holds", (MTCP,)), ("holds", (queue,)))
    assert mixed.turned == "network: mtcp and queue: red", "neither does alone"


def test_two_levels_are_no_range_nor_is_a_factor_without_a_level_of_its_own() -> None:
    assert statement(("holds", ()), ("does not hold", (MTCP,))).ranges == {}
    assert statement(("holds", ()), *(("holds", (("queue", level),)) for level in ("red", "pie"))).ranges == {}


@pytest.mark.parametrize(
    ("verdicts", "shown"),
    [
        (["holds"], "holds"),
        (["holds", "does not hold"], "holds"),
        (["holds", "holds", "does not hold", "inconclusive"], "holds"),
        (["holds", "does not hold", "inconclusive"], style.IN_FEW),
        (["holds", "not tested", "not tested"], "holds"),
        (["does not hold", "holds", "holds"], "does not hold"),
        (["its own source refutes it", "does not hold"], "its own source refutes it"),
    ],
)
def test_holds_alone_is_shown_where_it_holds_in_half_of_the_conditions(verdicts: list[str], shown: str) -> None:
    claim = statement(*((verdict, ((("queue", str(at)),) if at else ())) for at, verdict in enumerate(verdicts)))
    assert claim.shown == shown


@pytest.mark.parametrize(
    ("number", "shown"), [(0.02, "holds"), (0.021, style.IN_OVERLAP), (-0.1, style.IN_OVERLAP), (0.101, "holds")]
)
def test_a_number_that_opposite_words_fit_has_no_plain_holds(number: float, shown: str) -> None:
    value = claim_blocks.Value("measured", "Linux", "", "", "", "holds", "own", number)
    claim = statement(("holds", ()))
    claim = replace(claim, tests=(replace(claim.own, values=(value,)),), overlap=Overlap("better", 0.02, 0.1))
    assert claim.shown == claim.shown_of(value) == shown
    assert claim.shown_of(replace(value, verdict="does not hold")) == "does not hold"
