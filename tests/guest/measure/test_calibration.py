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
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell, Outcome
from netwarp.engine.execute import execute
from netwarp.measure.calibration import VIRTUAL, generic_probes, judge_profile
from netwarp.sandbox import VirtualBackend
from netwarp.sandbox.virtual import T0_REALTIME_NS
from netwarp.store.probe_rows import ProbeRow
from netwarp.store.run_dir import RunDir
from support.chain_kit import Checkout, copy_checkout, ended, guests, nothing_left

US, MS = 1_000, 1_000_000
QUANTITIES = {
    "RTT, mean", "one-way delay there, least", "one-way delay back, greatest", "rate there (ip)", "rate back (ip)",
    "rate there (ethernet)", "largest packet there", "queue there, fewest waiting when one was dropped",
    "queue there, most ever waiting",
}  # fmt: skip
PREFIXES = ("loss there of ", "fault cut at ", "fault blackhole at ", "fault link at ", "fault repair at ")


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
    assert {row.probe for row in measured} == {probe.name for probe in generic_probes(Path("probe"))}
    for row in measured:
        if row.unit == "s":
            assert row.bound <= (20e-6 if row.quantity == "RTT, mean" else 10e-6)
        if row.quantity.startswith("rate"):
            few = row.probe == "queue of 1 packets"  # a burst of which two packets arrive
            assert row.bound < (5e-3 if few else 2e-3) * row.configured
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
    """A probe, what is changed in its cell behind its back, and the quantity that must notice (its beginning)."""

    probe: str
    kind: str
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
    Wrong(SLOW, "echoes", "RTT, mean", shaped(one_way_delay_ns=50 * MS + 40 * US)),
    Wrong(SLOW, "echoes", "one-way delay there, least", shaped(one_way_delay_ns=50 * MS - 20 * US)),
    Wrong(SLOW, "echoes", "one-way delay there, greatest", shaped(one_way_delay_ns=50 * MS + 20 * US)),
    Wrong(SLOW, "bursts", "rate there (ip)", shaped(rate_bit_s=9_980_000)),
    Wrong("rate of Ethernet frames", "bursts", "rate there (ethernet)", shaped(layer="ip")),
    Wrong(SLOW, "bursts", "largest packet there", cell=narrower),
    Wrong("loss 1 %", "echoes", "loss there of ", shaped(loss_ratio=0.02)),
    Wrong("loss 1 %", "echoes", "loss there of ", shaped(loss_ratio=0.005)),
    Wrong("queue of 20 packets", "bursts", "queue there, fewest waiting", shaped(queue_packets=19)),
    Wrong("queue of 20 packets", "bursts", "queue there, most ever waiting", shaped(queue_packets=21)),
    Wrong("fault cut", "events", "fault cut at ", cell=later),
    Wrong("fault cut", "events", "fault repair at ", cell=later),
    Wrong("fault blackhole", "events", "fault blackhole at ", cell=later),
    Wrong("fault link", "events", "fault link at ", cell=later),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.probe}: {wrong.quantity}")
def test_a_wrong_cell_fails_its_probe(wrong: Wrong, checkout: Checkout, tmp_path: Path) -> None:
    """The cell that runs is not the cell that is judged by: just as if netem, cell-init or a timer were off."""
    probes = generic_probes(checkout.root / "build" / "bin" / "probe")
    (probe,) = [each for each in probes if (each.name, each.quantities) == (wrong.probe, (wrong.kind,))]
    link = probe.cell.links[0]
    changed = msgspec.structs.replace(link, forward=wrong.forward(link.forward))
    cell = wrong.cell(msgspec.structs.replace(probe.cell, links=(changed,)))
    assert cell != probe.cell
    run = RunDir(tmp_path / "x")
    backend = VirtualBackend(checkout.kernel, checkout.root / "build")
    execute([cell], backend, run, jobs=1, finished=lambda *_: None)
    outcome = run.cell(cell.id).read_outcome()
    assert outcome.outcome is Outcome.COMPLETED, outcome
    judged, _ = judge_profile(probe, run.cell(cell.id).root, T0_REALTIME_NS, VIRTUAL)
    rows = [row for row in judged if row.quantity.startswith(wrong.quantity)]
    assert rows and not all(row.ok for row in rows), rows
    # what is stored and could not be read again would fail every later run
    assert msgspec.json.decode(msgspec.json.encode(rows), type=list[ProbeRow]) == rows
    nothing_left(tmp_path, run=run.root)


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
