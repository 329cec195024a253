"""Results of an exploration: its coverage after each number of cells, and its findings."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from .changes import Change
from .oracles import Wrong


class Step(msgspec.Struct, frozen=True):
    """A point of the coverage curve: after so many cells."""

    cells: int
    wall_s: float
    cpu_s: float
    arcs: int
    lines: int
    functions: int


@dataclass(slots=True)
class Finding:
    """What is wrong in some schedules. changes: of the smallest; cells: ids of all that showed it."""

    wrong: Wrong
    root: int
    changes: tuple[Change, ...]
    cells: list[str] = field(default_factory=list)
    first_at: int = 0
    name: str = ""
