"""The playbooks and roles: ansible-lint (profile production) and yamllint have nothing to say, offline."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT

BIN = Path(sys.executable).parent


@pytest.mark.parametrize("words", [("yamllint", "--strict", "."), ("ansible-lint", "--offline", "--nocolor")])
def test_lint(words: tuple[str, ...], tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [BIN / words[0], *words[1:]],
        cwd=CHECKOUT / "ansible", capture_output=True, text=True, check=False, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
