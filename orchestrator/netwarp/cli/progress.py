"""Progress of a run on stderr: cells done, virtual seconds per wall second, time left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from types import TracebackType
from typing import Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from ..core.numbers import fixed
from ..core.types import Cell, CellOutcome, Outcome
from ..core.units import counted_of
from ..engine.events import CellFinished, CellsFinished, CellsStarted, CellTime, Event, Notice
from .escaped_streams import indented
from .output import EscapedConsole

PLAIN_EVERY_S = 10.0


class TerminalProgress:
    """The engine's progress events on stderr."""

    def __init__(self, named: set[str] | None = None) -> None:
        """named: gets the ids of cells that did not complete, which were printed with their reason."""
        self._cells: CellsProgress | None = None
        self._named = set() if named is None else named

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self(CellsFinished())

    def __call__(self, event: Event) -> None:
        """Show an event."""
        if isinstance(event, Notice):
            print(f"netwarp: {indented(event.text)}", file=sys.stderr, flush=True)
        elif isinstance(event, CellsStarted):
            self._cells = CellsProgress(event.cells, event.finished)
        elif self._cells is None:
            return  # a cell of a calibration
        elif isinstance(event, CellTime):
            self._cells.virtual(event.cell_id, event.virtual_s)
        elif isinstance(event, CellFinished):
            self._cells.finished(event.cell, event.outcome)
            if event.outcome.outcome is not Outcome.COMPLETED:
                self._named.add(event.cell.id)
        else:
            self._cells.close()
            self._cells = None


def _left(seconds: float) -> str:
    """The time left; a cell whose virtual time is over may still be packed and analysed."""
    return f"{fixed(seconds, 0)} s left" if seconds >= 1 else "ending"


class CellsProgress:
    """A bar on a terminal, a line every ten seconds elsewhere; cells that did not complete are always named."""

    def __init__(self, cells: tuple[Cell, ...], finished: Iterable[str] = ()) -> None:
        self._console = EscapedConsole(sys.stderr)
        self._total = len(cells)
        self._done = 0
        self._duration_s = {cell.id: cell.duration_ns / 1e9 for cell in cells}
        self._running: dict[str, float] = {}
        self._over: set[str] = set()
        self._finished_s = 0.0  # of planned durations: what is left is known of these only
        self._simulated_s = 0.0  # a cell whose flows end by bytes ends before its duration
        self._left_s = sum(self._duration_s.values())
        self._started = self._said = time.monotonic()
        self._bar = Progress(
            TextColumn("cells"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[speed]}"),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            transient=True,
        )
        self._task = self._bar.add_task("", total=self._total, speed="", left="")
        for cell_id in finished:
            if cell_id in self._duration_s:
                self._done += 1
                self._left_s -= self._duration_s[cell_id]
        self._bar.update(self._task, completed=self._done)
        self._bar.start()

    def close(self) -> None:
        """Take the bar away."""
        self._bar.stop()

    def virtual(self, cell_id: str, virtual_s: float) -> None:
        """A running cell has reached this virtual time."""
        if cell_id in self._over or cell_id not in self._duration_s:  # heard after its end; none of the plan's
            return
        self._running[cell_id] = min(max(0.0, virtual_s), self._duration_s[cell_id])
        self._show()

    def finished(self, cell: Cell, outcome: CellOutcome) -> None:
        """A cell has its outcome."""
        self._done += 1
        self._over.add(cell.id)
        self._running.pop(cell.id, None)
        self._finished_s += self._duration_s[cell.id]
        self._simulated_s += outcome.virtual_s or 0.0
        if outcome.outcome is not Outcome.COMPLETED:
            self._console.print(f"{outcome.outcome} {cell.id}: {outcome.reason}", markup=False, soft_wrap=True)
            for line in outcome.console_tail:
                self._console.print(f"    {line}", markup=False, soft_wrap=True)
        self._show()

    @property
    def speed(self) -> float:
        """Virtual seconds per wall second since the start."""
        wall_s = time.monotonic() - self._started
        return (self._simulated_s + sum(self._running.values())) / wall_s if wall_s > 0 else 0.0

    def _show(self) -> None:
        passed = self._finished_s + sum(self._running.values())
        wall_s = time.monotonic() - self._started
        left = _left(wall_s * max(0.0, self._left_s / passed - 1)) if passed > 0 and self._done < self._total else ""
        speed = f"{fixed(self.speed, 0 if self.speed >= 10 else 1)} virtual s/s"
        self._bar.update(self._task, completed=self._done, speed=speed, left=left)
        now = time.monotonic()
        if not self._console.is_terminal and now - self._said >= PLAIN_EVERY_S:
            self._said = now
            print(
                f"netwarp: {', '.join(filter(None, (counted_of(self._done, self._total, 'cell'), speed, left)))}",
                file=sys.stderr,
                flush=True,
            )
