"""The Explore view is what its controls say: every drawn point against the run's tables, for the first picture and for
drawn choices.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from urllib.parse import unquote, urlsplit

import pytest
from support.chromium import Page
from support.explore_reader import ExploreReader
from support.page_robot import SIZES

CHOICES = {"small": 2, "large": 10}
"""Of each run, at each of three widths."""


@pytest.mark.parametrize("size", SIZES, ids=lambda size: str(size[0]))
@pytest.mark.parametrize("run", CHOICES)
def test_points_are_those_of_the_controls(
    request: pytest.FixtureRequest, page: Page, run: str, size: tuple[int, int]
) -> None:
    address = request.getfixturevalue(run)
    width, height = size
    page.emulate(width=width, height=height, mobile=width < 600)
    page.open(address)
    reader = ExploreReader(page, Path(unquote(urlsplit(address).path)).parent.parent)
    reader.start()
    faults = reader.faults()
    random = Random(f"{run} {width}")
    changed: list[str] = []
    for _ in range(CHOICES[run]):
        changed.append(reader.change(random))
        faults += [f"after {changed}: {fault}" for fault in reader.faults()]
    assert faults == []
