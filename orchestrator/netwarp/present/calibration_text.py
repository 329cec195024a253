"""A profile in words: what it says, and behind each number what was measured of it."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.invocation import command
from ..measure.calibration import Row
from .profile_table import HEAD, events_of, profile_lines, source_of


def profile_words(name: str, title: str, rows: Sequence[Row]) -> list[str]:
    """What a profile says, as lines; behind each number what was measured of it, or how to measure it."""
    heads = [head.strip() for head in HEAD.strip("|\n").split("|")][2:]
    lines = [f"{name}: {title}"]
    mine = [row for row in rows if row.probe == name]
    for line in profile_lines(name, mine):
        _, way, *cells = (cell.strip() for cell in line.strip("|\n").split("|"))
        words = [f"{head} {cell.replace(' → ?', '')}" for head, cell in zip(heads, cells, strict=True) if cell]
        lines.append(f"  {way}: {'; '.join(words)}")
    lines += [f"  event {event}: {words}" for event, words in events_of(name).items()]
    if mine:
        lines.append("  configured → measured here (of jitter: what its distribution comes to)")
    else:
        lines.append(f"  not measured on this machine yet: {command('calibrate', name)}")
    return [*lines, f"  source: {source_of(name)}"]
