"""Write the lists of metrics.md from the catalogue, between its `<!-- metrics GROUP -->` and `<!-- end -->`.

    .venv/bin/python docs/metric_lists.py [--check]

--check: write nothing; exit status 1 where the page is not what the catalogue says.
"""

import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from re import DOTALL, Match, sub
from textwrap import fill

from netwarp.core.metrics.catalogue import METRICS, CatalogueMetric

PAGE = Path(__file__).with_name("metrics.md")
FLOWS = {
    "every": "",
    "connection": "TCP, MPTCP, SCTP",
    "TCP": "TCP, MPTCP",
    "messages": "netwarp's own senders",
    "datagrams": "netwarp's own UDP",
    "cell": "of the cell",
    "group": "of groups",
    "measured": "of flows and links, with [measure]",
    "link": "of links, with [measure]",
}


def entry(metrics: Sequence[CatalogueMetric]) -> str:
    """Metrics of one definition as an item of a list."""
    first = metrics[0]
    names = ", ".join(f"`{metric.name}`" for metric in metrics)
    units = ", ".join(dict.fromkeys(metric.unit for metric in metrics))
    facts = [units, first.captured_at, "" if first.flows == "several" else FLOWS.get(first.flows, first.flows)]
    text = f"- {names} ({'; '.join(fact for fact in facts if fact)}): {first.definition}"
    return fill(text, 158, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


def listed(group: str) -> str:
    """Every metric of a group, in the order of the catalogue."""
    metrics = [metric for metric in METRICS.values() if metric.group == group]
    alike = groupby(metrics, key=lambda metric: (metric.definition, metric.flows, metric.captured_at))
    return "\n".join(entry(list(same)) for _, same in alike)


def page(text: str) -> str:
    """The page with every list between its markers."""

    def between(found: Match[str]) -> str:
        return f"<!-- metrics {found[1]} -->\n{listed(found[1])}\n<!-- end -->"

    return sub(r"<!-- metrics (\w+) -->\n.*?<!-- end -->", between, text, flags=DOTALL)


if __name__ == "__main__":
    before = PAGE.read_text(encoding="utf-8")
    after = page(before)
    if "--check" in sys.argv[1:]:
        sys.exit(f"{PAGE.name} is not what the catalogue says: run {sys.argv[0]}" if before != after else 0)
    PAGE.write_text(after, encoding="utf-8")
