"""docs/metrics.md lists the metrics, the tables, and the totals, series and events of each protocol, and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from netwarp.captures import read_captures
from netwarp.captures.mptcp import analyze_mptcp
from netwarp.captures.native import layouts
from netwarp.captures.sctp import analyze_sctp
from netwarp.captures.tcp import analyze_tcp
from netwarp.captures.tcp.connection import EVENT_NAMES
from netwarp.core.metrics.catalogue import GROUPS, METRICS
from support.captures import recorded
from support.checkout import ROOT
from support.docs_kit import listed_names
from support.tcp_story import Story

PAGE = (ROOT / "docs" / "metrics.md").read_text()


def test_every_table_is_described() -> None:
    section = PAGE[PAGE.index("## The tables") : PAGE.index("Rules worth knowing:")]
    assert set(re.findall(r"of\s`(\w+)`", section)) == set(layouts())


def test_the_lists_of_metrics_are_those_of_the_catalogue() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "docs" / "metric_lists.py", "--check"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert re.findall(r"^<!-- metrics (\w+) -->$", PAGE, re.MULTILINE) == list(GROUPS)
    assert [heading for heading in re.findall(r"^### (.*)$", PAGE, re.MULTILINE) if heading in GROUPS.values()] == [
        *GROUPS.values()
    ]
    assert set(METRICS) <= set(re.findall(r"`(\w+)`", PAGE.partition("## Programs of your own")[0]))


def test_every_total_of_sctp_and_mptcp_is_defined() -> None:
    for heading, totals in (("SCTP", sctp_totals()), ("MPTCP", mptcp_totals())):
        (section,) = re.findall(rf"## {heading}\n(.*?)\n## ", PAGE, re.DOTALL)
        patterns = [re.escape(name).replace(r"\*", r"\w+") for name in listed_names(section)]
        assert [name for name in totals if not any(re.fullmatch(one, name) for one in patterns)] == []
        assert [one for one in patterns if not any(re.fullmatch(one, name) for name in totals)] == []


def sctp_totals() -> list[str]:
    return list(analyze_sctp(read_captures(recorded("sctp", "a", ["p1", "p2"])), 0).totals)


def mptcp_totals() -> list[str]:
    return list(analyze_mptcp(read_captures(recorded("mptcp", "a", ["p1", "p2"])))[0].totals)


def test_every_total_series_and_event_of_tcp_is_defined(tmp_path: Path) -> None:
    (section,) = re.findall(r"\n## TCP\n(.*?)\n## ", PAGE, re.DOTALL)
    connection = analyze_tcp(Story().handshake().data(40, 1).ack(80, 1001).capture(tmp_path), 0)
    assert sorted(listed_names(section)) == sorted(connection.totals)
    (series,) = re.findall(r"\*\*Series\*\*(.*?)\*\*Events\*\*", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", series)) == set(connection.series)
    events = set(re.findall(r"`(\w+)`", section[section.index("**Events**") :]))
    assert {*EVENT_NAMES.values(), "syn", "fin", "rst", "zero_window"} <= events
