"""The timers behind `netwarp sctp advise`: arithmetic of RFC 9260, and budgets that no settings keep."""

import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.sctp_advice import MS, SctpBudget, Settings, advise_sctp, candidates


def test_linux_own_timers_give_an_association_up_after_363_s() -> None:
    """1 + 2 + 4 + 8 + 16 + 32 + 5 x 60 s."""
    assert Settings(1000 * MS, 60_000 * MS, 10, 200 * MS).survives_ns == 363 * 1000 * MS


def test_a_floor_fits_a_sack_delay_only_above_its_latest_timer() -> None:
    assert not Settings(120 * MS, 500 * MS, 10, 200 * MS).fits(20 * MS)
    assert not Settings(250 * MS, 500 * MS, 10, 200 * MS).fits(20 * MS), "200 ms may last 225"
    assert Settings(270 * MS, 500 * MS, 10, 200 * MS).fits(20 * MS)


def test_every_candidate_keeps_the_budget_by_its_timers() -> None:
    budget = SctpBudget.read("1 s", "30 s", "0.1 %", "20 ms")
    found = list(candidates(budget))
    assert found
    for each in found:
        assert each.back_ns(budget.rtt_ns) <= budget.back_ns
        assert each.survives_ns > budget.survive_ns
        assert each.fits(budget.rtt_ns)


def test_a_budget_that_contradicts_itself_runs_nothing() -> None:
    advice = advise_sctp(SctpBudget.read("100 ms", "30 s", "0.1 %", "90 ms"))
    assert advice.run is None and advice.shown == ()


def test_a_budget_without_unit_is_refused_with_its_option() -> None:
    with pytest.raises(SpecError, match="--back"):
        SctpBudget.read("1", "30 s", "0.1 %", "20 ms")
