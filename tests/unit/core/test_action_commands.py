"""What a job of GitHub takes for a command is none where a program that the action runs has printed it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from support.checkout import ROOT

LIES = ("::add-mask::a", "  ::error::b", "x ##[add-mask]c", "::set-output name=d::e", "::stop-commands::f", "::f::")
PYTHON3 = """\
#!/bin/sh
mkdir -p "$3/bin"
for name in pip netwarp python; do
    cp "$STAND_IN" "$3/bin/$name"
done
"""
STAND_IN = """\
#!/bin/sh
cat "$LIES"
cat "$LIES" >&2
mkdir -p "$OUT/tables"
touch "$OUT/tables/cells.csv"
"""


def obeyed(lines: list[str]) -> list[str]:
    """As the runner of GitHub does: `::command::` begins a line but for blanks, `##[command]` stands anywhere."""
    found, token = [], ""
    for line in lines:
        if token:
            token = "" if line.strip() == f"::{token}::" else token
        elif (stop := re.fullmatch(r"\s*::stop-commands::(\w+)", line)) is not None:
            token = stop[1]
        elif re.match(r"\s*::[a-z]", line) or "##[" in line:
            found.append(line)
    return found


def test_the_runner_is_told_as_it_is() -> None:
    assert obeyed([*LIES[:-2], *LIES[-2:]]) == list(LIES[:-2])


@pytest.mark.parametrize("summary", [False, True])
def test_no_line_of_a_run_is_a_command_of_the_job(summary: bool, tmp_path: Path) -> None:
    for name, text in (("python3", PYTHON3), ("stand-in", STAND_IN), ("lies", "\n".join(LIES) + "\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path), "GITHUB_ACTIONS": "true"}
    environment |= {"SPEC": "x", "OUT": str(tmp_path / "out")}
    environment |= {"LIES": str(tmp_path / "lies"), "STAND_IN": str(tmp_path / "stand-in")}
    environment |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "page")} if summary else {}
    done = subprocess.run(
        [ROOT / ".ci/action.sh"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
        cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.stdout.count("::add-mask::a") > 3, "the programs print"
    assert obeyed(done.stdout.splitlines()) == []
    assert obeyed([*done.stdout.splitlines(), "::error::x"]) == ["::error::x"], "later commands are commands again"
