"""netwarp and its guests killed at random moments, interrupted, and resumed: no process is left, no result is lost."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from support.chain_kit import (
    TRIES,
    Checkout,
    all_completed,
    captures,
    children,
    ended,
    factor,
    guests,
    guests_of,
    nothing_left,
    outcomes,
    raw_files,
    same,
    tables,
    two_paths,
    unless_too_late,
    written,
)
from support.killable import kernels, workers
from support.leftovers import settle

SEED = int(os.environ.get("NETWARP_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 1 << 31)
"""Of the moments; printed with every failure, given again by NETWARP_TEST_SEED."""
KILLS_OF_NETWARP = 13
KILLS_OF_GUESTS = 7
DELAYS = ["10 ms", "20 ms", "30 ms", "40 ms"]
KILLED = -signal.SIGKILL
INTERRUPTED = (130, -signal.SIGINT, -signal.SIGTERM)
"""For a shell both are 130: Python ends by SIGINT itself where the interrupt came while an import made a class."""


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight cells of 5 s."""
    more = (
        factor("delay", DELAYS) + '[table.goodput]\nmetric = "goodput_bit_s"\nrows = ["protocol"]\ncolumns = ["delay"]'
    )
    text = two_paths(more, duration="10 s").replace('"20 ms"', '"{delay}"', 1)
    return written(tmp_path_factory.mktemp("spec") / "spec.toml", text)


@pytest.fixture(scope="module")
def undisturbed(checkout: Checkout, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, float]:
    """The run that nobody disturbs, and how long it took (to choose moments within it)."""
    place = tmp_path_factory.mktemp("undisturbed")
    started = time.monotonic()
    checkout.run("run", spec, "--out", place / "x", "--jobs", 2, cwd=place).ok()
    all_completed(place / "x")
    return place / "x", time.monotonic() - started


@pytest.fixture
def moments() -> Iterator[random.Random]:
    """Where the moments come from; says how to meet the same again."""
    print(f"NETWARP_TEST_SEED={SEED}")
    yield random.Random(SEED)


def completes(checkout: Checkout, spec: Path, run: Path, undisturbed: Path) -> None:
    """`--resume` ends well, and then nothing tells the run from the undisturbed one."""
    resume = ["--resume"] if run.exists() else []  # each may have been stopped before it made anything
    checkout.run("run", spec, "--out", run, *resume, "--jobs", 2, cwd=run.parent).ok()
    all_completed(run)
    same(tables(run), tables(undisturbed))
    same(captures(run), captures(undisturbed))
    same(raw_files(run), raw_files(undisturbed))
    nothing_left(run.parent, run=run)


def killed_after(process: subprocess.Popen[str], delay_s: float, number: int = signal.SIGKILL) -> bool:
    """Whether it still ran when the signal was due."""
    try:
        process.wait(delay_s)
    except subprocess.TimeoutExpired:
        process.send_signal(number)
        return True
    return False


def working_directory(pid: int) -> Path | None:
    """Of a process; None when it has just gone."""
    try:
        return Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return None


def test_netwarp_killed_at_any_moment(
    checkout: Checkout, spec: Path, undisturbed: tuple[Path, float], tmp_path: Path, moments: random.Random
) -> None:
    """Again and again in one directory, until it is complete; then in another one."""
    reference, wall_s = undisturbed
    kills = rounds = 0
    while kills < KILLS_OF_NETWARP:
        run = tmp_path / f"x{rounds}"
        killed = True
        while kills < KILLS_OF_NETWARP and killed:
            resume = ["--resume"] if run.exists() else []
            left = 1 - len(outcomes(run)) / (2 * len(DELAYS))
            started = time.monotonic()
            process = checkout.start("run", spec, "--out", run, "--jobs", 2, *resume, cwd=tmp_path)
            killed_after(process, moments.uniform(0, wall_s * (1 + left) / 2))
            done = ended(process)
            killed = done.status == KILLED
            assert killed or done.status == 0, done
            kills += killed
            nothing_left(tmp_path)
            if not killed and left == 1:  # the machine has become quieter
                wall_s = time.monotonic() - started
        completes(checkout, spec, run, reference)
        rounds += 1
        assert rounds < 4 * KILLS_OF_NETWARP, "it always ended before it could be killed"


def test_guests_killed_at_any_moment(
    checkout: Checkout, spec: Path, undisturbed: tuple[Path, float], tmp_path: Path, moments: random.Random
) -> None:
    """Each of them is a FAILED cell that says so, the others complete; a resume runs the failed ones again."""
    reference, wall_s = undisturbed
    kills = rounds = 0
    while kills < KILLS_OF_GUESTS:
        run = tmp_path / f"x{rounds}"
        process = checkout.start("run", spec, "--out", run, "--jobs", 2, cwd=tmp_path)
        victims: set[int] = set()
        while process.poll() is None:
            killed_after(process, moments.uniform(0, wall_s / 6), 0)
            if (alive := [pid for pid in guests(process.pid) if pid not in victims]) and len(victims) < KILLS_OF_GUESTS:
                victims.add(victim := moments.choice(alive))
                with contextlib.suppress(ProcessLookupError):  # it has just ended
                    os.kill(victim, signal.SIGKILL)
        done = ended(process)
        failed = {cell_id: o for cell_id, o in outcomes(run).items() if o.outcome is not Outcome.COMPLETED}
        # a guest may have been killed after it had powered off: then its cell is complete
        assert len(failed) <= len(victims)
        assert done.status == (1 if failed else 0), done
        for cell_id, outcome in failed.items():
            assert outcome.outcome is Outcome.FAILED
            assert outcome.reason == "the sandbox ended without an end record (killed by signal 9)"
            assert f"FAILED {cell_id}" in done.err
        assert len(outcomes(run)) == 2 * len(DELAYS)
        nothing_left(tmp_path, run=run)
        kills += len(failed)
        completes(checkout, spec, run, reference)
        rounds += 1
        assert rounds < 10, "guests always ended before they could be killed"


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_ended_at_any_moment(
    number: int, checkout: Checkout, spec: Path, undisturbed: tuple[Path, float], tmp_path: Path, moments: random.Random
) -> None:
    """What was under way runs again in another worker, and the run ends as if nothing had been."""
    reference, wall_s = undisturbed
    for attempt in range(TRIES):
        run = tmp_path / f"x{attempt}"
        process = checkout.start("run", spec, "--out", run, "--jobs", 2, cwd=tmp_path)
        ends = 0
        while process.poll() is None and ends < 2:
            killed_after(process, moments.uniform(0, wall_s / 2**attempt / 4), 0)
            if working := [pid for pid in children(process.pid) if guests_of(pid)]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(moments.choice(working), number)
                    ends += 1
        done = ended(process).ok()
        if "a worker process was killed" in done.err:
            break  # else the machine has become quieter, and the run was over before
    assert "a worker process was killed" in done.err, done
    all_completed(run)
    same(tables(run), tables(reference))
    same(captures(run), captures(reference))
    same(raw_files(run), raw_files(reference))
    nothing_left(tmp_path, run=run)


def test_a_cell_under_which_every_worker_dies(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    """It alone FAILED, with the reason; a resume runs it again."""
    for attempt in range(TRIES):
        run, deadly = tmp_path / f"x{attempt}", ""
        process = checkout.start("run", spec, "--out", run, "--jobs", 2, cwd=tmp_path)
        while process.poll() is None:
            for pid in children(process.pid):
                cells = [path.name for guest in guests_of(pid) if (path := working_directory(guest)) is not None]
                deadly = deadly or next(iter(cells), "")
                if deadly and deadly in cells:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                    time.sleep(0.05)
        done = ended(process)
        if done.status:
            break  # else this machine did not look while that cell ran for the third time
    assert done.status == 1, done
    (failed,) = [cell_id for cell_id, o in outcomes(run).items() if o.outcome is not Outcome.COMPLETED]
    assert failed == deadly and len(outcomes(run)) == 2 * len(DELAYS)
    assert outcomes(run)[failed].reason == "3 worker processes were killed while it ran"
    checkout.run("run", spec, "--out", run, "--resume", "--jobs", 2, cwd=tmp_path).ok()
    all_completed(run)
    nothing_left(tmp_path, run=run)


@pytest.mark.parametrize(
    ("target", "number"),
    [("netwarp", signal.SIGKILL), ("worker", signal.SIGKILL), ("guest", signal.SIGKILL), ("group", signal.SIGHUP)],
)
def test_verify_of_a_bundle_leaves_nothing(
    target: str,
    number: int,
    checkout: Checkout,
    undisturbed: tuple[Path, float],
    tmp_path: Path,
    moments: random.Random,
) -> None:
    """Whoever is killed, at any moment: nothing stays where the bundle was unpacked."""
    (tmp_path / "tmp").mkdir()
    bundle = tmp_path / "run.tar.xz"
    checkout.run("archive", "bundle", undisturbed[0], "--out", bundle, cwd=tmp_path).ok()
    hit = 0
    for attempt in range(3 * TRIES):
        process = checkout.start(
            "archive", "verify", bundle, "--jobs", 2, cwd=tmp_path, TMPDIR=str(tmp_path / "tmp")
        )  # fmt: skip
        killed_after(process, moments.uniform(0, undisturbed[1] / 2**attempt), 0)
        victims = {"netwarp": lambda pid: [pid], "group": lambda pid: [pid], "worker": workers, "guest": kernels}
        if alive := victims[target](process.pid):
            with contextlib.suppress(ProcessLookupError):
                (os.killpg if target == "group" else os.kill)(moments.choice(alive), number)
        done = ended(process)
        assert "Traceback" not in done.err or done.status == -number, done
        nothing_left(tmp_path)
        assert settle(lambda: [path.name for path in (tmp_path / "tmp").iterdir()]) == []
        hit += bool(alive) and (done.status != 0 or target == "worker")
        if hit == 2:
            return
    if not hit:
        pytest.skip("this machine was too busy: it always ended before anything could be killed")


def test_a_hangup_of_verify_leaves_the_run_as_it_was(
    checkout: Checkout, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    """cells/.partial, in which its cells run again, is gone."""
    run = tmp_path / "run"
    shutil.copytree(undisturbed[0], run)
    process = checkout.start("archive", "verify", run, "--jobs", 2, cwd=tmp_path)
    while process.poll() is None and not guests(process.pid):
        time.sleep(0.002)
    os.killpg(process.pid, signal.SIGHUP)
    done = ended(process)
    unless_too_late(done)
    assert done.status == 130 and not (run / "cells" / ".partial").exists(), done
    nothing_left(tmp_path, run=run)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted(
    number: int, checkout: Checkout, spec: Path, undisturbed: tuple[Path, float], tmp_path: Path
) -> None:
    """As soon as a cell is finished: 130, and what is finished is not touched again."""
    run = tmp_path / "x"
    process = checkout.start("run", spec, "--out", run, "--jobs", 2, cwd=tmp_path)
    while not list(run.glob("cells/*/outcome.json")):
        assert process.poll() is None
    os.killpg(process.pid, number)  # as a terminal does
    done = ended(process)
    unless_too_late(done)
    kept = {path: path.stat().st_mtime_ns for path in run.glob("cells/*/*")}
    assert done.status == 130, done
    assert "Traceback" not in done.err
    assert "--resume" in done.err
    assert 1 <= len(outcomes(run)) < 2 * len(DELAYS)
    nothing_left(tmp_path, run=run)
    completes(checkout, spec, run, undisturbed[0])
    assert {path: path.stat().st_mtime_ns for path in kept if path.name != "derived"} == {
        path: kept[path] for path in kept if path.name != "derived"
    }


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_at_any_moment(
    number: int, checkout: Checkout, spec: Path, undisturbed: tuple[Path, float], tmp_path: Path, moments: random.Random
) -> None:
    """From the first line of code to the report's last."""
    reference, wall_s = undisturbed
    run = tmp_path / "x"
    for _ in range(4):
        resume = ["--resume"] if run.exists() else []
        process = checkout.start("run", spec, "--out", run, "--jobs", 2, *resume, cwd=tmp_path)
        was_running = killed_after(process, moments.uniform(0, wall_s), number)
        done = ended(process)
        allowed = {*INTERRUPTED, 0} if was_running else {0}
        if was_running and "KeyboardInterrupt" in done.err and "netwarp/" not in done.err:
            allowed |= {1}  # Python itself was still starting: no line of netwarp's in its traceback
        assert done.status in allowed, done
        nothing_left(tmp_path)
    completes(checkout, spec, run, reference)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_cell_of_an_hour_is_interrupted_at_once(number: int, checkout: Checkout, tmp_path: Path) -> None:
    """And a hang of the guest would be: nobody waits for its end."""
    text = two_paths(duration="3600 s").replace("2 Mbit/s", "1 Gbit/s").replace("20 packets", "20000 packets")
    process = checkout.start("run", written(tmp_path / "spec.toml", text), "--out", tmp_path / "x", cwd=tmp_path)
    while not guests(process.pid):
        assert process.poll() is None
    process.send_signal(number)
    done = ended(process, timeout_s=300)
    assert done.status == 130, done
    assert outcomes(tmp_path / "x") == {}
    nothing_left(tmp_path, run=tmp_path / "x")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_analyze_killed_at_any_moment(
    number: int, checkout: Checkout, undisturbed: tuple[Path, float], tmp_path: Path, moments: random.Random
) -> None:
    """What is derived can be derived again."""
    run = tmp_path / "x"
    subprocess.run(["cp", "-a", undisturbed[0], run], check=True)
    started = time.monotonic()
    checkout.run("analyze", run, cwd=tmp_path).ok()
    wall_s = time.monotonic() - started
    for _ in range(3):
        process = checkout.start("analyze", run, "--jobs", 4, cwd=tmp_path)
        killed_after(process, moments.uniform(wall_s / 2, wall_s), number)
        done = ended(process)
        assert done.status in ((0, KILLED) if number == signal.SIGKILL else (0, *INTERRUPTED)), done
        nothing_left(tmp_path)
    checkout.run("analyze", run, cwd=tmp_path).ok()
    same(tables(run), tables(undisturbed[0]))
    same(raw_files(run), raw_files(undisturbed[0]))


def test_two_runs_at_once_in_one_directory(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    """The second says so and touches nothing; the first does not notice."""
    run = tmp_path / "x"
    first = checkout.start("run", spec, "--out", run, "--jobs", 1, cwd=tmp_path)
    while not guests(first.pid):
        assert first.poll() is None
    first.send_signal(signal.SIGSTOP)  # however late the second comes
    try:
        refused = [checkout.run("run", spec, "--out", run, *more, cwd=tmp_path) for more in ([], ["--resume"])]
    finally:
        first.send_signal(signal.SIGCONT)
    for second in refused:
        assert second.status == 1
        assert second.err == f"netwarp: {run}: another netwarp is running in this directory\n"
    assert ended(first).status == 0
    all_completed(run)
