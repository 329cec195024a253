"""The timers behind `netwarp sctp advise`: arithmetic of RFC 9260, and budgets that no settings keep."""

import dataclasses

import netwarp.engine.sctp_advice as sctp_advice
import pytest
from netwarp import plan_experiment
from netwarp.core.errors import SpecError
from netwarp.engine.sctp_advice import (
    INSTANTS,
    Shown,
    advice_spec,
    advise_sctp,
    candidates,
    chosen_of,
    contradiction,
)
from netwarp.engine.sctp_bounds import MS, SctpBudget, Settings


def test_linux_own_timers_may_give_an_association_up_after_63_s() -> None:
    """T3 expires after 1, 3, 7, 15, 31 and 63 s; heartbeats may count after 0.5, 1.5, 3.5 and 7.5 s, and as the path is
    down then (seven errors, five are allowed), after 30 and 8 s more: the eleventh error is that at 63 s.
    """
    assert Settings(1000 * MS, 60_000 * MS, 10, 200 * MS).survives_ns() == 63 * 1000 * MS


def test_heartbeats_of_the_only_path_count_too() -> None:
    """Measured with Linux 6.12: RTO 0.7 s, 15 retransmissions; an outage of 10 s ended the association at 10.608 s, in
    its 15th timeout, since a heartbeat had counted.
    """
    assert Settings(700 * MS, 700 * MS, 15, 200 * MS).survives_ns() < 10_608 * MS


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
        assert each.survives_ns() > budget.survive_ns
        assert each.fits(budget.rtt_ns)


def test_a_path_that_fails_is_left_after_its_timers() -> None:
    """A message is due within 50 ms and sets T3. What is sent again then goes over the other path, and no small message
    goes before it has been acknowledged: one packet leaves with the timeout, the rest with the next message, and its
    SACK comes after up to 208 ms and a round trip. 700 ms are up to 64 ms late, 400 ms up to 8 (core/timer_wheel.py).
    """
    held = 50 + 208 + 20 + 0.2
    settings = Settings(700 * MS, 700 * MS, 50, 200 * MS)
    assert settings.moves_ns(20 * MS) == pytest.approx((50 + 700 + 64 + held) * MS)
    twice = Settings(400 * MS, 400 * MS, 50, 200 * MS, pf_retrans=1)
    assert twice.moves_ns(20 * MS) == pytest.approx((50 + 408 + held + 408 + held) * MS)


@pytest.mark.parametrize(("took_ms", "keeps"), [(800, True), (900, False), (1100, False)])
def test_settings_whose_bound_a_cell_exceeds_are_not_recommended(took_ms: int, keeps: bool) -> None:
    """1 s is asked for and 864 ms were computed, so 900 ms are within the budget and yet not understood."""
    shown = Shown(
        settings=Settings(700 * MS, 700 * MS, 50, 200 * MS), back_ns=500 * MS, computed_back_ns=819 * MS,
        survives_ns=40_000 * MS, moves_ns=took_ms * MS, computed_moves_ns=864 * MS, spare_ns=5000 * MS,
        computed_spare_ns=6000 * MS, lost=0, outages=24, needless=0.0, cells=(),
    )  # fmt: skip
    assert shown.keeps(SctpBudget.read("1 s", "30 s", "0.1 %", "20 ms", paths=2)) is keeps


def test_timeouts_and_heartbeats_of_two_silent_paths_count() -> None:
    """RTO 1 s: of each path a heartbeat after 0.5 s, then a timeout and a heartbeat at 1 s."""
    assert Settings(1000 * MS, 1000 * MS, 1, 200 * MS).survives_ns(paths=2) == 500 * MS
    assert Settings(1000 * MS, 1000 * MS, 3, 200 * MS).survives_ns(paths=2) == 1000 * MS


def test_every_candidate_of_two_paths_keeps_the_budget_by_its_timers() -> None:
    budget = SctpBudget.read("1 s", "30 s", "0.1 %", "20 ms", paths=2, spare="10 s")
    found = list(candidates(budget))
    assert {each.pf_retrans for each in found} == {0, 1, 2}
    for each in found:
        moves, spare = each.moves_ns(budget.rtt_ns), each.spare_ns(budget.rtt_ns)
        assert moves is not None and moves <= budget.back_ns
        assert spare is not None and spare <= budget.spare_ns
        assert each.survives_ns(2) > budget.survive_ns
        assert each.heartbeat_interval_ns <= 5000 * MS, "a return within 10 s asks for sooner heartbeats"


def test_of_each_threshold_one_is_run_on_two_paths() -> None:
    budget = SctpBudget.read("1 s", "30 s", "0.1 %", "20 ms", paths=2)
    chosen = chosen_of(budget, list(candidates(budget)))
    spec = advice_spec(chosen, budget)
    assert [each.pf_retrans for each in chosen] == [0, 1, 2]
    assert spec["flow"]["s"]["paths"] == ["p1", "p2"]
    cells = plan_experiment(spec).cells
    assert len(cells) == len(chosen) * (2 * INSTANTS + 3)
    instants = {event.at_ns for cell in cells for event in cell.timeline if "path" in str(cell.factors["case"])}
    assert len(instants) >= INSTANTS


def test_a_budget_that_contradicts_itself_runs_nothing() -> None:
    advice = advise_sctp(SctpBudget.read("100 ms", "30 s", "0.1 %", "90 ms"))
    assert advice.run is None and advice.shown == ()


@pytest.mark.parametrize(
    ("back", "survive", "rtt", "spare", "words"),
    [
        ("100 ms", "30 s", "90 ms", "60 s", "the shortest --back is "),
        ("1 s", "30 s", "3 s", "60 s", "is below the round trip"),
        ("1 s", "1 h", "20 ms", "60 s", "the longest --survive is "),
        ("1 s", "30 s", "20 ms", "10 ms", "the shortest --spare is "),
    ],
)
def test_a_budget_that_contradicts_itself_is_told_what_could_be(
    back: str, survive: str, rtt: str, spare: str, words: str
) -> None:
    budget = SctpBudget.read(back, survive, "0.1 %", rtt, paths=2, spare=spare)
    assert not list(candidates(budget))
    assert words in contradiction(budget)


def test_the_longest_outage_that_is_told_holds_with_the_heartbeats_that_spare_needs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """RTO 0.5 s: of both paths the 41st timeout ends it, so the 21st of one. Heartbeats count after 0.25, 0.5, 0.75 and
    1 s, and as the path is down then (five are allowed), after 5.25 s more; T3 each 0.5 s. Up to 6 s that is 16, at
    6.25 s the 17th, and 6.5, 7, 7.5 and 8 s are the 18th to 21st. With heartbeats each 30 s it would be 8.5 s.
    """
    for name, values in (
        ("FLOORS", (500,)), ("CEILINGS", (500,)), ("DELAYS", (200,)), ("THRESHOLDS", ((0, 5),)),
        ("BEATS", (30_000, 5000)), ("RETRANSMISSIONS", (40,)),
    ):  # fmt: skip
        monkeypatch.setattr(sctp_advice, name, values)
    budget = SctpBudget.read("1 s", "60 s", "0.1 %", "20 ms", paths=2, spare="10 s")
    assert "with this --back and --spare the longest --survive is 7.99 s " in contradiction(budget)
    assert list(candidates(dataclasses.replace(budget, survive_ns=7990 * MS)))
    assert not list(candidates(dataclasses.replace(budget, survive_ns=8000 * MS)))


def test_an_outage_as_long_as_the_budget_says_is_run() -> None:
    budget = SctpBudget.read("1 s", "30 s", "0.1 %", "20 ms")
    cells = plan_experiment(advice_spec(chosen_of(budget, list(candidates(budget)))[:1], budget)).cells
    lengths = [
        repair.at_ns - cut.at_ns
        for cell in cells
        for cut in cell.timeline
        for repair in cell.timeline
        if (cut.action, repair.action) == ("cut", "repair")
    ]
    assert len(lengths) == INSTANTS + 1 and max(lengths) == budget.survive_ns


def test_a_budget_without_unit_is_refused_with_its_option() -> None:
    with pytest.raises(SpecError, match="--back"):
        SctpBudget.read("1", "30 s", "0.1 %", "20 ms")
