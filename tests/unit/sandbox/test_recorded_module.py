"""The Ansible module that prepares a machine: a kernel module that comes by being tried is a change as any other.

The kernels of the laboratory have no modules, so the list of them and `modprobe` are stood for by a file here.
"""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from netwarp.core.checkout import CHECKOUT

FILE = CHECKOUT / "ansible/collections/ansible_collections/netwarp/hosts/plugins/modules/recorded.py"


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    pytest.importorskip("ansible")
    spec = importlib.util.spec_from_file_location("recorded", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "LOADED", str(tmp_path / "modules"))
    monkeypatch.setattr(module, "DIRECTORY", str(tmp_path / "kept"))
    monkeypatch.setattr(module, "RECORD", str(tmp_path / "kept" / "changes.json"))
    (tmp_path / "modules").write_text("veth 40960 0 - Live 0x0\n")
    return module


def machine(recorded: ModuleType, check: bool, by_itself: bool) -> Any:
    """A machine whose kernel loads sctp when it is tried, or has it built in."""
    file = Path(recorded.LOADED)

    def run_command(words: list[str]) -> tuple[int, str, str]:
        assert words == ["modprobe", "-r", "sctp"]
        file.write_text(file.read_text().replace("sctp 1 0 - Live 0x0\n", ""))
        return 0, "", ""

    def has(name: str) -> bool:
        if by_itself and "sctp" not in recorded.loaded():
            file.write_text(file.read_text() + "sctp 1 0 - Live 0x0\n")
        return True

    made = recorded.Machine(SimpleNamespace(check_mode=check, run_command=run_command))
    made.has = has
    return made


def test_a_module_that_came_by_being_tried_is_recorded_and_goes_with_the_rest(recorded: ModuleType) -> None:
    first = machine(recorded, check=False, by_itself=True)
    first.feature("sctp")
    assert first.said == ["modprobe sctp"]
    assert json.loads(Path(recorded.RECORD).read_text()) == [{"kind": "module", "name": "sctp", "before": None}]
    second = machine(recorded, check=False, by_itself=True)
    second.feature("sctp")
    assert second.said == [], "it is there now"
    machine(recorded, check=False, by_itself=True).restore()
    assert recorded.loaded() == {"veth"}
    assert not Path(recorded.DIRECTORY).exists()


def test_a_check_takes_away_what_it_loaded(recorded: ModuleType) -> None:
    made = machine(recorded, check=True, by_itself=True)
    made.feature("sctp")
    assert (made.said, recorded.loaded()) == (["modprobe sctp"], {"veth"})
    assert not Path(recorded.RECORD).exists()


def test_what_is_built_in_is_no_change(recorded: ModuleType) -> None:
    made = machine(recorded, check=False, by_itself=False)
    made.feature("sctp")
    assert made.said == [] and not Path(recorded.RECORD).exists()
    Path(recorded.LOADED).unlink()
    assert recorded.loaded() == set()
