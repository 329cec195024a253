"""Ways in which a kernel runs programs: asked of the kernel itself, kept in the cache, switched off by the user.

Kernels here are shell scripts that print what a kernel would; tests/guest/sandbox/test_seccomp.py boots real ones.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.core.errors import KernelError
from netwarp.guestkernel.cache import RECORD
from netwarp.guestkernel.seccomp import ANSWER, SWITCH, mode_of

FILTER = "Checking that seccomp filters can be installed...OK"
RAN = "Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000000"


@pytest.fixture(autouse=True)
def no_switch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)


def kernel(folder: Path, *lines: str, release: str = "7.2.13", recorded: bool = True) -> Path:
    """Each start leaves a line in `starts`."""
    folder.mkdir(exist_ok=True)
    binary = folder / "linux"
    said = "\n".join(f"echo '{line}'" for line in lines)
    binary.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {release} && exit\necho >> {folder}/starts\n{said}\n')
    binary.chmod(0o755)
    if recorded:
        (folder / RECORD).write_text(json.dumps({"release": release}))
    return binary


def starts(binary: Path) -> int:
    path = binary.parent / "starts"
    return len(path.read_text().splitlines()) if path.exists() else 0


@pytest.mark.parametrize("recorded", [True, False])
def test_a_kernel_that_boots_so_runs_so(tmp_path: Path, recorded: bool) -> None:
    binary = kernel(tmp_path, FILTER, RAN, recorded=recorded)
    assert mode_of(binary, tmp_path) == "seccomp"
    assert starts(binary) == 1
    assert (tmp_path / ANSWER).exists() == recorded


@pytest.mark.parametrize(
    "lines",
    [
        (RAN,),  # ignores the parameter
        (FILTER.replace("OK", "missing"), "SECCOMP userspace requested but not functional!"),
        (FILTER, "Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b"),
    ],
)
def test_a_kernel_that_does_not_stays_on_ptrace(tmp_path: Path, lines: tuple[str, ...]) -> None:
    binary = kernel(tmp_path, *lines)
    assert mode_of(binary, tmp_path) == "ptrace"
    assert not (tmp_path / ANSWER).exists()


@pytest.mark.parametrize("recorded", [True, False])
def test_an_older_release_is_not_asked(tmp_path: Path, recorded: bool) -> None:
    binary = kernel(tmp_path, FILTER, RAN, release="6.12.117", recorded=recorded)
    assert mode_of(binary, tmp_path) == "ptrace"
    assert starts(binary) == 0


def test_an_answer_is_kept_for_this_machine_only(tmp_path: Path) -> None:
    binary = kernel(tmp_path / "a", FILTER, RAN)
    assert mode_of(binary, tmp_path) == "seccomp"
    # another process would find it, without a boot
    other = kernel(tmp_path / "b", RAN)
    (other.parent / ANSWER).write_bytes((binary.parent / ANSWER).read_bytes())
    assert mode_of(other, tmp_path) == "seccomp"
    assert starts(other) == 0
    answer = json.loads((binary.parent / ANSWER).read_text())
    (other.parent / ANSWER).write_text(json.dumps(answer | {"host_kernel": "another"}))
    assert mode_of(other, tmp_path) == "ptrace"
    assert starts(other) == 1


def test_it_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    binary = kernel(tmp_path, FILTER, RAN)
    monkeypatch.setenv(SWITCH, "off")
    assert mode_of(binary, tmp_path) == "ptrace"
    assert starts(binary) == 0
    monkeypatch.setenv(SWITCH, "on")
    assert mode_of(binary, tmp_path) == "seccomp"
    monkeypatch.setenv(SWITCH, "yes")
    with pytest.raises(KernelError, match="NETWARP_SECCOMP=yes: is on"):
        mode_of(binary, tmp_path)


def test_without_room_for_a_guest_none_is_started(tmp_path: Path) -> None:
    binary = kernel(tmp_path, FILTER, RAN)
    assert mode_of(binary, None) == "ptrace"
    assert starts(binary) == 0
