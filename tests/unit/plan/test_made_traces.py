"""The traces that netwarp ships are what their script makes."""

from __future__ import annotations

import itertools
import runpy

import pytest
from netwarp.experiment.traces import SHIPPED, find_trace, read_trace

MADE = runpy.run_path(str(SHIPPED / "make_lte.py"))


@pytest.mark.parametrize("name", ["down", "up"])
def test_the_script_makes_them(name: str) -> None:
    """With the numbers that netem-profiles/README.md says of them."""
    content = find_trace(f"lte-made.{name}", {})
    assert content is not None
    times = read_trace(content).opportunities_ms
    assert list(times) == list(MADE["opportunities"](*MADE["DIRECTIONS"][name]))
    gaps = [now - before for before, now in itertools.pairwise(times)]
    mean_mbit_s, longest_ms = {"down": (10.37, 244), "up": (3.03, 253)}[name]
    assert (round(len(times) * 12_000 / 60e6, 2), max(gaps), times[-1]) == (mean_mbit_s, longest_ms, 60_000)
