"""`netwarp explain --ladder`: a file for the picture, or a capture that stands behind it."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.cli import main
from support.captures import recorded


def test_what_is_no_picture_is_a_capture(capsys: pytest.CaptureFixture[str]) -> None:
    (capture,) = recorded("sctp", "a", ["p1"])
    printed = []
    for words in (["--ladder", str(capture)], [str(capture), "--ladder"]):
        assert main(["explain", *words, "--rows", "6"]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1]
    assert "INIT ACK" in printed[0]


def test_a_picture_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (capture,) = recorded("sctp", "a", ["p1"])
    assert main(["explain", str(capture), "--ladder", str(tmp_path / "ladder.svg")]) == 0
    assert (tmp_path / "ladder.svg").read_text(encoding="utf-8").startswith("<svg")
    assert "INIT ACK" not in capsys.readouterr().out


def test_no_capture_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "--ladder"]) == 2
    assert "name a CAPTURE" in capsys.readouterr().err
