"""`netwarp shell`: mistakes are said before anything is set up."""

from __future__ import annotations

from pathlib import Path

import pytest
from specs import BASE

from orchestrator.cli import main


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (["--node", "aa"], 2, 'there is no node "aa", did you mean "a"?'),
        (["--exec"], 2, "--exec needs a command"),
        (["--where", "outage=1s"], 2, "outage"),
    ],
)
def test_mistakes(
    arguments: list[str], status: int, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(BASE)
    assert main(["shell", "spec.toml", *arguments]) == status
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"], "nothing was made"
