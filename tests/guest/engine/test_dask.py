"""Cells on a dask cluster: one of netwarp's own, and a scheduler with workers that have nothing but the package."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chain_kit import (
    Checkout,
    all_completed,
    captures,
    ended,
    factor,
    is_guest,
    nothing_left,
    outcomes,
    processes,
    raw_files,
    same,
    tables,
    two_paths,
    unless_too_late,
    written,
)
from support.killable import family, parent

DELAYS = ["10 ms", "20 ms", "30 ms"]
READY_S = 300


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cells of 8 s."""
    text = two_paths(factor("delay", DELAYS), duration="8 s").replace('"20 ms"', '"{delay}"', 1)
    return written(tmp_path_factory.mktemp("spec") / "spec.toml", text)


@pytest.fixture(scope="module")
def local(checkout: Checkout, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of worker processes on this machine."""
    place = tmp_path_factory.mktemp("local")
    checkout.run("run", spec, "--out", place / "x", "--no-report", cwd=place).ok()
    return place / "x"


def equal(run: Path, reference: Path) -> None:
    """Asserts that a run is whole and, byte for byte, the other one."""
    all_completed(run)
    assert len(outcomes(run)) == 2 * len(DELAYS)
    same(tables(run), tables(reference))
    same(captures(run), captures(reference))
    same(raw_files(run), raw_files(reference))


def guests_below(pid: int) -> list[int]:
    return [child for child in family(pid) if is_guest(child)]


def await_guest(process: subprocess.Popen[str], *below: int) -> int:
    """The process of a guest that runs below one of these processes (the process itself)."""
    until = time.monotonic() + READY_S
    while time.monotonic() < until:
        for pid in below or (process.pid,):
            if guests := guests_below(pid):
                return guests[0]
        assert process.poll() is None, ended(process)
        time.sleep(0.01)
    raise AssertionError("no guest was ever started")


def test_a_cluster_of_its_own(checkout: Checkout, spec: Path, local: Path, tmp_path: Path) -> None:
    """Equal bytes; a worker of it that is killed is replaced; nothing is left of it."""
    run = tmp_path / "x"
    process = checkout.start("run", spec, "--out", run, "--no-report", "--executor", "dask", "--jobs", 2, cwd=tmp_path)
    kill_worker(process)
    done = ended(process).ok()
    assert done.err == "" or "Traceback" not in done.err, done.err
    equal(run, local)
    nothing_left(tmp_path, run=run)


def kill_worker(process: subprocess.Popen[str], *below: int) -> None:
    """kill -9 of the worker that runs a guest; another one where that guest has just ended."""
    while (worker := parent(await_guest(process, *below))) not in (*below, *family(process.pid)):
        pass
    os.kill(worker, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_ended_in_the_middle(number: int, checkout: Checkout, spec: Path, local: Path, tmp_path: Path) -> None:
    """kill -9 and Ctrl-C take the cluster and its guests along; --resume makes the run whole, with local workers."""
    run = tmp_path / "x"
    arguments = ("run", spec, "--out", run, "--no-report", "--jobs", 2)
    process = checkout.start(*arguments, "--executor", "dask", cwd=tmp_path)
    await_guest(process)
    while not outcomes_there(run):
        assert process.poll() is None
        time.sleep(0.01)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    done = ended(process)
    unless_too_late(done)
    assert done.status == (130 if number == signal.SIGINT else -signal.SIGKILL), done
    assert "Traceback" not in done.err
    nothing_left(tmp_path, run=run if number == signal.SIGINT else None)
    assert 1 <= len(outcomes(run)) < 2 * len(DELAYS)
    checkout.run(*arguments, "--resume", cwd=tmp_path).ok()
    equal(run, local)
    nothing_left(tmp_path, run=run)


def outcomes_there(run: Path) -> bool:
    return any(path.parent.name != ".partial" for path in run.glob("cells/*/outcome.json"))


# A cluster that somebody else started -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cluster:
    """A scheduler, and workers from a copy of the package alone: no programs, no kernel."""

    address: str
    workers: list[subprocess.Popen[bytes]]
    place: Path


@pytest.fixture
def cluster(checkout: Checkout, tmp_path: Path) -> Iterator[Cluster]:
    place = tmp_path / "cluster"
    shutil.copytree(
        checkout.root / "orchestrator", place / "orchestrator", ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(tmp_path),
        "PYTHONPATH": str(place / "orchestrator"), "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    with contextlib.ExitStack() as stack:

        def start(*words: str) -> subprocess.Popen[bytes]:
            process = subprocess.Popen(
                [sys.executable, "-m", "distributed.cli.dask_" + words[0], *words[1:]], cwd=place, env=environment,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        said = place / "scheduler.json"
        start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(said))
        until, address = time.monotonic() + READY_S, ""
        while not address:
            assert time.monotonic() < until
            time.sleep(0.05)
            with contextlib.suppress(FileNotFoundError, ValueError):  # or half-written
                address = json.loads(said.read_text())["address"]
        workers = [
            start("worker", "--scheduler-file", str(said), "--nthreads", "1", "--no-nanny", "--no-dashboard",
                  "--local-directory", str(place / f"w{number}"))
            for number in range(2)
        ]  # fmt: skip
        yield Cluster(address, workers, place)


def test_workers_without_kernel_and_programs(
    checkout: Checkout, spec: Path, local: Path, tmp_path: Path, cluster: Cluster
) -> None:
    """They are shipped; a worker that dies has its cells run by the other."""
    run = tmp_path / "x"
    process = checkout.start(
        "run", spec, "--out", run, "--no-report", "--executor", f"dask:{cluster.address}", cwd=tmp_path
    )
    kill_worker(process, *(worker.pid for worker in cluster.workers))
    ended(process).ok()
    equal(run, local)
    assert sum(worker.poll() is None for worker in cluster.workers) == 1
    (shipped,) = (cluster.place / ".cache/netwarp/shipped").iterdir()
    assert (shipped / "linux").read_bytes() == checkout.kernel.read_bytes()
    assert not [path for number in (0, 1) for path in cluster.place.glob(f"w{number}/**/netwarp-*/cells/*")
                if is_alive(path, cluster)]  # fmt: skip


def is_alive(path: Path, cluster: Cluster) -> bool:
    """Whether a path is in the scratch directory of the worker that lives."""
    number = next(n for n, worker in enumerate(cluster.workers) if worker.poll() is None)
    return f"/w{number}/" in str(path)


def test_interrupted_on_a_cluster(checkout: Checkout, tmp_path: Path, cluster: Cluster) -> None:
    """Its workers stop what they run for it within moments, also when netwarp is killed; they stay for others."""
    text = two_paths(duration="3600 s").replace("2 Mbit/s", "1 Gbit/s").replace("20 packets", "20000 packets")
    spec = written(tmp_path / "spec.toml", text)
    for number in (signal.SIGINT, signal.SIGKILL):
        process = checkout.start(
            "run", spec, "--out", tmp_path / str(number), "--executor", f"dask:{cluster.address}", cwd=tmp_path
        )
        await_guest(process, *(worker.pid for worker in cluster.workers))
        process.send_signal(number)
        done = ended(process, timeout_s=300)
        assert done.status == (130 if number == signal.SIGINT else -signal.SIGKILL), done
        until = time.monotonic() + READY_S
        while left := [pid for worker in cluster.workers for pid in guests_below(worker.pid)]:
            assert time.monotonic() < until, [processes(tmp_path).get(pid) for pid in left]
            time.sleep(0.05)
        assert all(worker.poll() is None for worker in cluster.workers)


def test_no_scheduler_there(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    """Says so, and what to start; no run directory is left."""
    done = checkout.run("run", spec, "--out", tmp_path / "x", "--executor", "dask:tcp://127.0.0.1:1", cwd=tmp_path)
    assert done.status == 77, done
    assert "no scheduler answers there" in done.err and "dask scheduler" in done.err
    assert "Traceback" not in done.err
    assert not (tmp_path / "x").exists()
