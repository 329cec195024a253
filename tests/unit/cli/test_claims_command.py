"""`netwarp compare claims`: each source's number, those of a run today and era-like, counts, and amendments."""

from __future__ import annotations

import argparse
import csv
from collections import Counter
from pathlib import Path

import pytest
from netwarp.cli.claims import run_claims
from netwarp.core.errors import SpecError
from netwarp.present.style import VERDICTS
from support.checkout import ROOT

KEPT = ROOT / "results" / "reference" / "ha2005"


def said(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, run_dir: Path | None, spec: str = "ha2005"
) -> list[str]:
    monkeypatch.setenv("COLUMNS", "400")
    assert run_claims(argparse.Namespace(spec=spec, run_dir=run_dir)) == 0
    return capsys.readouterr().out.splitlines()


def cells(lines: list[str]) -> dict[str, list[str]]:
    """Claim -> the fields of its line."""
    rows = [[field.strip() for field in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    return {row[0]: row[1:] for row in rows}


def test_a_run_stands_beside_the_sources(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(capsys, monkeypatch, KEPT / "run.tar.xz")
    shown = cells(lines)
    with (KEPT / "claims.csv").open() as file:
        kept = [row for row in csv.DictReader(file) if not row["condition"]]
    assert len(kept) == len(shown) > 30
    for row in kept:
        paper, today, era, verdict = shown[row["claim"]][3:]
        assert verdict == row["verdict"]
        for text, column in ((paper, "paper"), (today, "measured"), (era, "era")):
            if text == "-":
                assert not row[column]
            else:
                value, sign = text.split()
                assert float(value) == pytest.approx(float(row[column]), rel=1e-3)
                assert sign == VERDICTS[row[f"{column}_verdict"]][0]
    verdicts = Counter(row["verdict"] for row in kept if row["class"] == "conclusion")
    counted = f"{verdicts.total()} conclusions: {verdicts['holds']} hold"
    assert any(line.startswith(counted) for line in lines)
    assert any(line.startswith("amended 2026-11-23: C2c: ") for line in lines)


def test_without_a_run_there_are_the_sources_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = said(capsys, monkeypatch, None)
    assert {len(row) for row in cells(lines).values()} == {4}
    assert not any("conclusions:" in line for line in lines)


def test_a_negative_number_has_its_tolerance_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = cells(said(capsys, monkeypatch, None, "lee2008"))
    assert [rows[claim][2] for claim in ("C5c", "C5d", "C5")] == ["1.0 ± 0.5", "-1.0 ± 0.5", "> 0"]


def test_a_run_of_another_spec_is_refused(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Both have a C1: its number would stand beside another paper's."""
    with pytest.raises(SpecError, match="is a run of ha2005, not of lee2008"):
        said(capsys, monkeypatch, KEPT / "run.tar.xz", "lee2008")
