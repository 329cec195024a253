"""Guests whose kernel runs programs with a seccomp filter instead of ptrace: the same captures, nothing left behind,
no need of ptrace, and no memory of a guest that its programs cannot reach.

Skipped where no kernel of Linux 6.16 or later is built: that takes minutes, and CI does not build it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.doctor import memory_dir
from netwarp.guestkernel import list_kernels
from netwarp.guestkernel.recipe import release_numbers
from netwarp.guestkernel.seccomp import ANSWER, FIRST_RELEASE, SWITCH, mode_of
from support.cell_init_kit import busy, guest_command, members, outlived, prepare, wait_ns
from support.chain_kit import Checkout, captures, raw_files, same, tables, two_paths, written
from support.killable import program

PLAIN = [build for build in list_kernels() if not build.variant]
NEWER = next((build for build in PLAIN if release_numbers(build.release) >= FIRST_RELEASE), None)
pytestmark = pytest.mark.skipif(
    NEWER is None,
    reason="no Linux 6.16 or later is built here: netwarp kernel build --source TREE (docs/kernels.md)",
)
KILLS = 20
MEMORY_SOURCE = Path(__file__).with_name("other_process_memory.c")
ATTEMPTS, CAUGHT = 30, 3
PTRACE = 101
"""Its number on x86-64."""
NO_PTRACE = f"""\
import ctypes, os, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
# load the call's number; ptrace: fails with EPERM; any other: allowed (linux/filter.h, linux/seccomp.h)
lines = [(0x20, 0, 0, 0), (0x15, 0, 1, {PTRACE}), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *line) for line in lines))
program = ctypes.create_string_buffer(struct.pack("<HxxxxxxQ", len(lines), ctypes.addressof(code)))
assert libc.prctl(38, 1, 0, 0, 0) == 0 and libc.prctl(22, 2, program) == 0, ctypes.get_errno()
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def newer() -> Path:
    """The kernel's binary."""
    assert NEWER is not None
    return NEWER.binary


def test_a_kernel_is_asked_by_a_boot_and_the_answer_kept(newer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SWITCH, raising=False)
    kept = newer.parent / ANSWER
    kept.unlink(missing_ok=True)
    assert mode_of(newer, memory_dir()) == "seccomp"
    assert kept.exists()


def test_both_ways_give_the_same_files(checkout: Checkout, newer: Path, tmp_path: Path) -> None:
    """TCP and SCTP on two paths, with losses and jitter; captures, records of the apps, environment, tables."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="20 s"))
    for name, switch in (("seccomp", "on"), ("ptrace", "off")):
        more = {"NETWARP_KERNEL": str(newer), SWITCH: switch}
        checkout.run("run", spec, "--out", tmp_path / name, "--no-report", cwd=tmp_path, **more).ok()
        manifest = json.loads((tmp_path / name / "manifest.json").read_bytes())
        assert list(manifest["uml_mode"].values()) == [name]
    same(captures(tmp_path / "seccomp"), captures(tmp_path / "ptrace"))
    same(raw_files(tmp_path / "seccomp"), raw_files(tmp_path / "ptrace"))
    same(tables(tmp_path / "seccomp"), tables(tmp_path / "ptrace"))
    assert len(captures(tmp_path / "ptrace")) >= 6


@pytest.mark.parametrize("mode", ["seccomp", "ptrace"])
@pytest.mark.parametrize("latest_ms", [12, 120], ids=["while it boots", "while it starts processes"])
def test_nothing_outlives_a_killed_kernel(newer: Path, tmp_path: Path, latest_ms: int, mode: str) -> None:
    """kill -9 at random moments. The program in which a guest's process runs asks for its parent's death signal after
    it began, and does not look whether it was too late: seed.so asks before."""
    prepare(tmp_path, busy())
    moments = random.Random(latest_ms)
    options = ["--seccomp"] if mode == "seccomp" else []
    for _ in range(KILLS):
        process = subprocess.Popen(guest_command(newer, tmp_path, *options), stderr=subprocess.DEVNULL)
        wait_ns(process, int(moments.uniform(0.5, latest_ms) * 1e6))
        assert process.poll() is None
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []


@pytest.mark.parametrize("mode", ["seccomp", "ptrace"])
def test_a_process_that_has_just_begun_goes_too(newer: Path, tmp_path: Path, mode: str) -> None:
    """Its kernel is killed while it has not become the program yet that asks for the death signal."""
    prepare(tmp_path, busy())
    options, caught = ["--seccomp"] if mode == "seccomp" else [], 0
    for attempt in range(ATTEMPTS):
        process = subprocess.Popen(guest_command(newer, tmp_path, *options), stderr=subprocess.DEVNULL)
        begun = stopped_child(process, 3 + attempt)
        caught += begun is not None and program(begun) == program(process.pid)
        process.kill()
        process.wait()
        if begun is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(begun, signal.SIGCONT)
        assert outlived(tmp_path) == []
        if caught == CAUGHT:
            return
    if not caught:
        pytest.skip(f"this machine was too slow {ATTEMPTS} times to stop a process that had just begun")


def stopped_child(process: subprocess.Popen[bytes], number: int) -> int | None:
    """The number-th child of a guest's kernel, stopped as soon as it is there; None: the guest has ended."""
    known: set[str] = set()
    while process.poll() is None:
        with contextlib.suppress(OSError):
            now = set(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split())
            new = now - known
            known |= now
            if new and len(known) >= number:
                pid = int(new.pop())
                os.kill(pid, signal.SIGSTOP)
                return pid
    return None


def test_nothing_outlives_a_killed_parent(newer: Path, tmp_path: Path) -> None:
    prepare(tmp_path, busy())
    moments = random.Random(5)
    for _ in range(KILLS):
        shell = ["sh", "-c", '"$@" --parent $$ & wait', "sh", *guest_command(newer, tmp_path, "--seccomp")]
        process = subprocess.Popen(shell, stderr=subprocess.DEVNULL)
        wait_ns(process, int(moments.uniform(0.5, 90) * 1e6))
        assert process.poll() is None
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []


def test_no_process_of_a_guest_is_traced(newer: Path, tmp_path: Path) -> None:
    prepare(tmp_path, busy())
    seen: dict[str, set[str]] = {}
    for options in (["--seccomp"], []):
        process = subprocess.Popen(guest_command(newer, tmp_path, *options), stderr=subprocess.DEVNULL)
        status: list[str] = []
        while not status:
            while len(found := members(tmp_path)) < 3:
                wait_ns(process, 1_000_000)
                assert process.poll() is None
            for pid in found:
                with contextlib.suppress(OSError):  # it has just gone
                    status += [Path(f"/proc/{pid}/status").read_text()] if pid != process.pid else []
        seen[" ".join(options)] = {re.search(r"TracerPid:\t(\d+)", text)[1] == "0" for text in status}  # type: ignore[index]
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []
    assert seen["--seccomp"] == {True}
    assert False in seen[""], "with ptrace they are, once they have begun"


@pytest.mark.parametrize("mode", ["seccomp", "ptrace"])
def test_a_program_reaches_the_memory_of_another_with_seccomp_alone(newer: Path, tmp_path: Path, mode: str) -> None:
    """One process of a guest finds, reads and changes what another one keeps to itself; with ptrace it cannot."""
    subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-static", "-o", tmp_path / "init", MEMORY_SOURCE], check=True)
    options = ["--memory", "64M", *(["--seccomp"] if mode == "seccomp" else [])]
    subprocess.run(guest_command(newer, tmp_path, *options), check=True, timeout=300)
    said = [line for line in (tmp_path / "console.txt").read_text().splitlines() if line.startswith("@")]
    secret = next(line.removeprefix("@secret ") for line in said if line.startswith("@secret "))
    assert len(secret) == 32
    if mode == "seccomp":
        assert said == [f"@read {secret}", f"@secret {secret}", "@changed"]
    else:
        assert said == ["@no memory", f"@secret {secret}", "@kept"]


def test_cells_run_where_ptrace_is_refused(checkout: Checkout, newer: Path, kernel: Path, tmp_path: Path) -> None:
    """As in many containers; the kernel without that mode cannot run there, and says what would help."""
    spec = written(tmp_path / "spec.toml", two_paths())
    for name, binary, status in (("newer", newer, 0), ("stable", kernel, 77)):
        words = ["run", spec, "--backend", "virtual", "--no-report", "--out", tmp_path / name]
        done = subprocess.run(
            [sys.executable, "-c", NO_PTRACE, *checkout.command(*words)],
            env=checkout.environment(tmp_path, NETWARP_KERNEL=str(binary)), cwd=tmp_path, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == status, done
    assert "a kernel that traces nothing: " in done.stderr and "then NETWARP_KERNEL=" in done.stderr
    assert len(os.listdir(tmp_path / "newer" / "cells")) == 2
