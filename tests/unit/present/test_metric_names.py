"""Lists of metrics: every metric of the contract has a group, and titles are words."""

from __future__ import annotations

import re

from netwarp.present.figures.over_time.data import SERIES_TITLES, series_titles
from netwarp.present.metric_names import GROUP_ORDER, OTHER, group_of, unit_beside
from support.checkout import ROOT

DOCS = ROOT / "docs" / "metrics.md"


def documented() -> set[str]:
    """The names in the first column of the tables that define metrics of flows and cells."""
    text = DOCS.read_text(encoding="utf-8").partition("## The spec's own metrics")[0]
    first = [line.split("|")[1] for line in text.splitlines() if line.startswith("| `")]
    return {name for cell in first for name in re.findall(r"`([a-z0-9_]+)`", cell)}


def test_every_metric_has_a_group() -> None:
    names = documented()
    assert len(names) > 90
    assert {name for name in names if group_of(name) == OTHER} == set()
    assert {group_of(name) for name in names} == set(GROUP_ORDER) - {OTHER, GROUP_ORDER[0]}


def test_no_series_says_its_unit_twice() -> None:
    found = series_titles()
    assert found["packets_s"] == {"title": "packets per second", "unit": ""}
    assert found["goodput_bit_s"]["unit"] == "bit/s"
    assert set(found) == set(SERIES_TITLES)
    for one in found.values():
        assert one["unit"].partition("/")[0] not in one["title"].split()
    assert unit_beside("goodput", "bit/s") == "bit/s"
