"""The same specs on the wall clock: in a guest, and in namespaces of a guest, which has what this host may lack."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from netwarp.sandbox.privileges import User
from netwarp.store.run_dir import RunDir
from netwarp.store.tables import read_rows
from support.chain_kit import (
    STANDS,
    Checkout,
    copy_checkout,
    ended,
    guests,
    in_a_guest,
    outcomes,
    python_in_a_guest,
    written,
)

SPEC = """\
format = 1
name = "wall"
duration = "3 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "2 Mbit/s"
queue = "20 packets"
one_way_delay = "20 ms"
[link.p2]
like = "p1"
[flow.bulk]
from = "a"
to = "b"
protocol = "{protocol}"
paths = ["p1", "p2"]
[factor.protocol]
levels = ["tcp", "sctp"]
[factor.protocol.tcp]
flow.bulk.paths = ["p1"]
[event.outage]
action = "cut"
link = "p1"
at = "1 s"
for = "500 ms"
"""
NOBODY = 65534
USABLE = (Outcome.COMPLETED, Outcome.INVALID)
"""On the wall clock of a busy machine a cell may be late, and then has to say so."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    return written(tmp_path / "spec.toml", SPEC)


def lateness_is_what_is_wrong(run: Path) -> None:
    """Every cell ran to its end; those that are INVALID are so because the host was late, and for nothing else."""
    for outcome_file in run.glob("cells/*/outcome.json"):
        outcome = json.loads(outcome_file.read_text())
        assert outcome["outcome"] in USABLE, outcome
        checks = json.loads((outcome_file.parent / "environment.json").read_text())["checks"]
        late = [c["check"] for c in checks if not c["ok"]]
        assert all(name.startswith(("timeline", "start of", "steal time")) for name in late), late


def goodputs(run: Path) -> list[float]:
    rows = read_rows(run / "tables" / "measurements.csv")
    return [float(row["value"]) for row in rows if row["metric"] == "goodput_bit_s" and row["value"]]


def test_guest(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    done = checkout.run("run", spec, "--backend", "guest", "--no-report", "--out", tmp_path / "run", cwd=tmp_path)
    assert done.status in (0, 1), done
    lateness_is_what_is_wrong(tmp_path / "run")
    cell = RunDir(tmp_path / "run").cell(next((tmp_path / "run" / "cells").glob("sctp*")).name)
    environment = json.loads(cell.environment.read_text())
    assert environment["backend"] == "guest"
    assert set(environment["host"]) == {"load_1min", "steal_ratio", "late_wakes_ratio", "latest_wake_s"}
    records = [json.loads(line) for line in cell.init_log.read_text().splitlines()]
    ready = next(record for record in records if record["record"] == "ready")
    assert abs(ready["t0_realtime_ns"] - 1_700_000_000_000_000_000) > 10**15, "the host's own clock"
    if done.status == 0:
        assert all(0.5e6 < value < 4e6 for value in goodputs(tmp_path / "run"))


def test_a_host_that_takes_the_processor_away_is_noticed(checkout: Checkout, tmp_path: Path) -> None:
    """Half a second in the middle of a cell in which no step falls due: INVALID, and why."""
    spec = written(tmp_path / "spec.toml", SPEC.partition("[event.outage]")[0])
    run = tmp_path / "run"
    process = checkout.start(
        "run", spec, "--backend", "guest", "--no-report", "--where", "protocol=tcp", "--out", run, cwd=tmp_path
    )
    while not any('"ready"' in log.read_text() for log in run.glob("cells/.partial/*/init.ndjson")):
        assert process.poll() is None, ended(process)
    time.sleep(1)  # into the cell's three seconds
    (guest,) = guests(process.pid)
    os.kill(guest, signal.SIGSTOP)
    time.sleep(0.5)
    os.kill(guest, signal.SIGCONT)
    done = ended(process)
    assert done.status == 1, done
    ((cell_id, outcome),) = outcomes(run).items()
    assert outcome.outcome is Outcome.INVALID, outcome
    environment = json.loads(RunDir(run).cell(cell_id).environment.read_text())
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
    run = place / "run"
    assert sum(json.loads((place / "netwarp.out").read_text())["cells"].values()) == 2, said
    lateness_is_what_is_wrong(run)
    manifest = json.loads((run / "manifest.json").read_text())
    assert (manifest["backend"], manifest["kernel_sha256"], manifest["jobs"]) == ("netns", "host", 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a guest as somebody else")
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
    exits = [record["status"] for record in done.records("exit")]
    assert exits == [0] or "late" in said, (said, done.console)
    assert {path.lstat().st_uid for path in (place / "made").rglob("*")} == {NOBODY}
    assert list((place / "made").rglob("*.pcap*")), said
