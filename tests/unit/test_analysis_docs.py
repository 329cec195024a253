"""docs/metrics.md names every metric and every column there is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.analysis.metrics import FLOW_METRICS
from orchestrator.analysis.native import layouts
from orchestrator.spec.failover import FAILOVER_METRICS, THEORY
from orchestrator.spec.metrics import METRICS

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "metrics.md").read_text()


def test_every_column_of_every_table_is_listed() -> None:
    section = PAGE[PAGE.index("## The tables") :]
    for table, layout in layouts().items():
        (row,) = re.findall(rf"^\| `{table}` \|.*\| (.*) \|$", section, re.MULTILINE)
        columns = [name + ("[2]" if layout[name].shape == (2,) else "") for name in layout.names or ()]
        assert row.split(", ") == columns


def test_every_metric_is_defined() -> None:
    (section,) = re.findall(r"## The metrics of a flow\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == sorted(
        FLOW_METRICS, key=lambda name: section.index(f"`{name}`")
    )
    assert set(METRICS) == {*FLOW_METRICS, *FAILOVER_METRICS, "jain_index"}
    assert "`jain_index`" in section


def test_every_metric_of_failover_is_defined() -> None:
    (section,) = re.findall(r"## Failover\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([\w<>]+)`", row)]
    whats = [*THEORY.values(), "rto"]
    known = {name.replace("<what>", what) for name in names for what in whats}
    assert known - {"rto_as_theory"} == set(FAILOVER_METRICS)
    assert all(f"`{name}`" in section for name in (*THEORY, *whats))
