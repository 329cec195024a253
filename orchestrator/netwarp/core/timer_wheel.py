"""The levels of the kernel's timer wheel: how late a timer may fire. Every other file takes them from here.

Linux 6.12, kernel/time/timer.c: level n begins at LVL_START(n) = (LVL_SIZE - 1) << ((n - 1) * LVL_CLK_SHIFT) jiffies
(line 165) and has slots of LVL_GRAN(n) = 1 << (n * LVL_CLK_SHIFT) jiffies (line 158). calc_wheel_index() chooses the
level by LVL_START; the ranges in the comment above it (64, 512, 4096 ms) are one slot longer than that. calc_index()
rounds up to the end of the slot: a timer never fires early, and is late by at most one slot.
"""

from __future__ import annotations

HZ = 1000
"""Jiffies per second of the guest kernel (CONFIG_HZ in kernel/fragment.config)."""
LVL_CLK_SHIFT = 3
LVL_SIZE = 1 << 6
LVL_DEPTH = 9
LATENESS_RATIO = (1 << LVL_CLK_SHIFT) / (LVL_SIZE - 1)
"""Timers from level 1 on (63 ms) are late by at most 8/63 (12.7 %) of their length: a slot divided by the level's
start.
"""


def level_start_s(level: int) -> float:
    """The shortest timer of a level, in seconds."""
    return ((LVL_SIZE - 1) << ((level - 1) * LVL_CLK_SHIFT)) / HZ if level else 0.0


def slot_s(duration_s: float) -> float:
    """Width in seconds of the slots for a timer of this duration: the timer fires late by at most that."""
    level = max(level for level in range(LVL_DEPTH) if level_start_s(level) <= max(duration_s, 0.0))
    return (1 << (level * LVL_CLK_SHIFT)) / HZ
