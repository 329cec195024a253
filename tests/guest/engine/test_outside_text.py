"""What a program writes to its stderr reaches a terminal, a table and a page as text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SHELL = r"printf 'a\\n\\033]0;owned\\007\\033[2J\\tnetwarp: forged\\302\\233' >&2; exit 3"
SPEC = """
format = 1
name = "loud"
duration = "2 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
program = { sender = ["/bin/sh", "-c", "SHELL"] }
"""


def test_the_stderr_of_a_program_acts_nowhere(tmp_path: Path) -> None:
    (tmp_path / "loud.toml").write_text(SPEC.replace("SHELL", SHELL))
    words = [sys.executable, "-m", "netwarp", "run", "loud.toml", "--backend", "virtual", "--out", "run"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, check=False)
    printed = (done.stdout + done.stderr).decode()
    assert done.returncode == 1 and "]0;owned" in printed and "\\x1b" in printed, printed
    for text in (printed, (tmp_path / "run" / "tables" / "cells.csv").read_text()):
        assert "\x1b" not in text and "\x9b" not in text
        assert not [line for line in text.splitlines() if line.startswith("netwarp: forged")]
