"""`netwarp compare backends`: mistakes in its arguments, and a back end that cannot run here."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.cli import main
from support.specs import BASE


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--backends", "virtual"], "wants two different ones of virtual, guest, netns"),
        (["--backends", "virtual,hosts"], "--inventory FILE belongs to the back end hosts"),
        (["--backends", "virtual,guest", "--inventory", "rack.yml"], "--inventory FILE belongs to the back end hosts"),
        (["--backends", "virtual,fast"], "wants two different ones"),
        (["--backends", "virtual,virtual"], "wants two different ones"),
        ([], "netwarp compare backends RUN_A RUN_B"),
        (["--backends", "virtual,guest", "--resume"], "--resume wants --out"),
        (["--backends", "virtual,guest", "--jobs", "0"], "--jobs 0: at least 1"),
        (["there", "--backends", "virtual,guest"], "one of the two"),
        (["spec.toml"], "spec.toml: is no run directory"),
    ],
)
def test_mistakes_run_nothing(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "spec.toml").write_text(BASE)
    assert main(["compare", "backends", "spec.toml", *arguments]) == 2
    assert says in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]


def test_a_back_end_that_cannot_run_here_is_77_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NETWARP_KERNEL", str(tmp_path / "none"))
    (tmp_path / "spec.toml").write_text(BASE)
    assert main(["compare", "backends", "spec.toml", "--backends", "virtual,guest"]) == 77
    assert "the virtual back end cannot run here" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["spec.toml"]
