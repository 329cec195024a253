"""What `netwarp calibrate` prints: a line a profile, what is off, the table of the profiles' README."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from ..core.invocation import command
from ..core.numbers import DASH, given, percent
from ..measure.calibration import Row
from .profile_table import HEAD, events_of, profile_lines, profile_table, source_of

NOT_COMPLETED = "completed"
"""Unit of the row of a probe that did not complete: 0 of 1 completed."""


def show(title: str, rows: Sequence[Row], *, full: bool) -> None:
    """The summary, then every comparison (`full`) or those that are off."""
    console = Console(highlight=False)
    console.print(_summary(title, rows))
    listed = [row for row in rows if row.unit != NOT_COMPLETED and (full or not row.ok)]
    if listed:
        console.print(_rows(listed))
    for row in rows:
        if row.unit == NOT_COMPLETED:  # a sentence, no number
            console.print(f"{row.probe}: {row.quantity}", markup=False, soft_wrap=True)
    console.print(f"{sum(row.ok for row in rows)} of {len(rows)} within bounds")


def markdown(rows: Sequence[Row]) -> None:
    """The table of netem-profiles/README.md."""
    print(profile_table(rows), end="")


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


def share(row: Row) -> float:
    """How much of its bound a comparison used up; of an exact one 0 or, where it is off, more than 1."""
    if row.measured is None:
        return float("inf")
    off = abs(row.measured - row.configured)
    return off / row.bound if row.bound else (2.0 if not row.ok else 0.0)


def _summary(title: str, rows: Sequence[Row]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("probe", "within bounds", "nearest to its bound"):
        table.add_column(name)
    for probe in dict.fromkeys(row.probe for row in rows):
        mine = [row for row in rows if row.probe == probe]
        good, worst = sum(row.ok for row in mine), max(mine, key=share)
        words = f"{percent(min(share(worst), 9.99), 2)} of it: {worst.quantity}" if worst.bound else "all exact"
        mark = "" if good == len(mine) else "[bold red]OFF [/]"
        table.add_row(probe, f"{mark}{good} of {len(mine)}", words if worst.ok else f"beyond: {worst.quantity}")
    return table


def _rows(rows: Sequence[Row]) -> Table:
    table = Table()
    for name in ("probe", "quantity", "configured", "measured", "off by", "bound", "unit", ""):
        table.add_column(name, justify="right" if name in ("configured", "measured", "off by", "bound") else "left")
    for row in rows:
        measured = DASH if row.measured is None else given(row.measured)
        difference = DASH if row.measured is None else given(row.measured - row.configured, 3)
        table.add_row(
            row.probe, row.quantity, given(row.configured), measured, difference, given(row.bound, 3),
            row.unit, "ok" if row.ok else "[bold red]OFF[/]",
        )  # fmt: skip
    return table
