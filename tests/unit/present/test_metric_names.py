"""Lists of metrics: every metric of the catalogue has a group, and titles are words."""

from __future__ import annotations

from netwarp.core.metrics.catalogue import GROUPS, METRICS
from netwarp.core.outputs import SERIES
from netwarp.present.figures.over_time import series_titles
from netwarp.present.run_data import GROUP_ORDER, unit_beside


def test_every_metric_of_the_catalogue_is_in_a_group_with_a_title_in_words() -> None:
    assert {metric.group for metric in METRICS.values()} == set(GROUPS)
    assert GROUP_ORDER[1:] == tuple(GROUPS.values())
    titles = [metric.title for metric in METRICS.values()]
    assert len(set(titles)) == len(titles) > 100
    assert not [title for title in titles if "_" in title or not title]


def test_no_series_says_its_unit_twice() -> None:
    found = series_titles()
    assert found["packets_s"] == {"title": "packets per second", "unit": ""}
    assert found["goodput_bit_s"]["unit"] == "bit/s"
    assert set(found) == set(SERIES), "every series has a title"
    for one in found.values():
        assert one["unit"].partition("/")[0] not in one["title"].split()
    assert unit_beside("goodput", "bit/s") == "bit/s"
