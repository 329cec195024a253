"""What the host did while a cell ran on its clock: a busy or borrowed CPU makes a wall-clock cell late."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..testbed.readback import Check

STEAL_LIMIT = 0.02
"""Of all CPU time during the cell, taken by other guests of the same machine (proc_stat(5)): above it, INVALID."""
STEAL = 7


@dataclass(frozen=True, slots=True)
class HostState:
    """Counters of /proc/stat, in ticks over all CPUs, and the load at one moment."""

    total: int
    steal: int
    load_1min: float

    def since(self, before: HostState) -> tuple[dict[str, Any], list[Check]]:
        """For environment.json: load before and after, share of stolen time; and the checks they must pass."""
        total = self.total - before.total
        steal = (self.steal - before.steal) / total if total else 0.0
        found = {"load_1min": [before.load_1min, self.load_1min], "steal_ratio": round(steal, 6)}
        return found, [
            Check("steal time", steal <= STEAL_LIMIT, f"{steal:.2%} of the CPU time, at most {STEAL_LIMIT:.0%}")
        ]


def host_state() -> HostState:
    """Now."""
    ticks = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return HostState(sum(ticks[: STEAL + 1]), ticks[STEAL], os.getloadavg()[0])
