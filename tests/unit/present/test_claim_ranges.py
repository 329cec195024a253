"""The levels of a factor for which a claim holds, said where it was tested over several."""

from netwarp.present import claim_blocks
from netwarp.present.claim_blocks import Statement


def one_test(verdict: str, alone: tuple[str, str] | None = None, condition: str = "") -> claim_blocks.Tested:
    return claim_blocks.Tested("C1", condition, verdict, "", "", "", "", "", (), alone)


def statement(*tests: claim_blocks.Tested) -> Statement:
    return Statement("C1", "It helps.", "", "", tests, levels=(("run length", "8 s"), ("network", "wired")))


def test_levels_are_told_apart_and_stand_in_order() -> None:
    claim = statement(
        one_test("holds"),
        one_test("does not hold", ("run length", "100 s"), "run_length: 100 s"),
        one_test("holds", ("run length", "20 s"), "run_length: 20 s"),
        one_test("does not hold", ("run length", "2 s"), "run_length: 2 s"),
        one_test("does not hold", None, "run_length: 2 s, network: mtcp"),
    )
    assert claim.ranges == {"run length": "holds for 8 s, 20 s, does not hold for 2 s, 100 s"}
    assert claim.robustness == (
        "holds in 2 of 5 conditions; by run length: holds for 8 s, 20 s,"
        " does not hold for 2 s, 100 s; not with run_length: 2 s, network: mtcp"
    )
    assert claim.verdict == "holds in 2 of 5"


def test_two_levels_are_no_range() -> None:
    claim = statement(one_test("holds"), one_test("does not hold", ("network", "mtcp"), "network: mtcp"))
    assert claim.ranges == {}
    assert claim.robustness == "holds in 1 of 2 conditions; not with network: mtcp"


def test_a_factor_without_a_level_of_its_own_is_no_range() -> None:
    claim = statement(one_test("holds"), *(one_test("holds", ("queue", level)) for level in ("red", "pie")))
    assert claim.ranges == {}
