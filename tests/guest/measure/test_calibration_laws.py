"""Calibration of packet losses and of queue management: probes pass, and fail with a setting a little wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from netwarp.core.link_types import LinkImpairment, Opportunities, Policer, Slots
from netwarp.core.types import Cell, Outcome
from netwarp.engine.execute import execute
from netwarp.guestkernel.cache import recorded_release
from netwarp.guestkernel.recipe import release_numbers
from netwarp.measure.calibration import (
    VIRTUAL,
    Budget,
    Probe,
    aqm_probes,
    bucket_probes,
    judge_profile,
    rule_probes,
)
from netwarp.sandbox import VirtualBackend
from netwarp.sandbox.virtual import DUALPI2_FROM, T0_REALTIME_NS
from netwarp.store.probe_rows import ProbeRow
from netwarp.store.run_dir import RunDir
from support.chain_kit import Checkout

US = 1000
PROGRAM = Path(__file__).resolve().parents[3] / "build" / "bin" / "probe"
SMALL = Budget(many=4000)
RULES = tuple(probe.name for probe in rule_probes(PROGRAM, SMALL))
AQMS = tuple(probe.name for probe in aqm_probes(PROGRAM))
BUCKETS = tuple(probe.name for probe in bucket_probes(PROGRAM))


def probe_of(name: str, checkout: Checkout) -> Probe:
    program = checkout.root / PROGRAM
    probes = (*rule_probes(program, SMALL), *aqm_probes(program), *bucket_probes(program))
    return next(probe for probe in probes if probe.name == name)


def judged(probe: Probe, checkout: Checkout, place: Path, cell: Cell) -> list[ProbeRow]:
    """Run a cell and judge it as the probe's."""
    run = RunDir(place / "x")
    execute([cell], VirtualBackend(checkout.kernel, checkout.root / "build"), run, jobs=1, finished=lambda *_: None)
    outcome = run.cell(cell.id).read_outcome()
    assert outcome.outcome is Outcome.COMPLETED, outcome
    rows, _ = judge_profile(probe, run.cell(cell.id).root, T0_REALTIME_NS, VIRTUAL)
    # what is stored and could not be read again would fail every later run
    assert msgspec.json.decode(msgspec.json.encode(rows), type=list[ProbeRow]) == rows
    return rows


@pytest.mark.parametrize("name", [*RULES, *AQMS, *BUCKETS])
def test_laws_hold(name: str, checkout: Checkout, tmp_path: Path) -> None:
    probe = probe_of(name, checkout)
    if name == "aqm: dualpi2" and release_numbers(recorded_release(checkout.kernel)) < DUALPI2_FROM:
        pytest.skip("DualPI2 is not in this kernel: NETWARP_KERNEL=7.3 netwarp calibrate aqm")
    rows = judged(probe, checkout, tmp_path, probe.cell)
    assert len(rows) >= (1 if name == "aqm: cake" else 2)
    assert [row for row in rows if not row.ok] == []


@dataclass(frozen=True)
class Wrong:
    """A probe, a change of its cell that its judge is not told of, and the beginning of the quantity that must fail."""

    name: str
    quantity: str
    change: Callable[[Cell], Cell]


def shaped(**changes: object) -> Callable[[Cell], Cell]:
    """The link there with these fields."""

    def change(cell: Cell) -> Cell:
        (link,) = cell.links
        forward: LinkImpairment = msgspec.structs.replace(link.forward, **changes)
        return msgspec.structs.replace(cell, links=(msgspec.structs.replace(link, forward=forward),))

    return change


def overhead(size: int) -> Callable[[Cell], Cell]:
    """Packets take their IP length and that of an opportunity."""

    def change(cell: Cell) -> Cell:
        traced = cell.links[0].forward.opportunities
        assert isinstance(traced, Opportunities)
        return shaped(opportunities=msgspec.structs.replace(traced, overhead_bytes=size))(cell)

    return change


def managed(kind: str | None = None, **settings: float) -> Callable[[Cell], Cell]:
    """The link's queue management with these settings, or of another kind."""

    def change(cell: Cell) -> Cell:
        aqm = cell.links[0].forward.aqm
        assert aqm is not None
        assert kind or settings.keys() <= aqm.settings.keys()
        kept = {} if kind else aqm.settings
        return shaped(aqm=msgspec.structs.replace(aqm, kind=kind or aqm.kind, settings=kept | settings))(cell)

    return change


def numbered(action: str, *, more: int = 0, later_ns: int = 0) -> Callable[[Cell], Cell]:
    """The rules of one action about other packets, or other delays."""

    def change(cell: Cell) -> Cell:
        rules = tuple(
            msgspec.structs.replace(
                rule,
                numbers=tuple(number + more for number in rule.numbers),
                delay_ns=rule.delay_ns + later_ns,
                ranges=tuple(msgspec.structs.replace(each, first=each.first + more) for each in rule.spans),
            )
            if rule.action == action
            else rule
            for rule in cell.links[0].forward.packet_rules
        )
        return shaped(packet_rules=rules)(cell)

    return change


def longest(length: int) -> Callable[[Cell], Cell]:
    """The black hole takes what is longer than that."""
    return lambda cell: msgspec.structs.replace(
        cell, timeline=tuple(msgspec.structs.replace(event, longer_than_bytes=length) for event in cell.timeline)
    )


CODEL = {"target_ns": 5 * 10**6, "interval_ns": 10**8}
WRONG = (
    Wrong("rules: bit errors 1e-4", "loss of 4000 packets of 1500 B", shaped(bit_error_ratio=1.2e-4)),
    Wrong("rules: byte errors 1e-4 of frames", "loss of 4000 packets of 576 B", shaped(byte_error_ratio=1.5e-4)),
    Wrong("rules: single packets", "packets lost that no rule names", numbered("drop", more=1)),
    Wrong("rules: single packets", "packets that came twice and no rule names", numbered("duplicate", more=1)),
    Wrong("rules: single packets", "delay of packet 9", numbered("delay", later_ns=20 * US)),
    Wrong("rules: every 100 packets", "packets lost that no range names", numbered("drop", more=1)),
    Wrong("rules: longer than 848 B", "longer packets that passed", longest(849)),
    Wrong("rules: longer than 848 B", "other packets that vanished", longest(847)),
    Wrong("buckets: policer", "packets with another fate", shaped(policer=Policer(5_130_000, 31_500))),
    Wrong("buckets: burst of a rate", "farthest from its time", shaped(burst_bytes=28_500)),
    Wrong("buckets: slots", "farthest from its time", shaped(slots=Slots(5_050_000, 5_050_000, 8, None))),
    Wrong("buckets: opportunities", "farthest from its time", overhead(0)),
    Wrong("aqm: red, 10 % too much", "probability of a drop", managed(max_p_ratio=0.4)),
    Wrong("aqm: red, 10 % too much", "dropped below the lower threshold", managed(min_bytes=10_000)),
    Wrong("aqm: codel", "sojourn time above the target", managed(interval_ns=99 * 10**6)),
    Wrong("aqm: codel", "dropped with a sojourn time below", managed(target_ns=2 * 10**6)),
    Wrong("aqm: pie", "sojourn time, mean", managed(target_ns=17 * 10**6)),
    Wrong("aqm: pie", "sojourn time, mean", managed("codel", **CODEL)),
    Wrong("aqm: fq_codel", "bytes by which the flow", managed("codel", **CODEL)),
    Wrong("aqm: cake", "rate (ip)", shaped(rate_bit_s=4_999_000)),
)


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{wrong.name}: {wrong.quantity}")
def test_a_wrong_cell_fails_its_probe(wrong: Wrong, checkout: Checkout, tmp_path: Path) -> None:
    """The cell that runs is not the cell that is judged by: as if the kernel, or what it was told, were off."""
    probe = probe_of(wrong.name, checkout)
    cell = wrong.change(probe.cell)
    assert cell != probe.cell
    rows = [row for row in judged(probe, checkout, tmp_path, cell) if row.quantity.startswith(wrong.quantity)]
    assert rows
    assert not all(row.ok for row in rows), rows
