"""docs/metrics.md, TCP, names every total, series and event there is, and none that is not."""

from __future__ import annotations

import re
from pathlib import Path

from netwarp.captures.tcp import analyze_tcp
from netwarp.captures.tcp.tcp_events import NAMES
from support.checkout import ROOT
from support.docs_kit import listed_names
from support.tcp_story import Story

PAGE = (ROOT / "docs" / "metrics.md").read_text()


def test_every_total_series_and_event_is_defined(tmp_path: Path) -> None:
    (section,) = re.findall(r"\n## TCP\n(.*?)\n## ", PAGE, re.DOTALL)
    connection = analyze_tcp(Story().handshake().data(40, 1).ack(80, 1001).capture(tmp_path), 0)
    assert sorted(listed_names(section)) == sorted(connection.totals)
    (series,) = re.findall(r"\*\*Series\*\*(.*?)\*\*Events\*\*", section, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", series)) == set(connection.series)
    events = set(re.findall(r"`(\w+)`", section[section.index("**Events**") :]))
    assert {*NAMES.values(), "syn", "fin", "rst", "zero_window"} <= events
