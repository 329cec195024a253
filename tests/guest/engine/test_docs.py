"""The command blocks of README and docs, run unchanged; names of files and runs are replaced by real ones."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.experiment import EXAMPLE_SPEC
from support.chain_kit import STANDS, Checkout, Done, all_completed, written
from support.docs_kit import IN_ORDER, PAGES, ROOT, Block, blocks, not_run

RUN = [block for page in PAGES if page not in IN_ORDER for block in blocks(page) if block.language in ("sh", "console")]
SPEC = STANDS.replace('"3 s"', '"1 s"').replace('bytes = "1 MB"', 'bytes = "100 kB"')


@pytest.fixture(scope="module")
def place(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as a checkout is seen from: its netwarp and its recorded captures; and a run to name."""
    place = tmp_path_factory.mktemp("docs")
    for name, command in (("netwarp", checkout.command()), ("python", [sys.executable])):
        program = written(place / ".venv" / "bin" / name, f'#!/bin/sh\nexec {shlex.join(command)} "$@"\n')
        program.chmod(0o755)
    for name in ("tests", "experiments"):
        (place / name).symlink_to(ROOT / name)
    written(place / "small.toml", SPEC)
    written(place / "mine.toml", EXAMPLE_SPEC)  # as README has it written; a block may come first
    for side in "ab":
        checkout.run("run", "small.toml", "--no-report", "--out", side, cwd=place).ok()
        all_completed(place / side)
    return place


def typed(line: str, checkout: Checkout, place: Path) -> Done:
    """A line given to a shell, with netwarp in PATH as an activated environment has it."""
    cell = next(path.parent for path in (place / "a" / "cells").glob("*/outcome.json"))
    files = " ".join(str(path) for path in sorted((cell / "capture").iterdir()))
    meant = {"SPEC": "small.toml", "RUN_A": "a", "RUN_B": "b", "CELL_DIR": str(cell), "FILE...": files}
    for word, value in meant.items():
        line = line.replace(word, value)
    path = f"{place / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["sh", "-ec", line], cwd=place, env={**checkout.environment(place), "PATH": path}, capture_output=True,
        text=True, check=False, timeout=240,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("block", [block for block in RUN if not all(map(not_run, block.lines))], ids=str)
def test_a_block(block: Block, checkout: Checkout, place: Path) -> None:
    """Line after line; `agree` may find a difference (1). What a block shows of the output is in it."""
    if block.language == "console":
        command, *shown = block.text.splitlines()
        out = " ".join(typed(command.removeprefix("$ "), checkout, place).ok().out.split())  # wrapped elsewhere
        for line in shown:
            assert line.strip() == "..." or " ".join(line.split()) in out, (line, out)
        return
    ran = 0
    for line in block.lines:
        if not not_run(line):
            done = typed(line, checkout, place)
            assert done.status in ((0, 1) if line.startswith("netwarp compare backends") else (0,)), (line, done)
            ran += 1
    assert ran
