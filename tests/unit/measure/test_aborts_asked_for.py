"""ABORTs, resets and how the ends saw the end, of a sender that aborts as the spec asks and of one that had to."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.store.app_records import Summary
from support.recorded_cell import derive, make_cell, make_directory, write

NAMES = ("aborts", "ends_disagree")


@pytest.mark.parametrize(
    ("options", "reason", "counted"),
    [
        ({}, "stop", False),
        ({"close": "abort"}, "total", False),
        ({"close": "graceful"}, "stop", True),
        ({}, "gave_up", True),
        ({}, "peer_aborted", True),
    ],
)
def test_an_abort_that_was_asked_for_is_no_sign(
    options: dict[str, str], reason: str, counted: bool, tmp_path: Path
) -> None:
    cell = make_cell("tcp", flow={"sender_options": options})
    root = make_directory(cell, "tcp", tmp_path / "cell", reason="aborted", status=0)
    write(root / "apps" / "ftp.sender.ndjson", [Summary(t_ns=0, reason=reason, status=0)])
    metrics = derive(cell, root).metrics
    assert [metrics[name] is not None for name in NAMES] == [counted, counted]
    assert metrics["silence_s"] is not None, "the other promises have their values"
