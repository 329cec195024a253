"""Floating-point registers of a guest's programs: seed.so does not set again what has not changed (apps/guest/seed.c).

Processes have a host process each, threads share one: whatever ran last on it, each finds its own values again.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.cell_init_kit import guest_command

SOURCE = Path(__file__).with_name("guest_registers.c")


def test_processes_threads_and_signal_handlers_keep_their_registers(kernel: Path, tmp_path: Path) -> None:
    subprocess.run(["gcc", "-O1", "-static", "-pthread", "-o", tmp_path / "init", SOURCE], check=True)
    subprocess.run(guest_command(kernel, tmp_path), check=True, timeout=300)
    said = [line for line in (tmp_path / "console.txt").read_text().splitlines() if line.startswith("@")]
    assert said == ["@kept 1203 of 1203"]
