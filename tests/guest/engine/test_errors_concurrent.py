"""Two netwarps at once; and a capture that could not keep up."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest
from netwarp.core.types import Cell, Outcome
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.sandbox import VirtualBackend, sandbox
from netwarp.store.run_dir import RunDir
from netwarp.testbed.compile import Clock, Compiled, compile_cell
from support.chain_kit import (
    Checkout,
    all_completed,
    captures,
    ended,
    guests,
    nothing_left,
    outcomes,
    same,
    two_paths,
    written,
)


def test_two_runs_in_one_directory_and_two_in_one_checkout(checkout: Checkout, tmp_path: Path) -> None:
    """The second in a run directory is refused with its reason and harms nothing; in another one both run, equal."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="120 s"))
    first = checkout.start("run", spec, "--no-report", "--out", tmp_path / "x", "--jobs", 1, cwd=tmp_path)
    while not guests(first.pid):
        assert first.poll() is None
    second = checkout.start("run", spec, "--no-report", "--out", tmp_path / "y", "--jobs", 1, cwd=tmp_path)
    first.send_signal(signal.SIGSTOP)  # however late the others come
    try:
        again = ["run", spec, "--no-report", "--out", tmp_path / "x"]
        refused = [checkout.run(*again, *more, cwd=tmp_path) for more in ([], ["--resume"])]
    finally:
        first.send_signal(signal.SIGCONT)
    for each in refused:
        assert (each.status, each.out) == (1, "")
        assert each.err == f"netwarp: {tmp_path / 'x'}: another netwarp is running in this directory\n"
    ended(first).ok()
    ended(second).ok()
    for name in ("x", "y"):
        all_completed(tmp_path / name)
        nothing_left(tmp_path, run=tmp_path / name)
    same(captures(tmp_path / "x"), captures(tmp_path / "y"))


def test_two_runs_without_out_in_one_second(checkout: Checkout, tmp_path: Path) -> None:
    """Each has a directory of its own; `latest` is one of them, and no half-made link stays."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    started = [checkout.start("run", spec, "--no-report", "--jobs", 1, cwd=tmp_path) for _ in range(3)]
    runs = {ended(process).ok().out.splitlines()[-1] for process in started}
    assert len(runs) == 3
    place = tmp_path / "results" / "chain"
    for run in runs:
        all_completed(tmp_path / run)
    assert sorted(path.name for path in place.iterdir()) == sorted(["latest", *(Path(run).name for run in runs)])
    assert (place / "latest").resolve() in {(tmp_path / run).resolve() for run in runs}


def test_a_capture_that_loses_packets_makes_its_cell_invalid(
    checkout: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ring of two pages and windows of hundreds of packets: the kernel drops, counts, and the cell says how many."""
    text = two_paths(duration="2 s", shape="").replace("2 Mbit/s", "1 Gbit/s").replace("20 packets", "2000 packets")
    spec = written(tmp_path / "spec.toml", text)
    (cell,) = make_plan(load_spec(spec), where=[("protocol", "tcp")]).cells

    def small(cell: Cell, clock: Clock, secret: bytes = b"") -> Compiled:
        compiled = compile_cell(cell, clock, secret)
        compiled.steps[:] = [
            replace(one, fields=(*one.fields, ("block_bytes", "4096"), ("blocks", "2")))
            if one.verb == "capture"
            else one
            for one in compiled.steps
        ]
        return compiled

    monkeypatch.setattr(sandbox, "compile_cell", small)
    run = RunDir(tmp_path / "x")
    run.partial.mkdir(parents=True)
    outcome = VirtualBackend(checkout.kernel, checkout.root / "build").run_cell(cell, run)
    assert outcome.outcome is Outcome.INVALID
    what, _, count = outcome.reason.partition(" dropped: ")
    assert what.startswith("capture/") and int(count.split()[0]) > 0
    assert outcomes(run.root)[cell.id] == outcome
