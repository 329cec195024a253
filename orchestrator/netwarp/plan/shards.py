"""Divides a plan into shards, each every N-th cell, for machines that run independently; and merges their plans."""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ..core.errors import SpecError
from .types import Plan

_SHARD = re.compile(r"shard (\d+)/(\d+)")


def parse_shard(text: str) -> tuple[int, int]:
    """ "3/20" -> (3, 20). Raises SpecError."""
    numbers = re.fullmatch(r"(\d+)/(\d+)", text)
    if numbers is None or not 1 <= int(numbers[1]) <= int(numbers[2]):
        raise SpecError(f"--shard {text}: wants a number of so many, from 1/N to N/N, e.g. --shard 3/20")
    return int(numbers[1]), int(numbers[2])


def shard_of(plan: Plan, number: int, of: int) -> Plan:
    """The plan of the cells `number`, `number` + `of`, ..., so that long and short cells are spread over all shards.
    Raises SpecError.
    """
    cells = plan.cells[number - 1 :: of]
    if not cells:
        raise SpecError(f"--shard {number}/{of}: is empty: the plan has {len(plan.cells)} cells")
    return msgspec.structs.replace(plan, cells=cells, filters=(*plan.filters, f"shard {number}/{of}"))


def merged_plan(shards: Sequence[Plan]) -> Plan:
    """The plan that these are all shards of. Raises SpecError if one is missing, or if they are shards of different
    plans.
    """
    numbers = [_SHARD.fullmatch(plan.filters[-1]) if plan.filters else None for plan in shards]
    if not all(numbers):
        raise SpecError(
            "merge wants runs made with --shard, or one of --only base and one of --only robustness; compare and agree "
            "hold whole runs against each other"
        )
    by_number = {int(number[1]): plan for number, plan in zip(numbers, shards, strict=True) if number is not None}
    (of, *others) = {int(number[2]) for number in numbers if number is not None}
    missing = [f"{number}/{of}" for number in range(1, of + 1) if number not in by_number]
    if others or len(by_number) < len(shards) or missing:
        why = f"shards {', '.join(missing)} are missing" if missing and not others else "a shard is there twice"
        raise SpecError(f"merge wants every shard of one run, once: {'of different numbers' if others else why}")
    ordered = [by_number[number] for number in range(1, of + 1)]
    cells = [plan.cells[row] for row in range(len(ordered[0].cells)) for plan in ordered if row < len(plan.cells)]
    whole = [msgspec.structs.replace(plan, cells=tuple(cells), filters=plan.filters[:-1]) for plan in ordered]
    if any(plan != whole[0] for plan in whole):
        raise SpecError("merge: these are not shards of one plan; plan.json and outputs.json of each say what it was")
    return whole[0]
