"""docs/analyze.md names every key of `netwarp analyze --json` and every table of --csv."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp import analyze_captures
from netwarp.present.captures.csv_files import write_tables
from support.captures import recorded
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "analyze.md").read_text()
TABLES_OF_A_PROTOCOL = ("sctp_", "tcp_", "mptcp_")
"""docs/analyze.md names these files by their prefix only; docs/metrics.md lists what is in them."""


@pytest.mark.parametrize(("name", "links"), [("tcp", ["p1"]), ("sctp", ["p1", "p2"]), ("mptcp", ["p1", "p2"])])
def test_keys_and_tables_are_documented(name: str, links: list[str], tmp_path: Path) -> None:
    analyzed = analyze_captures([file for node in "ab" for file in recorded(name, node, links)], join=True)
    everything = analyzed.as_json()
    file, join = everything["files"][0], everything["join"]
    flow = file["flows"][0]
    objects = [everything, file, flow, flow["directions"][0], flow["paths"][0], *file["mptcp"]]
    objects += [join, join["points"][0], join["hops"][0]]
    assert sorted(key for each in objects for key in each if f"`{key}`" not in PAGE) == []
    write_tables(tmp_path, analyzed.files, analyzed.join)
    tables = [path.name for path in tmp_path.glob("*.csv") if not path.name.startswith(TABLES_OF_A_PROTOCOL)]
    assert sorted(table for table in tables if f"`{table}`" not in PAGE) == []
