"""Loss recovery packet by packet, a few cells of experiments/recovery: exact statements, and golden captures."""

from __future__ import annotations

from pathlib import Path

import golden
import pytest
from support.chain_kit import Checkout
from support.checkout import ROOT

SPEC = ROOT / "experiments" / "recovery" / "spec.toml"
CASES = ("PRR, first of 20 lost", "3 of 4 lost, then one again", "five are late", "flight lost, no probe")
"""PRR, TLP and RACK's timers, reordering, RTO with F-RTO."""


def test_exact_statements_hold_and_captures_are_golden(checkout: Checkout, tmp_path: Path) -> None:
    chosen = [word for case in CASES for word in ("--where", f"tcp={case}")]
    run = checkout.run_spec(tmp_path, SPEC, "--only", "tcp", *chosen, "--jobs", "1", "--no-report")
    did = golden.what_it_did(run.root)
    verdicts = {name: row["verdict"] for name, row in did["claims"].items() if row["verdict"] != "not tested"}
    assert {name for name, verdict in verdicts.items() if verdict == "holds"} >= {"PRR-1", "TLP-6", "RACK-10", "FRTO-4"}
    wrong = golden.differing(did)
    if wrong is None:
        pytest.skip(f"nothing is kept of this build of Linux {did['release']}")
    assert wrong == []
