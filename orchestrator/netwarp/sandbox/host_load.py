"""Measures how the host disturbs a wall-clock cell: stolen CPU time, load, and steps of the clock."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from ..core.numbers import percent
from ..core.types import Check
from ..store.environment import HostLoad

STEAL_LIMIT = 0.02
"""Share of the CPU time during the cell taken by other guests of the same machine (proc_stat(5)); above it the cell is
INVALID.
"""
STEAL = 7


SLEW = 500e-6
STEP_NS = 1_000_000
"""CLOCK_REALTIME against CLOCK_MONOTONIC: adjtimex(2) slews by at most 500 ppm; a change above that plus 1 ms is a
step.
"""


class SteadyClock:
    """Detects whether somebody sets the clock that a cell's timeline and captures use. It must look often: a step back
    and forth counts.
    """

    def __init__(self) -> None:
        self._at_ns = time.monotonic_ns()
        self._offset_ns, self._unsure_ns = _realtime_offset()
        self._worst_ns = 0

    def look(self) -> None:
        """Compare the clocks now with the last time."""
        at_ns = time.monotonic_ns()
        offset_ns, unsure_ns = _realtime_offset()
        moved = offset_ns - self._offset_ns
        slewed = int(SLEW * (at_ns - self._at_ns)) + unsure_ns + self._unsure_ns
        if abs(moved) - slewed > abs(self._worst_ns):
            self._worst_ns = moved
        self._at_ns, self._offset_ns, self._unsure_ns = at_ns, offset_ns, unsure_ns

    def check(self) -> Check:
        """The check: steps of more than 1 ms make the cell INVALID."""
        self.look()
        return Check(
            "clock", abs(self._worst_ns) <= STEP_NS, f"set by {self._worst_ns} ns while the cell ran, at most {STEP_NS}"
        )


def _realtime_offset() -> tuple[int, int]:
    """CLOCK_REALTIME minus CLOCK_MONOTONIC, and the possible error: another process may run between the two reads."""
    offsets = []
    for _ in range(5):
        before, now, after = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        offsets.append((after - before, now - (before + after) // 2))
    unsure_ns, offset_ns = min(offsets)
    return offset_ns, unsure_ns


@dataclass(frozen=True, slots=True)
class HostState:
    """Counters of /proc/stat, in ticks over all CPUs, and the load at one moment."""

    total: int
    steal: int
    load_1min: float

    def since(self, before: HostState) -> tuple[HostLoad, list[Check]]:
        """For environment.json: load before and after and the share of stolen time; and the checks they must pass."""
        total = self.total - before.total
        steal = (self.steal - before.steal) / total if total else 0.0
        return HostLoad((before.load_1min, self.load_1min), round(steal, 6)), [
            Check(
                "steal time", steal <= STEAL_LIMIT, f"{percent(steal)} of the CPU time, at most {percent(STEAL_LIMIT)}"
            )
        ]


def host_state() -> HostState:
    """Now."""
    ticks = [int(text) for text in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]]
    return HostState(sum(ticks[: STEAL + 1]), ticks[STEAL], os.getloadavg()[0])
