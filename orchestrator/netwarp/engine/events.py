"""Progress events: a long call of the engine passes them to its `progress` callback.

The callback runs in the thread of the call; an exception in it stops the call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..core.types import Cell, CellOutcome


@dataclass(frozen=True, slots=True)
class CellsStarted:
    """Cells are about to run. finished: ids of cells that an earlier run finished and that are not run again."""

    cells: tuple[Cell, ...]
    finished: frozenset[str]


@dataclass(frozen=True, slots=True)
class CellTime:
    """A running cell has reached this time of its own clock, in seconds from T0."""

    cell_id: str
    virtual_s: float


@dataclass(frozen=True, slots=True)
class CellFinished:
    """A cell has its outcome."""

    cell: Cell
    outcome: CellOutcome


@dataclass(frozen=True, slots=True)
class CellsFinished:
    """No more cells will run: all are finished, or the run was stopped."""


@dataclass(frozen=True, slots=True)
class Notice:
    """A sentence for the user, such as which back end was chosen and why, or what could not be checked."""

    text: str


Event = CellsStarted | CellTime | CellFinished | CellsFinished | Notice
Progress = Callable[[Event], None]


def no_progress(event: Event) -> None:
    """The default callback: ignores every event."""
