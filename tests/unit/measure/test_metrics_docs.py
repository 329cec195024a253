"""docs/metrics.md names every metric and every column there is, and none that is not."""

from __future__ import annotations

import re

from netwarp.captures import read_captures
from netwarp.captures.mptcp import analyze_mptcp
from netwarp.captures.native import layouts
from netwarp.captures.sctp import analyze_sctp
from netwarp.core.metrics.catalogue import METRICS
from netwarp.core.metrics.failover import FAILOVER_METRICS, THEORY
from netwarp.core.metrics.flow_sharing import TOGETHER_CELL_METRICS, TOGETHER_METRICS
from netwarp.core.metrics.head_of_line import STREAM_WAITING_METRICS, WAITING_METRICS
from netwarp.core.metrics.mptcp import MPTCP_METRICS
from netwarp.core.metrics.physics import PHYSICS_METRICS
from netwarp.core.metrics.sctp import SCTP_METRICS
from netwarp.measure.metrics import FLOW_METRICS
from support.captures import recorded
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "metrics.md").read_text()


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
    waiting = {**WAITING_METRICS, **STREAM_WAITING_METRICS}
    shared = {**TOGETHER_METRICS, **TOGETHER_CELL_METRICS, "jain_index": "ratio"}
    own = {*FAILOVER_METRICS, *SCTP_METRICS, *MPTCP_METRICS, *PHYSICS_METRICS}
    assert set(METRICS) == {*FLOW_METRICS, *own, *waiting, *shared}
    assert "`jain_index`" in section


def test_every_metric_of_failover_is_defined() -> None:
    (section,) = re.findall(r"## Failover\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    names = [name for row in rows for name in re.findall(r"`([\w<>]+)`", row)]
    whats = [*THEORY.values(), "rto"]
    known = {name.replace("<what>", what) for name in names for what in whats}
    assert known - {"rto_as_theory"} == set(FAILOVER_METRICS)
    assert all(f"`{name}`" in section for name in (*THEORY, *whats))


def test_every_metric_of_physics_is_defined() -> None:
    (section,) = re.findall(r"## Physics\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert sorted(name for row in rows for name in re.findall(r"`(\w+)`", row)) == sorted(PHYSICS_METRICS)


def test_every_metric_of_sctp_is_defined() -> None:
    (section,) = re.findall(r"## Metrics of SCTP\n(.*?)\n## ", PAGE, re.DOTALL)
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(SCTP_METRICS)


def test_every_metric_of_mptcp_is_defined() -> None:
    (section,) = re.findall(r"## Metrics of MPTCP\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == list(MPTCP_METRICS)


def test_every_metric_of_head_of_line_delay_is_defined() -> None:
    (section,) = re.findall(r"## Head-of-line delay\n(.*?)\n## ", PAGE, re.DOTALL)
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row)] == [*WAITING_METRICS, *STREAM_WAITING_METRICS]


def test_every_metric_of_flows_together_is_defined() -> None:
    (section,) = re.findall(r"## Together\n(.*?)\n## ", PAGE, re.DOTALL)
    assert re.findall(r"^\| `(\w+)`", section, re.MULTILINE) == list(TOGETHER_METRICS)
    assert all(f"`{name}`" in section for name in TOGETHER_CELL_METRICS)


def test_every_total_of_sctp_and_mptcp_is_defined() -> None:
    for heading, totals in (("SCTP", sctp_totals()), ("MPTCP", mptcp_totals())):
        (section,) = re.findall(rf"## {heading}\n(.*?)\n## ", PAGE, re.DOTALL)
        first = [cell for line in section.splitlines() if line.startswith("| `") for cell in [line.split("|")[1]]]
        patterns = [
            re.escape(name).replace(r"\*", r"\w+") for cell in first for name in re.findall(r"`([\w*]+)`", cell)
        ]
        assert [name for name in totals if not any(re.fullmatch(one, name) for one in patterns)] == []
        assert [one for one in patterns if not any(re.fullmatch(one, name) for name in totals)] == []


def sctp_totals() -> list[str]:
    return list(analyze_sctp(read_captures(recorded("sctp", "a", ["p1", "p2"])), 0).totals)


def mptcp_totals() -> list[str]:
    return list(analyze_mptcp(read_captures(recorded("mptcp", "a", ["p1", "p2"])))[0].totals)
