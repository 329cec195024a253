"""Senders for another machine: the spec's keys, the steps, and the messages where something is missing."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Cell
from netwarp.sandbox import user_programs as programs
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import Step
from support.cells import two_path_cell
from support.specs import BASE, plan_of, problems_of, replaced


def arm64_cell(protocol: str = "sctp") -> Cell:
    flow = two_path_cell().flows[0]
    options: dict[str, object] = {"arch": "arm64"}
    changed = msgspec.structs.replace(
        flow, protocol=protocol, paths=flow.paths[:1], sender_options=options, receiver_options={}
    )
    return two_path_cell(flows=(changed,))


def sender_step(cell: Cell) -> Step:
    steps = compile_cell(cell, Clock(t0_after_ready_ns=10**9)).steps
    return next(one for one in steps if ("id", "ftp.sender") in one.fields)


@pytest.mark.parametrize(("protocol", "bare"), [("sctp", True), ("tcp", False)])
def test_the_emulator_runs_the_sender_and_sctp_does_without_options(protocol: str, bare: bool) -> None:
    item = sender_step(arm64_cell(protocol))
    words = [value for key, value in item.fields if key == "arg"]
    assert words[:2] == ["qemu-aarch64-static", "bin/sender-arm64"]
    assert ("--bare" in words) is bare
    assert "--arch" not in words, "the testbed's, not the program's"
    assert "qemu-aarch64-static sender-arm64 --protocol" in item.command


def test_the_spec_knows_one_other_machine() -> None:
    named = BASE + 'sender = { arch = "arm64" }\n'
    assert plan_of(named).cells[0].flows[0].sender_options == {"arch": "arm64"}
    assert "arm64" in problems_of(BASE + 'sender = { arch = "arm" }\n')[0]
    bare = replaced('protocol = "tcp"', 'protocol = "sctp"') + "sender = { bare = true }\n"
    assert plan_of(bare).cells[0].flows[0].sender_options == {"bare": True}
    assert "no option of a tcp sender" in problems_of(BASE + "sender = { bare = true }\n")[0]


def test_a_missing_machine_is_reported_with_its_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cell = arm64_cell()
    assert programs.missing_arch(two_path_cell(), tmp_path) == ""
    assert "make android" in programs.missing_arch(cell, tmp_path)
    built = tmp_path / programs.BUILT["arm64"]
    built.parent.mkdir(parents=True)
    built.write_bytes(b"program")
    monkeypatch.setattr(programs, "SEARCHED", str(tmp_path))
    assert "no qemu-aarch64-static on this machine" in programs.missing_arch(cell, tmp_path)
    (tmp_path / "cell" / "bin").mkdir(parents=True)
    programs.install_arch(cell, tmp_path, tmp_path / "cell")
    assert (tmp_path / "cell" / "bin" / "sender-arm64").stat().st_mode & 0o111
