"""Average windows under periodic losses, two short cells of experiments/rfc9438: the models in round trips hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.checkout import ROOT

SPEC = ROOT / "experiments" / "rfc9438" / "spec.toml"


def test_an_epoch_has_as_many_round_trips_as_the_rules_give(checkout: Checkout, tmp_path: Path) -> None:
    chosen = ("--only", "tables", "--where", "loss=1e-2", "--where", "rtt=100 ms", "--jobs", "1", "--no-report")
    run = checkout.run_spec(tmp_path, SPEC, *chosen)
    found = {row["algorithm"]: metrics for row, metrics in run.measured()}
    assert abs(found["reno"]["reno_off_rtts"]) <= 0.5
    for algorithm, ratio in (("reno", 0.5), ("cubic", 0.7)):
        assert found[algorithm]["loss_events"] >= 100
        off = 2 / found[algorithm]["window_at_loss_packets"]  # of whole packets
        assert found[algorithm]["window_decrease_ratio"] == pytest.approx(ratio, abs=off)
