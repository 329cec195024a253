"""The interface of a back end, between a plan and the machine that runs its cells."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from ..core.types import Cell, CellOutcome, Problem
from ..store.run_dir import RunDir


class Interrupted(Exception):
    """The back end was closed while the cell ran; nothing of the cell is kept."""


class Backend(Protocol):
    """run_cell leaves a finished cell directory, or (Interrupted) nothing. progress: called with a cell's id and its
    current time.
    """

    name: str
    progress: Callable[[str, float], None]

    def check(self) -> list[Problem]:
        """The problems that prevent this back end from running here; empty: none."""

    def check_place(self, directory: Path) -> None:
        """Raise SpecError if its sandboxes would not see a cell in this directory."""

    def run_cell(self, cell: Cell, run: RunDir) -> CellOutcome:
        """Run one cell. Failures inside the cell become an Outcome and are never raised. Raises Interrupted,
        StoreError.
        """

    def close(self) -> None:
        """Stop everything at once, from any thread; idempotent."""
