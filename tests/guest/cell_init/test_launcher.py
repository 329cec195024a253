"""guest-exec: a guest has the same environment everywhere, ends with its parent, and leaves no process behind."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import pytest
from netwarp.testbed.steps import Step, step
from support.cell_init_kit import (
    T0,
    S,
    built,
    busy,
    ending,
    guest_command,
    may_mount,
    namespaces,
    opening,
    outlived,
    prepare,
    run_guest,
    tool,
    wait_ns,
)

KILLS = 20
EMPTY: list[Step] = [step("sandbox", kind="guest")]
MIB = 1 << 20


@pytest.mark.parametrize("latest_ms", [12, 80], ids=["while it boots", "while it starts processes"])
def test_nothing_outlives_a_killed_kernel(kernel: Path, tmp_path: Path, latest_ms: int) -> None:
    """kill -9 of the kernel's main process at random moments; also between fork and the child's first call."""
    prepare(tmp_path, busy())
    moments = random.Random(latest_ms)
    for _ in range(KILLS):
        process = subprocess.Popen(guest_command(kernel, tmp_path), stderr=subprocess.DEVNULL)
        wait_ns(process, int(moments.uniform(0.5, latest_ms) * 1e6))
        assert process.poll() is None
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []


def test_nothing_outlives_a_killed_parent(kernel: Path, tmp_path: Path) -> None:
    """kill -9 of whoever started guest-exec, at random moments from the very start on."""
    prepare(tmp_path, busy())
    moments = random.Random(3)
    for _ in range(KILLS):
        # --parent: a guest-exec that starts after the kill cannot know by itself who its parent was
        shell = ["sh", "-c", '"$@" --parent $$ & wait', "sh", *guest_command(kernel, tmp_path)]
        process = subprocess.Popen(shell, stderr=subprocess.DEVNULL)
        wait_ns(process, int(moments.uniform(0.5, 60) * 1e6))
        assert process.poll() is None
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []


def test_nothing_but_its_own_directory_is_touched(kernel: Path, tmp_path: Path) -> None:
    """After kill -9: no file in the directory of the guest's memory; the rest is in the cell's own directory."""
    memory, home = tmp_path / "memory", tmp_path / "cell"
    memory.mkdir()
    prepare(home, busy())
    for ns in (3_000_000, 60_000_000):
        process = subprocess.Popen(guest_command(kernel, home, "--tmpdir", str(memory)), stderr=subprocess.DEVNULL)
        wait_ns(process, ns)
        process.kill()
        process.wait()
        assert outlived(home) == []
        assert list(memory.iterdir()) == []
        assert {path.name for path in tmp_path.iterdir()} == {"memory", "cell"}


def test_the_guest_has_the_same_environment_everywhere(kernel: Path, tmp_path: Path) -> None:
    """Command line, environment and descriptors of the running kernel name no path of this machine."""
    directory = tmp_path / "a directory with a long name"
    prepare(directory, busy())
    process = subprocess.Popen(guest_command(kernel, directory, seed=255), stderr=subprocess.DEVNULL)
    try:
        # the guest runs its first program: the kernel is past its start
        poll_until(process, directory / "init.ndjson")
        proc = Path("/proc") / str(process.pid)
        assert (proc / "cmdline").read_bytes().rstrip(b"\0").split(b"\0") == [
            b"linux", b"mem=256M", b"rootfstype=hostfs", b"rootflags=/", b"ro", b"init=/proc/self/cwd/init",
            b"con0=null,fd:1", b"con=null", b"fb_tunnels=none", b"quiet", b"time-travel=inf-cpu",
            b"time-travel-start=1699999990000000000",
        ]  # fmt: skip
        assert (proc / "environ").read_bytes().rstrip(b"\0").split(b"\0") == [
            b"HOME=/proc/self/cwd", b"TMPDIR=/proc/self/fd/5", b"LD_PRELOAD=/proc/self/fd/4",
            b"NETWARP_SEED=00000000000000ff",
        ]  # fmt: skip
        assert (proc / "limits").read_text().splitlines()[5].split()[4:6] == ["0", "0"]  # core file size
        assert (proc / "personality").read_text().strip() == "00040000"  # ADDR_NO_RANDOMIZE
    finally:
        process.kill()
        process.wait()
    assert outlived(directory) == []


def poll_until(process: subprocess.Popen[bytes], path: Path) -> None:
    """Until the file is there; asserts that the process runs so long."""
    for _ in range(10_000):
        if path.exists():
            return
        wait_ns(process, 1_000_000)
        assert process.poll() is None
    raise AssertionError(f"{path} was not written")


def test_memory_and_start_are_options(kernel: Path, tmp_path: Path) -> None:
    show = step("spawn", id="m", ns=0, stdout="m", stderr="e", flow=1, arg=["/bin/cat", "/proc/meminfo"])
    clock = step("clock", t0_after_ready_ns=S)
    steps = [*EMPTY, clock, step("ns", index=0, name="a"), show, step("ready"), ending(S)]
    start = 1_600_000_000 * S
    result = run_guest(kernel, tmp_path, steps, "--memory", "128M", "--start-ns", str(start)).completed()
    assert start < result.records("start")[0]["realtime_ns"] < start + S
    kilobytes = int((tmp_path / "m").read_text().split()[1])
    assert 100 * 1024 < kilobytes < 128 * 1024


def test_the_wall_clock(kernel: Path, tmp_path: Path) -> None:
    """The same steps on the wall clock: T0 follows readiness, and time is the machine's."""
    steps = [*opening(wall=True), *namespaces("a"), tool("x", 0, "exit", 0, 300_000_000), step("ready"), ending(60 * S)]
    began = time.monotonic_ns()
    result = run_guest(kernel, tmp_path, steps, "--mode", "wall").completed()
    took = time.monotonic_ns() - began
    ready = result.records("ready")[0]
    assert ready["t0_realtime_ns"] > T0 + S
    exited = result.records("exit")[0]["t_ns"] + ready["waited_ns"]
    assert 0.25 * S < exited < took


@pytest.mark.parametrize(
    ("change", "status", "message"),
    [
        (["--memory", "lots"], 2, "--memory: 'lots' is not a size"),
        (["--seed", "-1"], 2, "--seed: '-1' is not a whole number"),
        (["--mode", "fast"], 2, "--mode: 'fast' is neither virtual nor wall"),
        (["surplus"], 2, "unexpected argument 'surplus'"),
        (["--kernel", "/nonexistent"], 77, "cannot open /nonexistent: No such file"),
        (["--dir", "/nonexistent"], 77, "/nonexistent: No such file"),
        (["--dir", "/proc"], 77, "/proc/init: No such file"),
        (["--tmpdir", "/nonexistent"], 77, "/nonexistent is not there"),
        (["--tmpdir", "/proc"], 77, "/proc has too little room"),
        (["--memory", "900000G"], 77, "has too little room for the guest's memory"),
        (["--parent", "1"], 1, "the parent has gone"),
        (["--seed-library", "/nonexistent.so"], 77, "cannot open /nonexistent.so"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_arguments_are_refused(
    kernel: Path, tmp_path: Path, change: list[str], status: int, message: str
) -> None:
    result = run_guest(kernel, tmp_path, EMPTY, *change)
    assert result.status == status
    assert message in result.stderr
    assert not (tmp_path / "init.ndjson").exists()


def test_memory_must_be_executable(kernel: Path, tmp_path: Path) -> None:
    """On a directory mounted noexec UML would stop in the middle of its start."""
    prepare(tmp_path / "cell", EMPTY)
    (tmp_path / "memory").mkdir()
    script = 'mount -t tmpfs -o noexec,size=1g tmpfs "$1" && shift && exec "$@"'
    command = guest_command(kernel, tmp_path / "cell", "--tmpdir", str(tmp_path / "memory"))
    mounted = [*may_mount(), "sh", "-c", script, "sh", str(tmp_path / "memory")]
    done = subprocess.run([*mounted, *command], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 77
    assert f"{tmp_path}/memory is mounted noexec" in done.stderr


def test_required_options_and_help() -> None:
    program = built() / "bin" / "guest-exec"
    done = subprocess.run([program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "guest-exec: --kernel, --dir and --seed are required\n")
    shown = subprocess.run([program, "--help"], capture_output=True, text=True, check=True)
    assert "--start-ns N" in shown.stdout


def test_an_init_that_is_no_program_is_reported_on_the_console(kernel: Path, tmp_path: Path) -> None:
    prepare(tmp_path, EMPTY)
    (tmp_path / "init").write_text("not a program")
    done = subprocess.run(guest_command(kernel, tmp_path), check=False, capture_output=True, timeout=300)
    assert done.returncode != 0
    assert "panic" in (tmp_path / "console.txt").read_text(errors="replace").lower()
    assert outlived(tmp_path) == []
