"""Differences of a netwarp that was installed from its wheel; action.yml and its script have the same inputs."""

from __future__ import annotations

import importlib.metadata
import re
import sys

import pytest
import yaml
from netwarp.core import extras
from netwarp.doctor import distribution
from support.checkout import ROOT


@pytest.mark.parametrize(
    ("extra", "packages"), [("cluster", ["cryptography>=42", "distributed>=2025.1"]), ("hosts", ["ansible-core>=2"])]
)
def test_an_extra_is_installed_by_one_command(extra: str, packages: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert extras.install_extra(extra) == "make setup EXTRAS=all"
    wanted = [f"{name}; extra == '{of}'" for of, names in (("x", ["y"]), (extra, packages)) for name in names]
    monkeypatch.setattr(extras, "INSTALLED", True)
    monkeypatch.setattr(importlib.metadata, "requires", lambda _: ["numpy>=1", *wanted])
    said = extras.install_extra(extra)
    assert said.split()[:4] == [sys.executable, "-m", "pip", "install"]
    assert [word.strip("'") for word in said.split()[4:]] == packages


def test_a_wheel_is_installed_into_the_environment_that_runs() -> None:
    assert distribution.wheel("netwarp-kernel") == f"{sys.executable} -m pip install netwarp-kernel"


def test_the_action_hands_every_input_to_its_script() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = (step for step in action["runs"]["steps"] if "run" in step)
    assert step["env"] == {name.upper().replace("-", "_"): f"${{{{ inputs.{name} }}}}" for name in action["inputs"]}
    script = (ROOT / ".ci/action.sh").read_text()
    assert set(step["env"]) <= set(re.findall(r"\$\{?([A-Z_]+)\b", script))
