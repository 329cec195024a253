"""docs/using-results.md: its commands and scripts, run in their order."""

from __future__ import annotations

import ast
import csv
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.chain_kit import LIMIT_S, Checkout, written
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "using-results.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.fixture(scope="module")
def said(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """Where they ran, and what each of them printed."""
    home = tmp_path_factory.mktemp("home")
    command = written(home / "bin" / "netwarp", f'#!/bin/sh\nexec {sys.executable} -m netwarp "$@"\n')
    command.chmod(0o755)
    environment = checkout.environment(home)
    environment["PATH"] = f"{command.parent}:{environment['PATH']}"
    left = [home / name for name in (".venv", "build", ".cache/netwarp", "results")]
    for place in left:
        written(place / "file", "what netwarp leaves")
    found = []
    for language, text in BLOCKS:
        # -e: every line has to succeed
        program = ["bash", "-eu", "-o", "pipefail", "-c", text] if language == "sh" else [sys.executable, "-c", text]
        done = subprocess.run(
            program, cwd=home, env=environment, capture_output=True, text=True, timeout=LIMIT_S,
            stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        found.append(done.stdout)
    assert [place for place in left if place.exists()] == [], "uninstalled"
    return home, found


def of(said: tuple[Path, list[str]], text: str) -> str:
    """What the one block that holds a text printed."""
    (number,) = [number for number, (_, block) in enumerate(BLOCKS) if text in block]
    return said[1][number]


def test_every_block_is_one_that_runs() -> None:
    assert {language for language, _ in BLOCKS} == {"sh", "python"}
    assert PAGE.count("```") == 2 * len(BLOCKS)


def test_a_data_frame_takes_five_statements() -> None:
    for library in ("pandas", "polars"):
        (block,) = [text for _, text in BLOCKS if f"import {library}" in text]
        assert len(ast.parse(block).body) <= 5


def test_the_three_ways_to_read_a_table_agree_with_it(said: tuple[Path, list[str]]) -> None:
    home, _ = said
    with open(home / "run-a" / "tables" / "goodput.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {(row["protocol"], row["rate"]) for row in rows} == {
        (protocol, f"{rate} Mbit/s") for protocol in ("tcp", "sctp") for rate in (1, 2, 5)
    }
    pandas, polars, plain = (of(said, f"import {name}") for name in ("pandas", "polars", "csv"))
    for row in rows:
        value = float(row["value"]) / 1e6
        assert f"{value:.3f}" in pandas
        assert f"{value:.3f}" in plain
        assert any(abs(float(number) - value) < 1e-3 for number in re.findall(r"\d\.\d+", polars)), polars


def test_scripts_get_one_object(said: tuple[Path, list[str]]) -> None:
    assert of(said, "summary.json") == "{'COMPLETED': 6}\n"


def test_tshark_reads_what_was_exported(said: tuple[Path, list[str]]) -> None:
    assert "IO Statistics" in of(said, "tshark")


def test_compare_names_what_another_delay_changed(said: tuple[Path, list[str]]) -> None:
    text = of(said, "netwarp compare")
    assert "Numbers that changed beyond noise" in text
    assert "Nothing changed beyond noise." in text.partition("Made alike")[2], "a run is equal to itself"


def test_captures_are_removed_and_the_report_is_made_again(said: tuple[Path, list[str]]) -> None:
    home, _ = said
    text = of(said, "--captures")
    assert re.search(r"^run-a: freed [\d.]+ [kMG]?B: 12 captures$", text, re.MULTILINE)
    assert list(home.glob("run-*/cells/*/capture/*")) == []
    assert (home / "run-a" / "report" / "index.html").is_file()
