"""The result of comparing two runs: how they were made, their cells, their numbers, and their first packets that
differ. `netwarp compare`, `agree` and `verify` each print a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from ..measure.first_divergence import Divergence
from ..store.digests import StoredFiles
from ..store.manifest import Manifest
from .compared_numbers import Comparison, Levels, Moved

DIGEST = 12
Compared = tuple[int, tuple[str, ...]]
"""How many are equal, and the names of those that are not."""
CellStatus = Literal["equal", "differ", "no captures", "ended differently", "not finished", "only in A", "only in B"]


@dataclass(frozen=True, slots=True)
class Side:
    """One of two runs. title, part: of its plan. outcomes, late: how its cells ended, and how late the host let them
    wake, in words. again: cells that were rerun, and why.
    """

    name: str
    path: Path
    manifest: Manifest
    title: str = ""
    part: str = ""
    outcomes: str = ""
    late: str = ""
    again: tuple[str, ...] = ()

    @property
    def kernel(self) -> str:
        """Release and hash of its kernel."""
        return named_kernel(self.manifest)


def named_kernel(manifest: Manifest) -> str:
    """Release and hash of a run's kernel."""
    return f"{manifest.kernel_release}, sha256 {manifest.kernel_sha256[:DIGEST]}"


@dataclass(frozen=True, slots=True)
class CellPair:
    """A cell and its like in the other run: of the same content, whatever their ids (None: there is none).

    equal: all captures are, byte for byte. captures: those that differ, as <node>-<link>. words: what differs first, or
    why nothing could be compared; "" where that was not asked for.
    """

    a: str | None
    b: str | None
    status: CellStatus
    words: str = ""
    captures: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """Its id, B's where they differ."""
        return self.b or self.a or ""


@dataclass(frozen=True, slots=True)
class StoredRun:
    """same_software: the run's numbers and tables were made by this netwarp, so that they have to be equal.

    tables, numbers, judgements, planned (cells that follow from the spec), outputs (parts of outputs.json that do):
    (equal, names of those that differ); None: not compared. seed: "" or what is wrong.
    """

    files: StoredFiles
    same_software: bool
    tables: Compared | None = None
    numbers: Compared | None = None
    judgements: Compared | None = None
    planned: Compared | None = None
    outputs: Compared | None = None
    seed: str = ""
    notes: tuple[str, ...] = field(default=())

    @property
    def differs(self) -> bool:
        """True where something is not what it has to be."""
        made_again = (
            (self.tables, self.numbers, self.judgements, self.planned, self.outputs) if self.same_software else ()
        )
        return bool(self.files.changed or self.seed or any(each is not None and each[1] for each in made_again))


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs. made: differences in how they were made. numbers: None where nothing asked for them, or where
    `without_numbers` says why they cannot be compared.

    divergences: for combinations with a number that differs, the first packets that differ at the senders. files: where
    equal files are asked for, the tables and measurements that differ, in words. out: the directory of both runs, where
    they were made to be compared.
    """

    a: Side
    b: Side
    made: tuple[Moved, ...] = ()
    cells: tuple[CellPair, ...] = ()
    numbers: Comparison | None = None
    without_numbers: str = ""
    divergences: Mapping[Levels, tuple[Divergence, ...]] = field(default_factory=dict)
    files: tuple[str, ...] = ()
    stored: StoredRun | None = None
    """Of A, where it was verified."""
    out: Path | None = None

    def count(self, *statuses: CellStatus) -> int:
        """How many cells have one of these statuses."""
        return sum(pair.status in statuses for pair in self.cells)

    @property
    def unequal(self) -> tuple[CellPair, ...]:
        """The cells whose captures are not equal, or could not be compared."""
        return tuple(pair for pair in self.cells if pair.status != "equal")
