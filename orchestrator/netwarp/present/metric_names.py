"""The titles of metrics on the page: of the catalogue's by name, of a spec's own the title that it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.metrics.catalogue import GROUPS, METRICS
from ..core.numbers import WORDLESS
from ..plan.types import Plan


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric's heading, base unit, and the heading of the group it is listed in."""

    name: str
    title: str
    unit: str
    group: str = ""


OWN = "The experiment's own"
GROUP_ORDER = (OWN, *GROUPS.values())
"""The order of a list of metrics: those that are looked for most stand first."""
_SPELLED = {"rtt": "RTT", "rto": "RTO", "t3": "T3", "hol": "head-of-line", "sacks": "SACKs", "p95": "95th percentile"}


def metric_names(plan: Plan, units: Mapping[str, str]) -> dict[str, Metric]:
    """Every metric of the plan and of the tables. units: as measurements.csv states them."""
    own = {metric.name: metric for metric in plan.metrics if metric.name not in METRICS}
    names: dict[str, Metric] = {}
    for name in dict.fromkeys([*(metric.name for metric in plan.metrics), *units]):
        if name in METRICS:
            metric = METRICS[name]
            names[name] = Metric(name, metric.title, metric.unit, GROUPS[metric.group])
        else:
            title, unit = (own[name].title, own[name].unit) if name in own else ("", "")
            title = title if title and title != name else _words(name)
            names[name] = Metric(name, title, units.get(name) or unit, OWN)
    return names


def unit_beside(title: str, unit: str) -> str:
    """The unit to show beside a title; empty if the title says it already ("packets (packets)", "packets per
    second").
    """
    rate = unit.endswith("/s") and title.endswith("per second")
    return "" if rate or unit in WORDLESS or unit in title.replace(",", "").split() else unit


def _words(name: str) -> str:
    """A metric's name without its unit: "paper_throughput_byte_s" -> "paper throughput"."""
    bare = re.sub(r"_(byte_s|bit_s|s|bytes|packets|ratio)$", "", name)
    return " ".join(_SPELLED.get(word, word) for word in bare.split("_"))
