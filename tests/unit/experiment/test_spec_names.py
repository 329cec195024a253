"""A spec by its name: an experiment that comes with netwarp, unless the working directory has one of that name."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from netwarp.experiment.load import EXPERIMENTS, find_spec


def test_a_name_that_is_also_a_path_here_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.WARNING):
        assert find_spec("choi2009") == EXPERIMENTS / "choi2009/spec.toml"
        monkeypatch.chdir(EXPERIMENTS.parent)
        assert find_spec("choi2009").samefile(EXPERIMENTS / "choi2009/spec.toml")
        assert caplog.messages == []
        monkeypatch.chdir(tmp_path)
        own = Path("choi2009/spec.toml")
        own.parent.mkdir()
        own.write_text("")
        assert find_spec("choi2009") == own
    assert caplog.messages == [f"choi2009 is {own} here; the experiment of that name is {EXPERIMENTS / own}"]
