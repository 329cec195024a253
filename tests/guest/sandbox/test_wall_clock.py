"""The same specs on the wall clock: in a guest, and in namespaces of a guest (this host may lack netem)."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from netwarp.sandbox.privileges import User
from support.chain_kit import (
    LATE,
    STANDS,
    TCP_OR_SCTP,
    TRIES,
    Checkout,
    copy_checkout,
    ended,
    guests,
    in_a_guest,
    python_in_a_guest,
    two_hosts,
    written,
)
from support.run_files import load_run

OUTAGE = '[event.outage]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "500 ms"\n'
STEADY = two_hosts(TCP_OR_SCTP, name="wall", duration="3 s", links=2, flow='protocol = "{protocol}"')
NOBODY = 65534


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return written(tmp_path / "spec.toml", STEADY + OUTAGE)


def test_guest(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    done = checkout.run("run", spec, "--backend", "guest", "--no-report", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.status in (0, 1), done
    run = load_run(tmp_path / "run")
    in_time = [cell for cell in run.cells.values() if not cell.late()]
    cell = run.cell(protocol="sctp")
    environment = cell.environment
    assert environment["backend"] == "guest"
    assert set(environment["host"]) == {"load_1min", "steal_ratio", "late_wakes_ratio", "latest_wake_s"}
    (ready,) = cell.init("ready")
    assert abs(ready["t0_realtime_ns"] - 1_700_000_000_000_000_000) > 10**15, "the host's own clock"
    if done.status == 0:
        assert all(0.5e6 < metrics["goodput_bit_s"] < 4e6 for _, metrics in run.measured())
    for cell in in_time:  # what the kernel charged the programs with
        cpu_ns = {record["id"]: record["cpu_ns"] for record in cell.init("exit")}
        assert set(cpu_ns) == {"bulk.sender", "bulk.receiver"}
        assert all(0 < took < 3_000_000_000 for took in cpu_ns.values()), cpu_ns
    for _, metrics in run.measured() if done.status == 0 else ():
        assert 0 < metrics["sender_cpu_per_byte_s"] < 1e-5
        assert 0 < metrics["receiver_cpu_per_byte_s"] < 1e-5


def is_ready(run: Path) -> bool:
    """Whether the run's cell has been set up."""
    with contextlib.suppress(FileNotFoundError):  # it is in its place by now
        return any('"ready"' in log.read_text() for log in run.glob("cells/.partial/*/init.ndjson"))
    return False


def test_a_host_that_takes_the_processor_away_is_noticed(checkout: Checkout, tmp_path: Path) -> None:
    """Half a second in the middle of a cell in which no step falls due: INVALID, and why."""
    spec = written(tmp_path / "spec.toml", STEADY)
    for number in range(TRIES):
        run = tmp_path / f"run{number}"
        process = checkout.start(
            "run", spec, "--backend", "guest", "--no-report", "--where", "protocol=tcp", "--out", run, cwd=tmp_path
        )
        while process.poll() is None and not is_ready(run):
            pass
        time.sleep(1)  # into the cell's three seconds
        began_ns, stopped = time.time_ns(), guests(process.pid)
        with contextlib.suppress(ProcessLookupError):  # it has ended by now
            for guest in stopped:
                os.kill(guest, signal.SIGSTOP)
                time.sleep(0.5)
                os.kill(guest, signal.SIGCONT)
        ended_ns = time.time_ns()
        done = ended(process)
        cell = load_run(run).cell()
        t0_ns = cell.init("ready")[0]["t0_realtime_ns"]
        if stopped and t0_ns < began_ns and ended_ns < t0_ns + 3_000_000_000:
            break
    else:
        pytest.skip(LATE)
    assert done.status == 1, done
    assert "timeline between steps" in cell.late()
    environment = cell.environment
    (between,) = [check for check in environment["checks"] if check["check"] == "timeline between steps"]
    assert not between["ok"]
    assert environment["host"]["latest_wake_s"] > 0.4
    assert environment["host"]["late_wakes_ratio"] > 0.1


def test_netns_in_a_guest(kernel: Path, checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    """`netwarp run --backend netns` in a guest on the wall clock."""
    done = in_a_guest(
        kernel, checkout, tmp_path / "guest", "run", str(spec), "--backend", "netns", "--no-report",
        "--out", "/run/cell/run", "--json",
    )  # fmt: skip
    place = done.directory
    said = (place / "netwarp.out").read_text() + (place / "netwarp.err").read_text()
    run = load_run(place / "run")
    assert sum(json.loads((place / "netwarp.out").read_text())["cells"].values()) == 2, said
    for cell in run.cells.values():
        cell.late()
    manifest = run.manifest
    assert (manifest["backend"], manifest["kernel_sha256"], manifest["jobs"]) == ("netns", "host", 1)


@pytest.mark.root(reason="only root can start a guest as somebody else")
@pytest.mark.parametrize(
    "command", [("run", "--no-report", "--backend", "netns"), ("shell", "--backend", "netns")], ids=["run", "shell"]
)
def test_netns_in_a_guest_of_an_ordinary_user(
    command: tuple[str, ...], kernel: Path, checkout: Checkout, open_place: Path
) -> None:
    """Every file is that user's there, whoever makes it. For an ordinary user all tests in a guest are of this kind."""
    if not User(NOBODY, NOBODY).may_run(Path(sys.executable)):
        pytest.skip(f"nobody may not run {sys.executable}, which is root's alone")
    theirs = copy_checkout(open_place / "checkout", kernel)
    place = open_place / "guest"
    place.mkdir()
    os.chown(place, NOBODY, NOBODY)
    spec = written(open_place / "spec.toml", STANDS)
    more = ("--exec", "true") if command[0] == "shell" else ()
    arguments = ("-m", "netwarp", command[0], str(spec), *command[1:], "--out", "/run/cell/made", *more)
    done = python_in_a_guest(kernel, theirs, place, *arguments, user=f"{NOBODY}:{NOBODY}")
    said = (place / "netwarp.out").read_text() + (place / "netwarp.err").read_text()
    late = command[0] == "run" and any(cell.late() for cell in load_run(place / "made").cells.values())
    assert [record["status"] for record in done.records("exit")] == [int(late)], (said, done.console)
    assert {path.lstat().st_uid for path in (place / "made").rglob("*")} == {NOBODY}
    assert list((place / "made").rglob("*.pcap*")), said
