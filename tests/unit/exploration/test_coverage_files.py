"""The files of an exploration that say which lines ran, and the figure of its curve. No kernel is needed."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.explore_curves import draw_curves
from netwarp.exploration.counters import Function
from netwarp.exploration.coverage_files import tracefile, write_curve, write_functions
from netwarp.exploration.found import Step

FUNCTIONS = [
    Function("net/sctp/input.c", "sctp_rcv", 10, 5, {10: 5, 11: 5, 12: 0}),
    Function("net/sctp/input.c", "sctp_err", 20, 0, {20: 0}),
    Function("net/sctp/auth.c", "sctp_auth", 3, 1, {3: 1}),
]


def test_a_tracefile_has_a_record_for_each_file() -> None:
    """Its form is geninfo(1)'s, section FILES."""
    first, second = tracefile(FUNCTIONS).split("end_of_record\n")[:2]
    assert first.splitlines() == [
        "TN:", "SF:net/sctp/input.c", "FN:10,sctp_rcv", "FN:20,sctp_err", "FNDA:5,sctp_rcv", "FNDA:0,sctp_err",
        "FNF:2", "FNH:1", "DA:10,5", "DA:11,5", "DA:12,0", "DA:20,0", "LF:4", "LH:2",
    ]  # fmt: skip
    assert "SF:net/sctp/auth.c" in second and "LH:1" in second


def explored(place: Path, drawn: bool) -> Path:
    place.mkdir()
    write_curve(place, [Step(1, 1.0, 1.0, 10, 20, 2), Step(17, 5.0, 4.0, 30, 60, 5)])
    told = {"format": 1, "spec": "roots", "seed": 3, "drawn": drawn, "cells": 17}
    (place / "explore.json").write_text(json.dumps(told))
    return place


def test_curves_stand_beside_each_other(tmp_path: Path) -> None:
    drawn, plain = explored(tmp_path / "drawn", True), explored(tmp_path / "plain", False)
    tests = tmp_path / "tests"
    tests.mkdir()
    write_functions(tests, FUNCTIONS)
    with open(tests / "functions.csv", newline="") as file:
        assert sum(int(row["lines_reached"]) for row in csv.DictReader(file)) == 3
    alone = draw_curves(drawn).read_bytes()
    svg = draw_curves(drawn, [plain, tests])
    assert svg == drawn / "coverage.svg" and (drawn / "coverage.pdf").read_bytes().startswith(b"%PDF")
    assert svg.read_bytes().startswith(b"<?xml") and len(svg.read_bytes()) > len(alone)
    assert draw_curves(drawn, [plain, tests]).read_bytes() == svg.read_bytes(), "equal bytes for equal data"


def test_a_place_with_neither_is_named(tmp_path: Path) -> None:
    drawn = explored(tmp_path / "drawn", True)
    with pytest.raises(SpecError, match="nothing: is neither an exploration nor tests"):
        draw_curves(drawn, [tmp_path / "nothing"])
