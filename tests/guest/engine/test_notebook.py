"""docs/notebook.md: its commands, then its Python blocks in one interpreter, as the cells of a notebook."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from support.chain_kit import LIMIT_S, Checkout, written
from support.docs_kit import blocks

PAGE = Path("docs/notebook.md")
SHOW = """
print(sorted(zip(table["protocol"], table["5 Mbit/s"])))
print(len(frame), "rows", share.between(0, 1).all(), largest == goodput["value"].max())
"""


def test_its_blocks_run_in_order(checkout: Checkout, tmp_path: Path) -> None:
    command = written(tmp_path / "bin" / "netwarp", f'#!/bin/sh\nexec {sys.executable} -m netwarp "$@"\n')
    command.chmod(0o755)
    environment = checkout.environment(tmp_path) | {"MPLBACKEND": "agg"}
    environment["PATH"] = f"{command.parent}{os.pathsep}{environment['PATH']}"

    def done(*words: str) -> str:
        end = subprocess.run(words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S)
        assert end.returncode == 0, (words, end.stdout, end.stderr)
        return end.stdout

    for block in blocks(PAGE):
        if block.language == "sh":
            done("bash", "-eu", "-c", block.text)
    cells = [block.text for block in blocks(PAGE) if block.language == "python"]
    said = done(sys.executable, "-c", "".join(cells) + SHOW)
    assert said.splitlines()[-1] == "6 rows True True", said
    svg = (tmp_path / "goodput.svg").read_text()
    assert svg.startswith("<?xml") and all(f"<!-- {name} -->" in svg for name in ("tcp", "sctp", "rate (Mbit/s)"))
    tables = {path.stem for path in (tmp_path / "run-a" / "tables").glob("*.csv")}
    assert {path.stem for path in (tmp_path / "run-a" / "tables").glob("*.parquet")} == tables


def test_the_figure_is_made_in_five_lines() -> None:
    first = next(block.text for block in blocks(PAGE) if block.language == "python")
    assert "savefig" in first and len(re.findall(r"^.*\S", first, re.MULTILINE)) == 5
