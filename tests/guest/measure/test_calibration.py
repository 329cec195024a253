"""`netwarp calibrate` within its bounds; and a testbed that is wrong by a little does not pass."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Cell, LinkImpairment, Outcome
from netwarp.engine.execute import execute
from netwarp.measure.calibration import Probe, judge, probes
from netwarp.sandbox import VirtualBackend
from netwarp.sandbox.virtual import T0_REALTIME_NS
from netwarp.store.probe_rows import ProbeRow
from netwarp.store.run_dir import RunDir
from support.chain_kit import Checkout, copy_checkout, ended, guests, nothing_left

US, MS = 1_000, 1_000_000
QUANTITIES = {
    "RTT", "one-way delay there", "one-way delay back", "rate (ip)", "rate (ethernet)", "largest packet",
    "fewest packets waiting when one was dropped", "most packets ever waiting", "last packet before the fault",
}  # fmt: skip
PREFIXES = ("loss over ", "fault between SYNs", "repair between SYNs")


@pytest.fixture(scope="module")
def measured(checkout: Checkout) -> list[ProbeRow]:
    """The rows of `netwarp calibrate --json`, as the session's checkout was calibrated with."""
    answer = json.loads((checkout.root / "calibrated" / "answer.json").read_text())
    return msgspec.convert(answer["rows"], list[ProbeRow])


def test_every_quantity_is_within_its_bounds(measured: list[ProbeRow]) -> None:
    assert [row for row in measured if not row.ok] == []
    assert [row for row in measured if row.measured is None or abs(row.measured - row.configured) > row.bound] == []


def test_every_quantity_is_measured(measured: list[ProbeRow]) -> None:
    """A row for each, the bounds those that are promised, and no number that only repeats what was asked."""
    names = {row.quantity for row in measured}
    assert names >= QUANTITIES
    for prefix in PREFIXES:
        assert any(name.startswith(prefix) for name in names), prefix
    assert {row.probe for row in measured} == {probe.name for probe in probes()}
    for row in measured:
        if row.unit == "s":
            assert row.bound <= 10e-6
        if row.quantity.startswith("rate"):
            assert row.bound == 1e-3 * row.configured
        if row.unit in ("packets", "byte"):
            assert row.bound == 0
    assert sum(row.measured != row.configured for row in measured) > 20


def test_it_is_stored_for_the_runs_that_follow(checkout: Checkout, tmp_path: Path, measured: list[ProbeRow]) -> None:
    (tmp_path / "spec.toml").write_text(checkout.run("plan", "--example", cwd=tmp_path).ok().out)
    where = ["--where", "protocol=tcp", "--where", "rate=1 Mbit/s"]
    done = checkout.run("run", "spec.toml", *where, "--no-report", "--out", tmp_path / "x", cwd=tmp_path).ok()
    assert "calibrating" not in done.err
    kept = json.loads((tmp_path / "x" / "calibration.json").read_bytes())
    generic = {row.probe for row in measured}  # another test's profiles may be kept beside them
    assert [row for row in msgspec.convert(kept["rows"], list[ProbeRow]) if row.probe in generic] == measured


@dataclass(frozen=True)
class Wrong:
    """A probe, what is changed in its cell behind its back, and the quantity that must notice."""

    probe: str
    quantity: str
    forward: Callable[[LinkImpairment], LinkImpairment] = lambda shape: shape
    cell: Callable[[Cell], Cell] = lambda cell: cell


def shaped(**changes: object) -> Callable[[LinkImpairment], LinkImpairment]:
    """A shape with these fields."""
    return lambda shape: msgspec.structs.replace(shape, **changes)


def later(cell: Cell) -> Cell:
    """Every event 20 us later."""
    return msgspec.structs.replace(
        cell, timeline=tuple(msgspec.structs.replace(event, at_ns=event.at_ns + 20 * US) for event in cell.timeline)
    )


def narrower(cell: Cell) -> Cell:
    """The link's MTU four bytes smaller."""
    return msgspec.structs.replace(
        cell, links=tuple(msgspec.structs.replace(link, mtu_bytes=1496) for link in cell.links)
    )


SLOW = "rate 10 Mbit/s, delay 50 ms"
WRONG = (
    Wrong(SLOW, "RTT", shaped(one_way_delay_ns=50 * MS + 20 * US)),
    Wrong(SLOW, "one-way delay there", shaped(one_way_delay_ns=50 * MS - 20 * US)),
    Wrong(SLOW, "rate (ip)", shaped(rate_bit_s=9_980_000)),
    Wrong("rate of Ethernet frames", "rate (ethernet)", shaped(layer="ip")),
    Wrong(SLOW, "largest packet", cell=narrower),
    Wrong("loss 1 %", "loss over", shaped(loss_ratio=0.02)),
    Wrong("loss 1 %", "loss over", shaped(loss_ratio=0.005)),
    Wrong("queue of 20 packets", "fewest packets waiting when one was dropped", shaped(queue_packets=19)),
    Wrong("queue of 20 packets", "most packets ever waiting", shaped(queue_packets=21)),
    Wrong("fault cut", "fault between SYNs", cell=later),
    Wrong("fault cut", "repair between SYNs", cell=later),
    Wrong("fault blackhole", "fault between SYNs", cell=later),
    Wrong("fault link", "last packet before the fault", cell=later),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.probe}: {wrong.quantity}")
def test_a_wrong_cell_fails_its_probe(wrong: Wrong, checkout: Checkout, tmp_path: Path) -> None:
    """The cell that runs is not the cell that is judged by: just as if netem, cell-init or a timer were off."""
    (probe,) = [probe for probe in probes() if probe.name == wrong.probe]
    link = probe.cell.links[0]
    changed = msgspec.structs.replace(link, forward=wrong.forward(link.forward))
    cell = wrong.cell(msgspec.structs.replace(probe.cell, links=(changed,)))
    assert cell != probe.cell
    assert_rows(probe, cell, checkout, tmp_path, wrong.quantity, ok=False)


def test_an_unchanged_cell_passes_its_probe(checkout: Checkout, tmp_path: Path) -> None:
    """The same way with nothing changed."""
    (probe,) = [probe for probe in probes() if probe.name == SLOW]
    assert_rows(probe, probe.cell, checkout, tmp_path, "RTT", ok=True)


def assert_rows(probe: Probe, cell: Cell, checkout: Checkout, place: Path, quantity: str, *, ok: bool) -> None:
    """Run `cell`, judge it as `probe`."""
    run = RunDir(place / "x")
    backend = VirtualBackend(checkout.kernel, checkout.root / "build")
    execute([cell], backend, run, jobs=1, finished=lambda *_: None)
    outcome = run.cell(cell.id).read_outcome()
    assert outcome.outcome is Outcome.COMPLETED, outcome
    rows = [row for row in judge(probe, run.cell(cell.id).root, T0_REALTIME_NS) if row.quantity.startswith(quantity)]
    assert rows
    assert all(row.ok for row in rows) is ok, rows
    # what is stored and could not be read again would fail every later run
    assert msgspec.json.decode(msgspec.json.encode(rows), type=list[ProbeRow]) == rows
    nothing_left(place, run=run.root)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_calibrate_is_ended(number: int, checkout: Checkout, tmp_path: Path) -> None:
    """Nothing of it is believed, and no guest is left."""
    fresh = copy_checkout(tmp_path / "fresh", checkout.kernel, checkout.root)
    stored = fresh.root / "results" / "calibration"
    shutil.rmtree(stored)
    process = fresh.start("calibrate", "generic", cwd=tmp_path)
    while not guests(process.pid):
        assert process.poll() is None
    os.killpg(process.pid, number)
    done = ended(process)
    assert done.status == (130 if number == signal.SIGINT else -number), done
    assert "Traceback" not in done.err
    nothing_left(tmp_path)
    assert list(stored.glob("*.json")) == []
    assert (number == signal.SIGKILL) or os.listdir(stored) == []


def test_a_directory_that_holds_probes_is_not_taken_again(checkout: Checkout, tmp_path: Path) -> None:
    """They may be of another kernel."""
    (tmp_path / "x" / "cells" / "old").mkdir(parents=True)
    done = checkout.run("calibrate", "--out", "x", cwd=tmp_path)
    assert (done.status, "holds cells already" in done.err) == (1, True), done
