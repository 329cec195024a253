"""Batches of cells for a cluster's tasks: several short cells, one long cell, small ones at the end."""

from __future__ import annotations

import pytest
from netwarp.engine.execute import BATCH_S, MOST_CELLS, Batches


def seen(*walls_s: float) -> Batches:
    batches = Batches()
    for wall_s in walls_s:
        batches.ended(wall_s)
    return batches


def test_before_any_cell_has_ended_one_at_a_time() -> None:
    assert seen().size(1000, 2) == 1


@pytest.mark.parametrize(
    ("wall_s", "cells"),
    [(0.0, MOST_CELLS), (0.01, MOST_CELLS), (0.3, MOST_CELLS), (0.75, 4), (2.9, 1), (BATCH_S, 1), (60.0, 1)],
)
def test_a_batch_takes_about_three_seconds(wall_s: float, cells: int) -> None:
    assert seen(wall_s).size(1000, 2) == cells


def test_it_follows_the_cells_that_ended_last() -> None:
    assert seen(*[60.0] * 5, *[0.1] * 50).size(1000, 2) == MOST_CELLS


def test_the_last_cells_are_shared_out() -> None:
    """However many wait, all are given out, and no worker gets what another could run meanwhile."""
    batches, waiting, sizes = seen(0.1), 100, []
    while waiting:
        size = batches.size(waiting, 4)
        assert size == 1 or size * 4 * 2 <= waiting
        sizes.append(size)
        waiting -= size
    assert sum(sizes) == 100 and sizes[0] == MOST_CELLS and sizes[-1] == 1
