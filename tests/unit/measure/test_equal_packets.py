"""Equal packets where links hold some at the end: the first of them came, the later one waits."""

from __future__ import annotations

import numpy as np
import pytest
from netwarp.measure.passages import first_of_equal_ones

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
