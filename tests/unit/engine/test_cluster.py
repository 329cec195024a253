"""The checks of a dask worker before it runs a cell, and the words of --executor."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
from distributed.comm import CommClosedError
from netwarp.captures import native
from netwarp.core.errors import BackendUnavailable, NetwarpError, SpecError, StoreError
from netwarp.core.types import Cell
from netwarp.engine import cluster_files, dask_workers
from netwarp.engine.cluster_files import (
    KERNEL,
    NEEDED,
    FilesMissing,
    Instrument,
    Unlike,
    instrument_here,
    keep_shipped,
    place_of,
    software_here,
)
from netwarp.engine.dask_workers import LOCAL, DaskWorkers, Executor, parse_executor

FILES = {name: name.encode() for name in (KERNEL, *NEEDED)}


@pytest.fixture
def instrument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Instrument:
    """Of files that this machine has not."""
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    monkeypatch.setenv("NETWARP_ANALYZER_LIBRARY", "")
    native._loaded.cache_clear()  # another process
    cluster_files._place_of.cache_clear()
    return Instrument({name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}, software_here())


def test_shipped_files_are_used_if_they_are_those_of_the_run(instrument: Instrument, tmp_path: Path) -> None:
    with pytest.raises(FilesMissing, match="tcp://w"):
        place_of(instrument, "tcp://w")
    keep_shipped(instrument, FILES)
    place = place_of(instrument, "tcp://w")
    assert place.kernel.read_bytes() == FILES[KERNEL]
    assert {name: (place.programs / name).read_bytes() for name in FILES} == FILES
    keep_shipped(instrument, FILES)  # another worker of that machine
    place.kernel.write_bytes(b"damaged")
    cluster_files._place_of.cache_clear()  # another process
    with pytest.raises(FilesMissing):
        place_of(instrument, "tcp://w")
    keep_shipped(instrument, FILES)
    assert place_of(instrument, "tcp://w").kernel.read_bytes() == FILES[KERNEL]
    assert [path.name[0] == "." for path in (tmp_path / "cache" / "shipped").iterdir()] == [False]


def test_a_worker_that_has_loaded_another_analyser_is_refused(instrument: Instrument) -> None:
    """A library stays loaded for the life of a process: after an earlier run, or after it was built again."""
    keep_shipped(instrument, FILES)
    assert native.loaded_digest() is None
    native.layouts.cache_clear()
    native.layouts()
    assert native.loaded_digest() == hashlib.sha256(native.library_path().read_bytes()).hexdigest()
    with pytest.raises(Unlike, match=r"tcp://w has loaded another .* analyser .*: restart the worker"):
        place_of(instrument, "tcp://w")


def test_other_files_are_not_kept(instrument: Instrument, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=KERNEL):
        keep_shipped(instrument, {**FILES, KERNEL: b"another kernel"})
    with pytest.raises(StoreError):
        keep_shipped(instrument, {**FILES, "../outside": b"x"})
    assert not (tmp_path / "cache" / "shipped").exists()


def test_a_worker_with_other_software_is_refused(instrument: Instrument) -> None:
    other = dataclasses.replace(instrument, software={**instrument.software, "numpy": "0.1"})
    with pytest.raises(Unlike, match=r"tcp://w has numpy .*, this machine 0\.1"):
        place_of(other, "tcp://w")


def test_words_of_executor() -> None:
    assert parse_executor("local", 2, "netns") == LOCAL
    assert parse_executor("dask", 2, "auto") == Executor(True, None)
    assert parse_executor("dask:tls://h:8786", None, "virtual") == Executor(True, "tls://h:8786")
    for text, jobs, backend, said in (
        ("slurm", None, "auto", "wants local, dask"),
        ("dask:", None, "auto", "wants local, dask"),
        ("local:x", None, "auto", "wants local, dask"),
        ("dask", None, "netns", "wall clock"),
        ("dask:tcp://h:1", 2, "auto", "--jobs 2"),
    ):
        with pytest.raises(SpecError, match=said):
            parse_executor(text, jobs, backend)


def test_a_worker_that_never_finds_what_is_sent_to_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real cluster of one worker, whose task never finds its files: it is not sent to it for ever."""
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"a kernel")
    instrument = instrument_here(hashlib.sha256(b"a kernel").hexdigest())
    tried = tmp_path / "tried"

    def task(cells: Sequence[Cell]) -> None:
        from distributed import get_worker

        with tried.open("a") as file:
            file.write("x")
        raise FilesMissing(get_worker().address)

    workers = DaskWorkers(
        None, 1, instrument, kernel, scratch=tmp_path, topic="t", clock=lambda *told: None, notice=print
    )  # fmt: skip
    workers.begin()
    try:
        with pytest.raises(BackendUnavailable, match="sent to it 3 times, and it does not find them"):
            workers.submit(task, ()).result(timeout=300)
    finally:
        workers.shutdown()
    assert tried.read_text() == "xxxx"


def test_a_worker_that_dies_while_the_cluster_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its successor takes its place: a real cluster, whose worker stops answering when it is given its plugin."""
    kernel = tmp_path / "linux"
    kernel.write_bytes(b"a kernel")
    instrument = instrument_here(hashlib.sha256(b"a kernel").hexdigest())
    killed: list[int] = []
    real = dask_workers._own_worker

    def own_worker() -> object:
        if not killed:
            (nanny,) = workers._cluster.workers.values()
            killed.append(nanny.pid)
            os.kill(nanny.pid, signal.SIGSTOP)  # the scheduler still asks it
            threading.Timer(0.5, os.kill, (nanny.pid, signal.SIGKILL)).start()
        return real()

    monkeypatch.setattr(dask_workers, "_own_worker", own_worker)
    workers = DaskWorkers(
        None, 1, instrument, kernel, scratch=tmp_path, topic="t", clock=lambda *told: None, notice=print
    )  # fmt: skip
    workers.begin()
    try:
        assert workers.submit(len, ()).result(timeout=300) == 0
    finally:
        workers.shutdown()
    assert killed


def test_workers_that_die_again_and_again_while_the_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = DaskWorkers(
        None, 1, Instrument({}, {}), Path("linux"), scratch=Path(), topic="t", clock=print, notice=print
    )  # fmt: skip
    asked: list[object] = []

    def register_plugin(plugin: object) -> None:
        asked.append(plugin)
        raise CommClosedError("Stream is closed")

    workers._client = SimpleNamespace(register_plugin=register_plugin)
    with pytest.raises(NetwarpError, match=r"its workers end while the cluster starts .*Stream is closed"):
        workers._prepare_workers()
    assert len(asked) == dask_workers.MOST_PREPARED
