"""Lateness of steps and of senders' connections, as the back end judges it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.sandbox.cell_verdict import check_times
from netwarp.sandbox.virtual import VIRTUAL_LATENESS_NS
from netwarp.store.run_dir import CellDir
from support.cells import two_path_cell


def failed(place: Path, deviation_ns: int, late_ns: int | None) -> list[str]:
    """The checks that fail for a step begun so far from its time and a sender connected so late."""
    directory = CellDir(place)
    directory.apps.mkdir(exist_ok=True)
    said = [] if late_ns is None else [{"record": "start", "late_ns": late_ns}]
    (directory.apps / "ftp.sender.ndjson").write_text("".join(json.dumps(record) + "\n" for record in said))
    records = [
        {"record": "timeline", "verb": "spawn", "at_ns": 5, "t_ns": 5_000_000},
        {"record": "timeline", "verb": "netlink", "at_ns": 10_000, "t_ns": 10_000 + deviation_ns},
    ]
    checks = check_times(two_path_cell(), directory, records, VIRTUAL_LATENESS_NS)
    return [check.check for check in checks if not check.ok]


@pytest.mark.parametrize("sign", [1, -1])
def test_two_microseconds_are_allowed_and_no_more(sign: int, tmp_path: Path) -> None:
    assert failed(tmp_path, sign * 2000, sign * 2000) == []
    assert failed(tmp_path, sign * 2001, 0) == ["timeline"]
    assert failed(tmp_path, 0, sign * 2001) == ["start of ftp"]


def test_a_sender_that_never_began_is_judged_elsewhere(tmp_path: Path) -> None:
    assert failed(tmp_path, 0, None) == []
