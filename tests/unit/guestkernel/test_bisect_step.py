"""kernel/bisect-step.sh: how the ends of build, run and comparison become git bisect's answers.

`make bisect-test` has the real thing.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.checkout import ROOT

SCRIPT = ROOT / "kernel" / "bisect-step.sh"
STAND_IN = """#!/bin/sh
echo "$@" >> {log}
case $1 in
kernel) echo '{{"key": "0123456789abcdef", "release": "6.12.1"}}'; exit {build} ;;
run) exit {run} ;;
compare) [ -n "$4" ] || exit 9; exit {compare} ;;
esac
"""


@pytest.mark.parametrize(
    ("build", "run", "compare", "answer"),
    [
        (0, 0, 0, 0),
        (0, 0, 1, 1),
        (0, 1, 1, 1),  # cells that fail on this kernel
        (3, 0, 0, 125),
        (1, 0, 0, 255),  # a full disk, a missing tool
        (2, 0, 0, 255),
        (126, 0, 0, 255),
        (127, 0, 0, 255),  # there is no such netwarp
        (130, 0, 0, 255),
        (0, 2, 0, 255),
        (0, 77, 0, 255),
        (0, 130, 0, 255),
        (0, 0, 2, 255),
    ],
)
def test_answers(tmp_path: Path, build: int, run: int, compare: int, answer: int) -> None:
    log = tmp_path / "log"
    stand_in = tmp_path / "netwarp"
    stand_in.write_text(STAND_IN.format(log=log, build=build, run=run, compare=compare))
    stand_in.chmod(0o755)
    command = [SCRIPT, "mine.toml", "/tmp/good", "--where", "protocol=sctp"]
    done = subprocess.run(command, cwd=tmp_path, env={"PATH": "/usr/bin:/bin", "NETWARP": str(stand_in)}, check=False)
    assert done.returncode == answer
    lines = log.read_text().splitlines()
    assert lines[0] == f"kernel build --source {tmp_path}@HEAD --json"
    if build == 0:
        assert lines[1].startswith("run mine.toml --set kernel=0123456789abcdef --out /")
        assert lines[1].endswith(" --no-report --where protocol=sctp")
        out = Path(lines[1].split()[5])
        assert not out.parent.exists()
    else:
        assert len(lines) == 1


def test_without_arguments_it_says_which(tmp_path: Path) -> None:
    done = subprocess.run([SCRIPT], capture_output=True, text=True, check=False)
    assert done.returncode == 255
    assert done.stderr.startswith("usage: bisect-step.sh EXPERIMENT GOOD_RUN")
