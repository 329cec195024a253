"""The system clock is set while a cell runs on it, forward or back: the cell is INVALID."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from netwarp.sandbox import host_load as host
from support.chain_kit import TRIES, Checkout, python_in_a_guest, two_paths, written
from support.run_files import load_run

STEPPER = """\
import contextlib, pathlib, subprocess, sys, time
run = pathlib.Path("/run/cell/run")
netwarp = subprocess.Popen([sys.executable, "-m", "netwarp", "run", sys.argv[1], "--backend", "netns",
                            "--no-report", "--where", "protocol=tcp", "--out", str(run)])
while netwarp.poll() is None:
    with contextlib.suppress(FileNotFoundError):
        if any('"ready"' in log.read_text() for log in run.glob("cells/.partial/*/init.ndjson")):
            time.clock_settime(time.CLOCK_REALTIME, time.time() + float(sys.argv[2]))
            break
    time.sleep(0.02)
sys.exit(netwarp.wait())
"""


@pytest.mark.parametrize("step_s", [5, -5])
def test_the_clock_is_set(step_s: int, kernel: Path, checkout: Checkout, tmp_path: Path) -> None:
    """Forward, so that events come early, or backward, so that they come late and seem to be in time."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="2 s", shape=""))
    script = written(tmp_path / "stepper.py", STEPPER)
    for number in range(TRIES):  # the clock may be set when the cell is over already
        done = python_in_a_guest(kernel, checkout, tmp_path / f"guest{number}", str(script), str(spec), str(step_s))
        assert (done.directory / "netwarp.err").exists()
        run = load_run(done.directory / "run")
        cell = run.cell()
        if cell.outcome.outcome is Outcome.INVALID:
            break
    assert cell.outcome.outcome is Outcome.INVALID, (cell.outcome, done.console)
    (clock,) = [check for check in cell.environment["checks"] if check["check"] == "clock"]
    assert not clock["ok"]
    assert abs(int(clock["detail"].split()[2]) - step_s * 10**9) < 10**8
    assert 0 < run.manifest["wall_s"] < 200, "measured by a clock that nobody can set"


class Clocks:
    """time(7) as somebody else has it."""

    def __init__(self) -> None:
        self.monotonic, self.offset = 10**12, 1_700_000_000 * 10**9

    def monotonic_ns(self) -> int:
        self.monotonic += 100
        return self.monotonic

    def time_ns(self) -> int:
        return self.monotonic_ns() + self.offset


def test_a_slewed_clock_is_steady_and_a_step_to_and_fro_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = Clocks()
    monkeypatch.setattr(host, "time", clocks)
    steady = host.SteadyClock()
    for _ in range(100):  # 100 s at 400 ppm
        clocks.monotonic += 10**9
        clocks.offset += 400_000
        steady.look()
    assert steady.check().ok
    clocks.offset += 2_000_000
    steady.look()
    clocks.offset -= 2_000_000
    steady.look()
    assert not steady.check().ok


def test_being_preempted_between_two_clocks_is_no_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four of five readings are interrupted for 50 ms."""
    clocks = Clocks()
    monkeypatch.setattr(host, "time", clocks)
    steady, calls = host.SteadyClock(), 0
    plain = clocks.time_ns

    def interrupted() -> int:
        nonlocal calls
        calls += 1
        clocks.monotonic += 50_000_000 if calls % 5 else 0
        return plain()

    monkeypatch.setattr(clocks, "time_ns", interrupted)
    for _ in range(20):
        steady.look()
    assert steady.check().ok
