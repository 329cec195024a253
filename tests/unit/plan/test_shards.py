"""Shards of a plan, and the plan that all of them make."""

from __future__ import annotations

import random

import msgspec
import pytest
from netwarp.core.errors import SpecError
from netwarp.plan.shards import merged_plan, parse_shard, shard_of
from netwarp.plan.types import Plan
from support.specs import BASE, plan_of


def plan(cells: int) -> Plan:
    levels = ", ".join(f'"{number} ms"' for number in range(cells))
    return plan_of(BASE.replace('"20 ms"', '"{delay}"') + f"[factor.delay]\nlevels = [{levels}]\n")


@pytest.mark.parametrize(("cells", "of"), [(1, 1), (7, 1), (7, 2), (7, 3), (6, 3), (7, 7)])
def test_every_cell_is_in_one_shard_and_all_of_them_make_the_plan(cells: int, of: int) -> None:
    whole = plan(cells)
    shards = [shard_of(whole, number, of) for number in range(1, of + 1)]
    ids = [cell.id for shard in shards for cell in shard.cells]
    assert sorted(ids) == sorted(cell.id for cell in whole.cells)
    assert max(len(one.cells) for one in shards) - min(len(one.cells) for one in shards) <= 1
    random.Random(cells).shuffle(shards)
    assert merged_plan(shards) == whole


def test_what_does_not_make_a_plan() -> None:
    whole = plan(7)
    one, two, three = (shard_of(whole, number, 3) for number in (1, 2, 3))
    other = shard_of(msgspec.structs.replace(whole, seed=9), 3, 3)
    for shards, why in (
        ([one, three], "shards 2/3 are missing"),
        ([one, two, three, three], "a shard is there twice"),
        ([one, two, shard_of(whole, 3, 4)], "of different numbers"),
        ([one, two, whole], "wants runs made with --shard"),
        ([one, two, other], "not shards of one plan"),
    ):
        with pytest.raises(SpecError, match=why):
            merged_plan(shards)


@pytest.mark.parametrize("text", ["", "3", "0/2", "3/2", "1/0", "a/b", "-1/2", "1/2/3"])
def test_no_shard(text: str) -> None:
    with pytest.raises(SpecError, match=r"e\.g\. --shard 3/20"):
        parse_shard(text)


def test_more_shards_than_cells() -> None:
    assert parse_shard("3/20") == (3, 20)
    with pytest.raises(SpecError, match="--shard 8/20: is empty: the plan has 7 cells"):
        shard_of(plan(7), 8, 20)
