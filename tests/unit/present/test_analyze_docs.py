"""docs/analyze.md names every key of --json and every table of --csv."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.cli import main
from support.captures import recorded
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "analyze.md").read_text()


def test_keys_and_tables_are_documented(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    keys: set[str] = set()
    tables: set[str] = set()
    for name, links in (("tcp", ["p1"]), ("sctp", ["p1", "p2"]), ("mptcp", ["p1", "p2"])):
        files = [str(path) for node in "ab" for path in recorded(name, node, links)]
        out = tmp_path / name
        assert main(["analyze", "--join", "--json", "--csv", str(out), *files]) == 0
        found = json.loads(capsys.readouterr().out)
        file, join = found["files"][0], found["join"]
        flow = file["flows"][0]
        parts = [found, file, flow, flow["directions"][0], flow["paths"][0], join, join["points"][0], join["hops"][0]]
        keys |= {key for part in [*parts, *file["mptcp"]] for key in part}
        tables |= {path.name for path in out.glob("*.csv")}
    assert [key for key in sorted(keys) if f"`{key}`" not in PAGE] == []
    own = [name for name in sorted(tables) if f"`{name}`" not in PAGE]
    assert all(name.startswith(("sctp_", "tcp_", "mptcp_")) for name in own), own
