"""docs/tutorial.md, every block in order: files are saved, commands and Python run, outputs compared."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from support.chain_kit import LIMIT_S, Checkout, written
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
BLOCKS = re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)```", PAGE, re.DOTALL)


def test_every_block(checkout: Checkout, tmp_path: Path) -> None:
    """A block of TOML is saved under the name that the line before it says, or added to tutorial.toml."""
    assert PAGE.count("```") == 2 * len(BLOCKS)
    program = written(tmp_path / "bin" / "netwarp", f'#!/bin/sh\nexec {shlex.join(checkout.command())} "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**checkout.environment(tmp_path), "PATH": path}
    for before, language, text in BLOCKS:
        if language == "toml":
            name = re.search(r"as `([\w.]+)`", before)
            with open(tmp_path / (name[1] if name else "tutorial.toml"), "w" if name else "a") as file:
                file.write(text if name else f"\n{text}")
            continue
        command, *expected = text.splitlines()
        if language == "console":
            words = ["sh", "-ec", command.removeprefix("$ ")]
        else:
            words = [sys.executable, "-c", text] if language == "python" else ["sh", "-ec", text]
            expected = []
        done = subprocess.run(
            words, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        for line in expected:
            assert line.strip() in done.stdout, (line, done.stdout)
        if language == "python":
            assert len(done.stdout.splitlines()) == 2, done.stdout
    assert "{outage}" in (tmp_path / "tutorial.toml").read_text()
