"""docs/analyze.md lists every key that `netwarp analyze --json` prints and every table that --csv writes."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp import analyze_captures
from netwarp.present.captures.csv_files import write_tables
from support.captures import recorded
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "analyze.md").read_text()
PROTOCOL_TABLES = ("sctp_", "tcp_", "mptcp_")
"""The beginnings of tables of one protocol. The page names such a table by its pattern; docs/metrics.md lists its
columns.
"""


@pytest.mark.parametrize(("protocol", "links"), [("tcp", ["p1"]), ("sctp", ["p1", "p2"]), ("mptcp", ["p1", "p2"])])
def test_every_key_and_table_is_documented(protocol: str, links: list[str], tmp_path: Path) -> None:
    analyzed = analyze_captures([file for node in "ab" for file in recorded(protocol, node, links)], join=True)
    output = analyzed.as_json()
    file, join = output["files"][0], output["join"]
    flow = file["flows"][0]
    objects = [output, file, flow, flow["directions"][0], flow["paths"][0], *file["mptcp"]]
    objects += [join, join["points"][0], join["hops"][0]]
    assert sorted(key for each in objects for key in each if f"`{key}`" not in PAGE) == []
    write_tables(tmp_path, analyzed.files, analyzed.join)
    tables = [path.name for path in tmp_path.glob("*.csv") if not path.name.startswith(PROTOCOL_TABLES)]
    assert sorted(table for table in tables if f"`{table}`" not in PAGE) == []
