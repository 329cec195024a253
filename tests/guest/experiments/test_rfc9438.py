"""Short cells of experiments/rfc9438: average windows have the models' round trips, and slow start ends by HyStart."""

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


def test_slow_start_ends_on_the_wire_where_the_kernel_says_so(checkout: Checkout, tmp_path: Path) -> None:
    """The threshold is 12.5 ms; the eighth ACK of 160 packets ends it."""
    steps = [word for more in ("12.3", "12.7") for word in ("--where", f"start=100 + {more} ms")]
    run = checkout.run_spec(tmp_path, SPEC, "--only", "hystart", *steps, "--jobs", "1", "--no-report")
    found = {row["start"]: metrics for row, metrics in run.measured()}
    below, above = found["100 + 12.3 ms"], found["100 + 12.7 ms"]
    assert (below["start_grown_ratio"], below["start_told_packets"]) == (2, 0)
    assert above["start_flight_packets"] == above["start_told_packets"] in (168, 169)
