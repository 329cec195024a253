"""The plain case of experiments/bbr: BBR's gains, read from the packets' pace, are those of the kernel's source."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.checkout import ROOT

SPEC = ROOT / "experiments" / "bbr" / "spec.toml"
MARGIN = 0.99
"""bbr_pacing_margin_percent."""


def test_the_wire_has_the_gains_of_the_source(checkout: Checkout, tmp_path: Path) -> None:
    """net/ipv4/tcp_bbr.c: bbr_drain_gain, bbr_pacing_gain, in 1/256."""
    chosen = ("--where", "case=plain", "--set", "duration=4 s", "--jobs", "1", "--no-report")
    run = checkout.run_spec(tmp_path, SPEC, *chosen)
    ((_, found),) = run.measured()
    for metric, gain in [("drain_gain", 88), ("up_gain", 320), ("down_gain", 192), ("cruise_gain", 256)]:
        assert found[metric] == pytest.approx(MARGIN * gain / 256, rel=0.003), metric
    assert found["told_bw_ratio"] == pytest.approx(1, abs=0.002)
