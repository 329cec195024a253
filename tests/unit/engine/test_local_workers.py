"""Worker processes on machines that refuse what they need."""

from __future__ import annotations

import subprocess
import sys

from support.cell_init_kit import may_mount


def test_a_machine_without_semaphores_is_told_so() -> None:
    """The remedy is named; no traceback, no bare errno."""
    code = "from netwarp.engine.local_workers import LocalWorkers; LocalWorkers(1, None)"
    covered = ["sh", "-c", 'mount -t tmpfs -o ro none /dev/shm && exec "$@"', "sh", sys.executable, "-c", code]
    done = subprocess.run([*may_mount(), *covered], capture_output=True, text=True, check=False, timeout=300)
    assert "worker processes need POSIX semaphores" in done.stderr.splitlines()[-1]
    assert "tmpfs on /dev/shm" in done.stderr.splitlines()[-1]
