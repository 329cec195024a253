"""The interface between a plan and the machines that run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from ..core.types import Cell, CellOutcome, Problem
from ..store.run_dir import RunDir


class Interrupted(Exception):
    """The back end was closed while the cell ran; nothing of the cell is kept."""


class Backend(Protocol):
    """run_cell leaves a finished cell directory behind, or (Interrupted) nothing. progress: called with a cell's id and
    its time as its clock moves on.
    """

    name: str
    progress: Callable[[str, float], None]

    def check(self) -> list[Problem]:
        """What keeps this back end from running here; empty = nothing."""

    def run_cell(self, cell: Cell, run: RunDir) -> CellOutcome:
        """Run one cell. What happens in the cell is an Outcome, never an error. Raises Interrupted, StoreError."""

    def close(self) -> None:
        """Stop everything at once, from any thread; idempotent."""
