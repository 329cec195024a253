"""Equal packets where links hold some at the end: the first of them came, the later one waits."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from netwarp.core.link_types import Aqm
from netwarp.measure.passages import Passages, first_of_equal_ones, overtaking_s
from support.recorded_cell import SHAPE

NAN = float("nan")


def test_with_jitter_any_of_the_last_may_wait() -> None:
    """Within the jitter before the last one that came: it equals one that did not come, and need not have come."""
    marks, took, came = np.array([9, 9, 8, 9, 1]), np.array([0.1, NAN, NAN, 0.2, 0.1]), np.arange(5.0)
    np.testing.assert_allclose(first_of_equal_ones(marks, came, took, 0.5), took)
    np.testing.assert_allclose(first_of_equal_ones(marks, came, took, 1.0), [0.1, 2.2, NAN, NAN, 0.1])


@pytest.mark.parametrize(("marks", "took", "found"), [
    ([1, 9, 9], [0.1, NAN, 0.2], [0.1, 1.2, NAN]),
    ([1, 9, 9], [0.1, 0.5, NAN], [0.1, 0.5, NAN]),
    ([9, 1, 9], [NAN, NAN, 0.2], [2.2, NAN, NAN]),
    ([9, 9, 1], [NAN, 0.2, 0.1], [NAN, 0.2, 0.1]),
    ([1, 2], [NAN, NAN], [NAN, NAN]),
])  # fmt: skip
def test_the_last_of_equal_packets_may_wait(marks: list[int], took: list[float], found: list[float]) -> None:
    came = np.arange(len(marks), dtype=np.float64)
    np.testing.assert_allclose(first_of_equal_ones(np.array(marks), came, np.array(took)), found)


@pytest.mark.parametrize(("held", "waiting"), [
    (0, []), (1, [6]), (2, [6, 7]), (3, [4, 6, 7]), (5, [1, 3, 4, 6, 7]), (9, [1, 3, 4, 6, 7]),
])  # fmt: skip
def test_what_is_behind_the_last_that_came_waits_first(held: int, waiting: list[int]) -> None:
    """Of those that it overtook, the last ones: others were dropped before them."""
    took = np.array([0.1, NAN, 0.1, NAN, NAN, 0.1, NAN, NAN])
    none = np.zeros(8, dtype=np.int64)
    found = Passages(np.arange(8.0), took, none, np.arange(8.0) + took, none, np.isnan(took)).holding(held)
    assert np.flatnonzero(found.waiting).tolist() == waiting


def test_packets_of_a_connection_overtake_where_queues_are_hashed() -> None:
    """Linux gives a TCP reset another hash than the data before it: fq_codel has it in another queue."""
    shape = msgspec.structs.replace(SHAPE, rate_bit_s=1_000_000, queue_packets=10, aqm=Aqm("fq_codel", True, {}))
    assert overtaking_s(shape) == 0 < overtaking_s(shape, hashed=True)
    assert overtaking_s(msgspec.structs.replace(shape, aqm=Aqm("codel", True, {})), hashed=True) == 0
