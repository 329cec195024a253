"""`netwarp shell`: mistakes are reported before anything is set up."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.engine.shell import node_environment
from support.specs import BASE


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


def test_a_shell_has_the_programs_of_sbin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greeting names ip(8), and tc(8) is what one looks with; an ordinary user's own PATH comes first."""
    monkeypatch.setenv("PATH", "/opt/bin:/usr/bin:/bin")
    path = node_environment("a")["PATH"].split(":")
    assert path[:3] == ["/opt/bin", "/usr/bin", "/bin"]
    assert {"/usr/sbin", "/sbin"} <= set(path)
