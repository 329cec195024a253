"""Finds levels of a factor that gave identical packets: settings without effect, for example one that equals the
default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..plan.types import Plan, PlannedFactor

Digests = Mapping[str, str]
"""Capture -> digest of its packets, of one cell."""


@dataclass(frozen=True, slots=True)
class Identical:
    """Levels of one factor whose cells are equal in every packet of every capture, and the number of cells compared per
    level.
    """

    factor: str
    levels: tuple[str, ...]
    cells: int

    @property
    def sentence(self) -> str:
        """In words."""
        *most, last = (f'"{level}"' for level in self.levels)
        cells = f"all {self.cells} cells" if self.cells > 1 else "the one cell"
        return (
            f'levels {", ".join(most)} and {last} of factor "{self.factor}" gave identical packets in {cells} of each'
        )


def identical_levels(plan: Plan, digests: Mapping[str, Digests]) -> list[Identical]:
    """Levels that made no difference wherever two cells differ in nothing else. digests: by cell id, of the COMPLETED
    cells whose captures were hashed; other cells are not compared.
    """
    known = [(cell, digests[cell_id]) for cell in plan.cells if digests.get(cell_id := cell.id)]
    identical: list[Identical] = []
    for factor in plan.factors:
        if factor.schedule is not None:
            continue  # a lost packet that changes nothing is a result, not a setting without effect
        beside: dict[str, dict[object, Digests]] = {}
        for cell, packets in known:
            rest = tuple(pair for pair in sorted(cell.factors.items()) if pair[0] != factor.name)
            levels = beside.setdefault(cell.factors.get(factor.name, "-"), {})
            levels[cell.experiment, cell.repetition, rest] = packets
        identical += _of_factor(factor, beside)
    return identical


def _of_factor(factor: PlannedFactor, beside: Mapping[str, Mapping[object, Digests]]) -> list[Identical]:
    """Groups of levels in which each level equals every other one."""
    groups: list[list[str]] = []
    for level in (each.name for each in factor.levels if each.name in beside):
        for group in groups:
            if all(_compared(beside[other], beside[level]) for other in group):
                group.append(level)
                break
        else:
            groups.append([level])
    return [Identical(factor.name, tuple(group), _cells(group, beside)) for group in groups if len(group) > 1]


def _compared(a: Mapping[object, Digests], b: Mapping[object, Digests]) -> bool:
    """True if there is something to compare, and all of it is equal."""
    shared = a.keys() & b.keys()
    return bool(shared) and all(a[place] == b[place] for place in shared)


def _cells(group: Sequence[str], beside: Mapping[str, Mapping[object, Digests]]) -> int:
    return min(len(beside[a].keys() & beside[b].keys()) for number, a in enumerate(group) for b in group[number + 1 :])
