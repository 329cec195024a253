"""The same program as the first process of namespaces, on this machine's own kernel and clock."""

from __future__ import annotations

import os
import random
import select
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.executables import find_executable
from netwarp.doctor.host import namespaces as namespaces_found
from netwarp.testbed import messages
from netwarp.testbed.messages import Device
from netwarp.testbed.steps import Step, step
from support.cell_init_kit import (
    MS,
    WALL_LIMIT_S,
    Result,
    S,
    built,
    capture,
    ending,
    may_mount,
    namespaces,
    netlink,
    outlived,
    prepare,
    tool,
    udp_number,
    veth,
    wait_ns,
)
from support.checkout import ROOT

KILLS = 20
in_namespaces = pytest.mark.usefixtures("user_namespaces")


def launcher(directory: Path, *options: str) -> list[str]:
    """The command that runs that directory in namespaces."""
    return [str(built() / "bin" / "netns-exec"), "--dir", str(directory), *options]


def run(directory: Path, steps: list[Step]) -> Result:
    """Play the steps in namespaces of one process."""
    prepare(directory, steps)
    done = subprocess.run(launcher(directory), timeout=WALL_LIMIT_S, check=False, capture_output=True, text=True)
    return Result(directory, done.returncode, done.stderr)


def opening(*, setup_ns: int = 20 * S, after_t0_ns: int = 30 * S) -> list[Step]:
    """The first steps of a cell in namespaces."""
    return [
        step("sandbox", kind="namespaces"),
        step("clock", t0_after_ready_ns=300 * MS),
        step("deadline", setup_ns=setup_ns, after_t0_ns=after_t0_ns),
    ]


@in_namespaces
def test_a_cell_runs_and_is_captured(tmp_path: Path) -> None:
    """Nothing is lost and time order holds, also with both directions on several CPUs."""
    count = 1000  # all of it fits in the ring, so that a busy machine cannot make the kernel drop any
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1),
        capture(0, "p1", 10, "a"), capture(1, "p1", 10, "b"), step("capture-start"),
        *[tool(f"rx{ns}", ns, "receive", 5000, count) for ns in (0, 1)],
        *[step("output", id=f"rx{ns}", text="listening", timeout_ns=9 * S) for ns in (0, 1)],
        step("ready"), netlink(0, messages.set_link(Device("p1", 10), up=True), at_ns=MS),
        tool("ab", 0, "send", "10.0.1.2", 5000, count, MS // 2, 700, 400 * MS, at_ns=100 * MS),
        tool("ba", 1, "send", "10.0.1.1", 5000, count, MS // 2, 800, 400 * MS, at_ns=100 * MS),
        ending(20 * S), step("dump", ns=0, label="link", data=messages.dump("link").hex()),
    ]  # fmt: skip
    result = run(tmp_path, steps).completed()
    t0 = result.records("ready")[0]["t0_realtime_ns"]
    for record, name in zip(result.records("capture"), ("a-p1", "b-p1"), strict=True):
        packets = result.packets(name, t0)
        for length in (742, 842):
            assert [udp_number(packet) for packet in packets if packet.length == length] == list(range(count))
        assert (record["packets"], record["dropped"], record["errno"]) == (2 * count, 0, 0)
        assert record["bytes"] == (tmp_path / record["file"]).stat().st_size
        times = [packet.t_ns for packet in packets]
        assert times == sorted(times)
        assert times[0] > 400 * MS  # never before it was sent
    assert all(record["t_ns"] >= record["at_ns"] - 1000 for record in result.records("timeline"))
    assert len(result.records("dump")) == 1


@in_namespaces
@pytest.mark.parametrize(
    ("steps", "status", "reason"),
    [
        ([*opening(), step("ready"), ending(MS)], 0, "completed"),
        (
            [*opening(), *namespaces("a"), netlink(0, messages.set_link(Device("no", 99), up=True))],
            1,
            "failed",
        ),
        ([*opening(setup_ns=50 * MS), step("file", path="never", timeout_ns=9 * S)], 2, "timed_out"),
    ],
    ids=["completed", "failed", "timed out"],
)
def test_exit_status(tmp_path: Path, steps: list[Step], status: int, reason: str) -> None:
    result = run(tmp_path, steps)
    assert (result.status, result.end["reason"]) == (status, reason)


@in_namespaces
def test_a_stop_from_outside_is_recorded(tmp_path: Path) -> None:
    """SIGTERM: the processes die, the captures are drained, the end record names the signal."""
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), capture(0, "p1", 10, "a"),
        step("capture-start"), tool("deaf", 0, "stubborn"), step("file", path="never", timeout_ns=20 * S),
    ]  # fmt: skip
    prepare(tmp_path, steps)
    process = subprocess.Popen(launcher(tmp_path), stderr=subprocess.PIPE, text=True)
    (tmp_path / "apps").mkdir()
    until(process, (tmp_path / "apps" / "deaf.out").exists)
    process.terminate()
    errors = process.communicate(timeout=WALL_LIMIT_S)[1]
    result = Result(tmp_path, process.returncode, errors)
    assert (result.status, result.end["message"]) == (1, "stopped by signal 15")
    assert [record["killed"] for record in result.records("exit")] == [True]
    assert len(result.records("capture")) == 1


def until(process: subprocess.Popen[str], there: Callable[[], bool]) -> None:
    """Until it is so; asserts that the process lives so long."""
    handle = os.pidfd_open(process.pid)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    for _ in range(10_000):
        if there():
            break
        assert not poll.poll(1)
    os.close(handle)
    assert there()


@in_namespaces
def test_a_steps_file_for_a_guest_is_refused(tmp_path: Path) -> None:
    result = run(tmp_path, [step("sandbox", kind="guest")])
    assert result.status == 1
    assert result.end["message"] == "steps.txt asks for kind=guest, but this is kind=namespaces"


def test_it_refuses_to_be_any_other_process(tmp_path: Path) -> None:
    """Not pid 1: it would mount over this machine and kill everything at the end."""
    prepare(tmp_path, [step("sandbox", kind="namespaces")])
    before = Path("/proc/self/mountinfo").read_text()
    done = subprocess.run(["./init"], cwd=tmp_path, timeout=WALL_LIMIT_S, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert "must be pid 1" in done.stderr
    assert not (tmp_path / "init.ndjson").exists()
    assert Path("/proc/self/mountinfo").read_text() == before


@in_namespaces
def test_an_ordinary_user_can(tmp_path: Path) -> None:
    """The mounts, the namespaces, the capture need no root of the machine."""
    steps = [
        *opening(), *namespaces("a", "b"), *veth(0, 1, "p1", 10, subnet=1), capture(0, "p1", 10, "a"),
        step("capture-start"), step("ready"), ending(MS),
    ]  # fmt: skip
    place = Path(f"/var/tmp/netwarp-test-{os.getpid()}")  # pytest's own directories are closed to others
    nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"] if os.geteuid() == 0 else []
    try:
        prepare(place, steps)
        if nobody:
            subprocess.run(["chown", "-R", "65534:65534", str(place)], check=True)
        done = subprocess.run(
            [*nobody, *launcher(place)], timeout=WALL_LIMIT_S, check=False, capture_output=True, text=True
        )
        shutil.copytree(place, tmp_path / "left")
    finally:
        shutil.rmtree(place)
    Result(tmp_path / "left", done.returncode, done.stderr).completed()


@in_namespaces
@pytest.mark.parametrize("victim", ["parent", "launcher"])
def test_nothing_outlives_a_killed_one(tmp_path: Path, victim: str) -> None:
    """kill -9 of netns-exec, or of whoever started it, at random moments: every process of the namespaces goes."""
    many = [tool(f"p{number}", 0, "env", flow=0) for number in range(200)]
    prepare(tmp_path, [*opening(after_t0_ns=500 * S), *namespaces("a"), tool("deaf", 0, "stubborn"), *many,
                       step("ready"), ending(400 * S)])  # fmt: skip
    moments = random.Random(victim)
    shell = ["sh", "-c", '"$@" --parent $$ & wait', "sh"] if victim == "parent" else []
    for _ in range(KILLS):
        process = subprocess.Popen([*shell, *launcher(tmp_path)], stderr=subprocess.DEVNULL)
        wait_ns(process, int(moments.uniform(0.5, 60) * 1e6))
        assert process.poll() is None
        process.kill()
        process.wait()
        assert outlived(tmp_path) == []


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        ([], 2, "--dir is required"),
        (["--dir", "/nonexistent"], 77, "/nonexistent: No such file"),
        (["--dir", "/proc"], 77, "/proc/init: No such file"),
        (["--dir", "/proc", "--parent", "1"], 1, "the parent has gone"),
        (["--dir", "/proc", "--parent", "x"], 2, "--parent: 'x' is not a whole number"),
        (["surplus"], 2, "unexpected argument 'surplus'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_launcher_refuses_wrong_arguments(options: list[str], status: int, message: str) -> None:
    done = subprocess.run(
        [str(built() / "bin" / "netns-exec"), *options],
        check=False,
        capture_output=True,
        text=True,
        timeout=WALL_LIMIT_S,
    )
    assert (done.returncode, message in done.stderr) == (status, True), done.stderr


CHECK = """\
import sys
from pathlib import Path
from netwarp.sandbox.netns import NetnsBackend
for problem in NetnsBackend(Path(sys.argv[1])).check():
    print(problem.what, problem.remedy, sep="\\n")
"""


def test_refused_user_namespaces_are_reported_with_the_remedy(tmp_path: Path) -> None:
    """In a chroot unshare(2) refuses user namespaces to everybody: not a file is to blame, and the remedy is named."""
    root = tmp_path / "root"
    root.mkdir()
    inside = [
        "sh",
        "-c",
        'mount --rbind / "$1" && cd "$1" && exec "$0" "$@"',
        find_executable("chroot") or "chroot",
        str(root),
    ]
    done = subprocess.run(
        [*may_mount(), *inside, sys.executable, "-c", CHECK, str(built())], capture_output=True, text=True, check=False,
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, timeout=WALL_LIMIT_S,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    what, remedy = done.stdout.splitlines()
    assert what == "user namespaces are refused (unshare: Operation not permitted)"
    assert "in a chroot the kernel refuses them" in remedy
    assert "--backend virtual or guest" in remedy


def test_tests_are_skipped_only_where_user_namespaces_are_refused() -> None:
    """unshare(1) agrees with the doctor, whom the tests ask."""
    made = subprocess.run(["unshare", "--map-root-user", "--net", "true"], check=False, capture_output=True)
    assert (namespaces_found().state == "ok") == (made.returncode == 0), made.stderr
