"""Compares two runs: how they were made, whether their captures are equal, and which numbers differ beyond noise."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.types import Cell
from ..measure.capture_point import capture_file
from ..plan.types import Plan
from ..results import Results
from ..results.compare import Comparison, Moved, compare
from ..sandbox.choose import lateness_s
from ..store.manifest import Manifest
from ..store.run_dir import CellDir, RunDir, read_json
from .run_directory import Run, open_run

MADE_BY = {
    "spec": "spec",
    "spec_sha256": "text of the spec",
    "seed": "seed",
    "repetitions": "repetitions",
    "backend": "back end",
    "kernel_release": "kernel",
    "kernel_sha256": "kernel binary",
    "programs": "programs in the guest",
    "software": "software that analysed",
    "netwarp_version": "netwarp",
    "git_commit": "commit",
    "git_dirty": "uncommitted changes",
    "tools": "Python packages",
    "host_kernel": "host kernel",
    "host_cpu": "host CPU",
}
"""Fields of the manifest that may explain a difference, and how they are called."""
DIGEST = 12


@dataclass(frozen=True, slots=True)
class CaptureComparison:
    """The cells that both runs completed under the same id: how many have equal captures byte for byte, and for how
    many the captures, and the digests that the analysis keeps of them, are missing.
    """

    same_id: int
    same_captures: int
    without_captures: int


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Two runs. made: differences in how they were made. clock_s: resolution of the less exact of their clocks."""

    a: Run
    b: Run
    made: tuple[Moved, ...]
    comparison: Comparison
    captures: CaptureComparison
    clock_s: float


def compare_runs(a: str | Path, b: str | Path) -> RunComparison:
    """Compare two run directories. Raises StoreError, CaptureError."""
    first, second = open_run(a), open_run(b)
    clock_s = max(lateness_s(run.manifest.backend) for run in (first, second))
    return RunComparison(
        first,
        second,
        _made(first.manifest, second.manifest) + _planned(first.plan, second.plan),
        compare(first.results, second.results, clock_s),
        compare_captures(first.directory, second.directory, first.results, second.results),
        clock_s,
    )


def _made(a: Manifest, b: Manifest) -> tuple[Moved, ...]:
    """Differences in how the runs were made."""
    sets = [" ".join(manifest.sets) or "-" for manifest in (a, b)]
    return (Moved("--set", *sets),) * (sets[0] != sets[1]) + tuple(
        Moved(title, _said(getattr(a, field), getattr(b, field)), _said(getattr(b, field), getattr(a, field)))
        for field, title in MADE_BY.items()
        if getattr(a, field) != getattr(b, field)
    )


def _planned(a: Plan, b: Plan) -> tuple[Moved, ...]:
    """Differing parameters and selections (--only, --where)."""
    said = [{**plan.parameters, "part": " ".join(plan.filters) or "everything"} for plan in (a, b)]
    return tuple(
        Moved(name, *(str(values.get(name, "-")) for values in said))
        for name in dict.fromkeys([*said[0], *said[1]])
        if said[0].get(name) != said[1].get(name)
    )


def _said(value: Any, other: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_short(text)}" for key, text in value.items() if other.get(key) != text) or "-"
    return "unknown" if value is None else _short(str(value))


def _short(text: str) -> str:
    """A shortened digest; other values unchanged."""
    hexadecimal = len(text) >= 40 and all(letter in "0123456789abcdef" for letter in text)
    return text[:DIGEST] if hexadecimal else text


def compare_captures(run_a: RunDir, run_b: RunDir, a: Results, b: Results) -> CaptureComparison:
    """Compare the captures of the cells that both runs completed."""
    cells = [cell for cell in a.plan.cells if a.completed(cell.id) and b.completed(cell.id)]
    equal = without = 0
    for cell in cells:
        same = _same_captures(cell, run_a.cell(cell.id), run_b.cell(cell.id))
        equal += same is True
        without += same is None
    return CaptureComparison(len(cells), equal, without)


def _same_captures(cell: Cell, a: CellDir, b: CellDir) -> bool | None:
    """True if a cell's captures are equal, by the files; if they were removed, by the digests that the analysis kept.
    None: not known.
    """
    files = [_capture_files(cell, directory) for directory in (a, b)]
    if files[0] is not None and files[1] is not None:
        return all(x.read_bytes() == y.read_bytes() for x, y in zip(files[0], files[1], strict=True))
    kept = [read_json(side.packets, dict[str, str]) if side.packets.exists() else {} for side in (a, b)]
    return kept[0] == kept[1] if all(kept) else None


def _capture_files(cell: Cell, directory: CellDir) -> list[Path] | None:
    """A cell's captures, in the order of the plan; None if one is missing."""
    files = [capture_file(directory.root, capture.node, capture.link) for capture in cell.captures]
    there = [path for path in files if path is not None]
    return there if len(there) == len(files) else None
