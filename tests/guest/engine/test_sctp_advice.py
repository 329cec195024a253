"""`netwarp sctp advise`: settings of a budget are run, and what cells show is within what their timers say."""

from pathlib import Path

import netwarp.engine.sctp_advice as sctp_advice
import pytest
from netwarp.engine.sctp_bounds import SctpBudget


def test_settings_that_keep_a_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sctp_advice, "TRIED", 1)
    monkeypatch.setattr(sctp_advice, "INSTANTS", 2)
    budget = SctpBudget.read("1 s", "10 s", "0.1 %", "20 ms")
    advice = sctp_advice.advise_sctp(budget, out=tmp_path / "run", jobs=2)
    (shown,) = advice.shown
    assert advice.run is not None and set(advice.run.outcomes) == {"COMPLETED"}
    assert len(shown.cells) == 5, "two outages, the longest, and traffic at two gaps"
    assert shown.lost == 0 and shown.needless == 0
    assert shown.back_ns is not None and 0 < shown.back_ns <= shown.computed_back_ns <= budget.back_ns
    assert shown.keeps(budget) and advice.as_json()["candidates"][0]["keeps"]


def test_settings_that_keep_a_budget_of_two_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sctp_advice, "TRIED", 1)
    monkeypatch.setattr(sctp_advice, "BUSY_S", 40)
    monkeypatch.setattr(sctp_advice, "INSTANTS", 2)
    budget = SctpBudget.read("1 s", "6 s", "0.1 %", "20 ms", paths=2, spare="10 s")
    advice = sctp_advice.advise_sctp(budget, out=tmp_path / "run", jobs=2)
    assert advice.run is not None and set(advice.run.outcomes) == {"COMPLETED"}
    (shown,) = advice.shown
    assert len(shown.cells) == 7, "two outages of both paths, the longest, two of one, and traffic at two gaps"
    assert shown.lost == 0 and shown.needless == 0
    assert shown.moves_ns is not None and shown.computed_moves_ns is not None
    assert 0 < shown.moves_ns <= shown.computed_moves_ns <= budget.back_ns
    assert shown.spare_ns is not None and shown.computed_spare_ns is not None
    assert 0 < shown.spare_ns <= shown.computed_spare_ns <= budget.spare_ns
    assert shown.keeps(budget)
