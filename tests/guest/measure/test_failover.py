"""Failovers of a real kernel lie in the range of their settings, and the thresholds have the effects of the guide."""

from __future__ import annotations

import pytest
from netwarp.measure.groups.failover import THEORY
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.run_files import RunFiles

SPEC = ROOT / "experiments" / "sctp-failover" / "spec.toml"
Measured = dict[tuple[str, str], dict[str, float]]


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Six settings of the thresholds, one draw each."""
    where = [
        word
        for pair in ("path_max_retrans=1", "path_max_retrans=3", "pf=0", "pf=1", "pf=pf off")
        for word in ("--where", pair)
    ]
    arguments = ["--only", "thresholds", "--repetitions", "1", "--no-report"]
    return checkout.run_spec(tmp_path_factory.mktemp("failover"), SPEC, *where, *arguments)


@pytest.fixture(scope="module")
def measured(run: RunFiles) -> Measured:
    found = {(levels["path_max_retrans"], levels["pf"]): metrics for levels, metrics in run.measured()}
    assert len(found) == 6
    return found


def test_every_moment_is_within_theory(measured: Measured) -> None:
    judged = 0
    for setting, metrics in measured.items():
        for metric, name in THEORY.items():
            if f"{name}_as_theory" in metrics:
                low, high = (metrics[f"theory_{name}_{end}_s"] for end in ("low", "high"))
                assert low <= metrics[metric] <= high, (setting, metric)
                judged += 1
    assert judged >= 6 * 4


def test_new_data_moves_with_the_state_and_retransmissions_with_the_first_timeout(measured: Measured) -> None:
    first = [metrics["first_retransmission_other_path_s"] for metrics in measured.values()]
    assert max(first) - min(first) < 0.13
    moved = {setting: metrics["first_new_data_other_path_s"] for setting, metrics in measured.items()}
    assert moved["1", "0"] > 2.5 * moved["3", "0"]  # no room for the potentially failed state
    assert moved["1", "0"] == pytest.approx(moved["1", "pf off"], rel=0.13)
    assert moved["3", "0"] < moved["3", "1"] < moved["3", "pf off"]
    assert {metrics["theory_timeouts"] for metrics in measured.values()} == {1, 2, 4}


def test_the_answer_names_what_does_it_and_why_the_rest_does_not(run: RunFiles) -> None:
    rows = {(row["budget"], row["path_max_retrans"], row["pf"]): row for row in run.table("answer-thresholds")}
    assert rows["1.5 s", "3", "0"]["verdict"] == "does it"
    assert rows["1.5 s", "1", "0"]["verdict"] == "looks tempting, does not"
    assert "2 timeouts in a row" in rows["1.5 s", "1", "0"]["because"]
