"""Calls the parts of cell-init that make no system call, through apps/cell-init/test_driver.c (built with ASan and
UBSan) over a pipe.
"""

from __future__ import annotations

import json
import subprocess
from typing import Any

from support.checkout import BUILD, make_apps

PROGRAM = BUILD / "san" / "cell-init-test-driver"


class Driver:
    """One running cell-init-test-driver. A finding of a sanitiser ends it, and the question after it fails."""

    def __init__(self) -> None:
        make_apps("../build/san/cell-init-test-driver")
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([PROGRAM], stdin=pipe, stdout=pipe, stderr=pipe)

    def ask(self, name: str, data: bytes) -> dict[str, Any]:
        """Ask one question; the answer is one record."""
        assert self.process.stdin and self.process.stdout and self.process.stderr
        try:
            self.process.stdin.write(f"{name} {len(data)}\n".encode() + data)
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        line = self.process.stdout.readline()
        assert line, (name, data, self.process.stderr.read().decode(errors="replace"))
        answer: dict[str, Any] = json.loads(line)
        assert answer["record"] == name
        return answer

    def close(self) -> None:
        """End it; asserts that it ended well (leaks are findings too)."""
        _, errors = self.process.communicate(timeout=300)
        assert self.process.returncode == 0, errors.decode(errors="replace")
