"""Which levels of a factor are numbers of one scale."""

from __future__ import annotations

import pytest
from netwarp.present.figures.description import Scale, level_scale


@pytest.mark.parametrize(
    ("levels", "titles", "scale"),
    [
        (["500 ms", "1 s"], None, Scale((0.5, 1.0), "s")),
        (["50 packets", "300 packets", "fq_codel"], None, Scale((50, 300, None), "packets")),
        (["0", "2", "10", "pf off"], None, Scale((0, 2, 10, None), "")),
        (["1e-2", "1e-3"], None, Scale((0.01, 0.001), "")),
        (["1", "2", "-"], ["1 stream", "2 streams", "without"], Scale((1, 2, None), "streams")),
        (["a", "b"], ["2 flows", "2 and short ones"], None),
        (["6.1", "6.12"], None, None),
        (["000", "017"], None, None),
        (["4 to 6 s", "8 to 12 s"], None, None),
        (["10 packets (Linux)", "1 packet (the paper's)"], None, None),
        (["1 bdp", "50 packets"], None, None),
        (["10 ms"], None, None),
    ],
)
def test_levels_of_one_unit_are_a_scale(levels: list[str], titles: list[str] | None, scale: Scale | None) -> None:
    assert level_scale(levels, titles or levels) == scale
