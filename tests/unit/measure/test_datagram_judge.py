"""A calibration's judge, on datagrams made by hand: right ones pass, each small deviation fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
from netwarp.core.ip_families import IPV6
from netwarp.core.link_types import GilbertElliott, LinkImpairment
from netwarp.measure.calibration import (
    ON_THE_WALL_CLOCK,
    VIRTUAL,
    WALL,
    Budget,
    ProbeClock,
    generic_probes,
    netem_probes,
    over_ipv6,
    profile_probes,
    wall_clock,
)
from netwarp.measure.calibration.datagram_judge import judge_ways
from netwarp.measure.calibration.datagram_probes import (
    CHANGED,
    CHANGED_COUNT,
    CHANGED_NS,
    NETEM,
    PROBE_BYTES,
    read_link,
    sending_ns,
)
from netwarp.measure.calibration.datagrams import (
    Probe,
    Way,
    binomial_bound,
    chain_bound,
    chi_square,
    chi_square_bound,
    delays_of,
    is_host_a,
    run_lengths,
)
from netwarp.present.profile_table import profile_table
from netwarp.store.init_records import Ticks
from netwarp.store.probe_rows import ProbeRow
from netwarp.testbed.layout import make_layout
from support.checkout import ROOT

PROGRAM = Path("probe")
MS, S = 10**6, 10**9
README = ROOT / "netem-profiles" / "README.md"
POOR = read_link('profile = "wifi-80211n-poor"')[0].forward
COUNT = 60_000
APART = S


def echoes_of(shape: LinkImpairment) -> Probe:
    """The probe of a path with that shape both ways."""
    (probe, *_) = profile_probes("wired-lan", PROGRAM, Budget())
    link = msgspec.structs.replace(probe.cell.links[0], forward=shape, backward=shape)
    return Probe("made", msgspec.structs.replace(probe.cell, links=(link,)), ("echoes",))


def chain(rng: np.random.Generator, model: GilbertElliott, count: int) -> np.ndarray:
    """Which packets Gilbert's model loses."""
    turns, state = rng.random(count), False
    lost = np.zeros(count, dtype=bool)
    for number, turn in enumerate(turns):
        lost[number] = state
        state = turn >= model.r_ratio if state else turn < model.p_ratio
    return lost


def made(shape: LinkImpairment, seed: int, delays_ns: np.ndarray | None = None, lost: np.ndarray | None = None) -> Way:
    """Datagrams as the shape would deliver them."""
    rng = np.random.default_rng(seed)
    sent = S + APART * np.arange(COUNT, dtype=np.int64)
    if delays_ns is None:
        delays_ns = rng.choice(delays_of(shape).values_s * 1e9, COUNT)
    if lost is None:
        lost = chain(rng, shape.burst_loss, COUNT) if shape.burst_loss else np.zeros(COUNT, dtype=bool)
    arrived = (sent + delays_ns.astype(np.int64) + sending_ns(shape, PROBE_BYTES))[~lost]
    order = np.argsort(arrived, kind="stable")
    place = np.full(COUNT, -1, dtype=np.int64)
    place[np.flatnonzero(~lost)[order]] = np.arange(len(arrived))
    return Way(sent, np.full(COUNT, PROBE_BYTES, dtype=np.int64), arrived[order], place, 0, 0)


def rows_of(shape: LinkImpairment, way: Way) -> dict[str, ProbeRow]:
    """The rows there, by quantity."""
    rows, _ = judge_ways(echoes_of(shape), (way, made(shape, 99)), 0, VIRTUAL)
    return {row.quantity: row for row in rows if "there" in row.quantity}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ["wifi-80211n-poor", "wifi-80211n-good", "mobile-3g", "leo-handover", "adsl"])
def test_right_probes_pass(name: str, seed: int) -> None:
    shape = read_link(f'profile = "{name}"')[0].forward
    rows = rows_of(shape, made(shape, seed))
    assert all(row.ok for row in rows.values()), [row for row in rows.values() if not row.ok]
    assert len(rows) >= (9 if shape.burst_loss else 5)


def scaled(factor: float) -> Callable[[np.random.Generator], np.ndarray]:
    """Delays whose jitter is off by a factor."""
    expected = delays_of(POOR)
    return lambda rng: 1e9 * (expected.mean_s + factor * (rng.choice(expected.values_s, COUNT) - expected.mean_s))


def normal(rng: np.random.Generator) -> np.ndarray:
    """Right mean, right standard deviation, another distribution."""
    expected = delays_of(POOR)
    return 1e9 * np.abs(rng.normal(expected.mean_s, expected.deviation_s, COUNT))


def later(rng: np.random.Generator) -> np.ndarray:
    """All a twentieth later."""
    return 1e9 * 1.05 * rng.choice(delays_of(POOR).values_s, COUNT)


@pytest.mark.parametrize(
    ("delays", "quantity"),
    [
        (scaled(1.1), "one-way delay there, standard deviation"),
        (scaled(0.9), "one-way delay there, standard deviation"),
        (later, "one-way delay there, mean"),
        (normal, "delays there, distance from the distribution"),
    ],
)
def test_wrong_delays_do_not(delays: Callable[[np.random.Generator], np.ndarray], quantity: str) -> None:
    assert not rows_of(POOR, made(POOR, 1, delays(np.random.default_rng(5))))[quantity].ok


def test_losses_of_the_right_mean_but_not_in_bursts_do_not_pass() -> None:
    rng = np.random.default_rng(3)
    assert POOR.burst_loss is not None
    share = POOR.burst_loss.p_ratio / (POOR.burst_loss.p_ratio + POOR.burst_loss.r_ratio)
    rows = rows_of(POOR, made(POOR, 1, lost=rng.random(COUNT) < share))
    wrong = [quantity for quantity, row in rows.items() if not row.ok]
    for beginning in ("good to bad", "bad to good", "mean run of losses", "runs of losses"):
        assert any(quantity.startswith(beginning) for quantity in wrong), (beginning, wrong)
    twice = GilbertElliott(2 * POOR.burst_loss.p_ratio, POOR.burst_loss.r_ratio)
    rows = rows_of(POOR, made(POOR, 1, lost=chain(rng, twice, COUNT)))
    assert not next(row for quantity, row in rows.items() if quantity.startswith("loss there")).ok


@pytest.mark.parametrize("off_us", [-11, 11])
def test_a_fixed_delay_is_held_to_ten_microseconds(off_us: int) -> None:
    shape = LinkImpairment(one_way_delay_ns=10 * MS)
    one = np.full(COUNT, 10.0 * MS)
    one[77] += off_us * 1000
    wrong = [row.quantity for row in rows_of(shape, made(shape, 1, one)).values() if not row.ok]
    assert wrong == [f"one-way delay there, {'least' if off_us < 0 else 'greatest'}"]


def test_one_packet_overtaken_one_twice_one_lost() -> None:
    shape = LinkImpairment(one_way_delay_ns=10 * MS)
    way = made(shape, 1)
    swapped = way.arrival.copy()
    swapped[[5, 6]] = swapped[[6, 5]]
    lost = np.arange(COUNT) == 9
    for wrong, quantity in (
        (Way(way.sent_ns, way.ip_bytes, way.arrived_ns, swapped, 0, 0), "overtaken there"),
        (Way(way.sent_ns, way.ip_bytes, way.arrived_ns, way.arrival, 1, 0), "twice or altered there"),
        (made(shape, 1, lost=lost), f"loss there of {COUNT} packets"),
    ):
        assert not rows_of(shape, wrong)[quantity].ok, quantity


def burst(shape: LinkImpairment, taken: int, clock: ProbeClock = VIRTUAL) -> list[ProbeRow]:
    """A burst of 60 of which the first `taken` get through, at the rate (of packets this long)."""
    (probe,) = [probe for probe in profile_probes("wired-lan", PROGRAM, Budget()) if probe.quantities == ("bursts",)]
    link = msgspec.structs.replace(probe.cell.links[0], forward=shape, backward=LinkImpairment())
    probe = Probe("made", msgspec.structs.replace(probe.cell, links=(link,)), ("bursts",))
    size = np.full(60, 1500)
    gone = np.cumsum(size[:taken] * 8 * 10**9 // (shape.rate_bit_s or 1))
    if shape.queue_bytes is not None:
        gone -= gone[0]
    place = np.where(np.arange(60) < taken, np.arange(60), -1)
    way = Way(np.full(60, S), size, S + shape.one_way_delay_ns + gone, place, 0, 0)
    none = np.zeros(0, dtype=np.int64)
    nothing = Way(none, none, none, none, 0, 0)
    return judge_ways(probe, (way, nothing), 0, clock)[0]


@pytest.mark.parametrize(("taken", "ok"), [(20, False), (21, True), (22, False)])
@pytest.mark.parametrize("queue", [{"queue_packets": 20}, {"queue_bytes": 30_000}], ids=["packets", "bytes"])
def test_a_queue_is_held_exactly(queue: dict[str, int], taken: int, ok: bool) -> None:
    """20 packets wait and one is being sent; in bytes 20 full packets, and the first leaves at once."""
    rows = burst(LinkImpairment(one_way_delay_ns=MS, rate_bit_s=10_000_000, **queue), taken)  # type: ignore[arg-type]
    assert all(row.ok for row in rows if row.quantity.startswith("queue")) is ok
    assert all(row.ok for row in rows if row.quantity.startswith("rate"))


def test_on_the_wall_clock_a_queue_that_was_never_full_is_not_judged_and_the_others_by_what_may_be_late() -> None:
    shape = LinkImpairment(one_way_delay_ns=MS, rate_bit_s=10_000_000, queue_packets=20)
    (row,) = burst(shape, 60, WALL)
    assert row.quantity.startswith("INVALID: queue and rate there")
    assert not row.ok
    # 10 ms are 8.3 packets: 9 more or fewer pass, 10 do not
    for taken, ok in ((12, True), (30, True), (11, False), (31, False)):
        rows = [one for one in burst(shape, taken, WALL) if one.quantity.startswith("queue")]
        assert all(one.ok for one in rows) is ok, (taken, rows)


def woken(worst_ms: float) -> ProbeClock:
    """The clock of a cell of which one wake in a hundred was so late, and no other."""
    return wall_clock(Ticks(20 * MS, 10 * MS, 100, int(worst_ms > 10), int(worst_ms * MS)))


def test_a_host_that_stood_still_holds_no_queue_and_no_rate_to_less() -> None:
    """And each delay as before, in the median. What is late by less than a tick more than was seen is not wrong."""
    assert wall_clock(None) == woken(0.5) == woken(2) == WALL
    assert woken(8).once_s == pytest.approx(28e-3)
    shape = LinkImpairment(one_way_delay_ns=MS, rate_bit_s=10_000_000, queue_packets=20)
    for taken, ok in ((51, True), (52, False)):  # 35 ms are 29.2 packets: 30 more pass
        rows = [one for one in burst(shape, taken, woken(15)) if one.quantity.startswith("queue")]
        assert all(one.ok for one in rows) is ok, (taken, rows)
    way = made(LinkImpairment(one_way_delay_ns=20 * MS), 1)
    rows, _ = judge_ways(echoes_of(LinkImpairment(one_way_delay_ns=40 * MS)), (way, way), 0, woken(300))
    assert not next(row for row in rows if row.quantity == "one-way delay there, median").ok


def test_what_a_late_host_sends_at_once_is_no_measure_of_losses() -> None:
    """30 datagrams in one instant are more than a queue of 20 holds, 10 are not."""
    shape = LinkImpairment(one_way_delay_ns=MS, rate_bit_s=1_000_000, queue_packets=20)
    for at_once, rows_are in ((30, "INVALID: losses there: this host sent 29 "), (10, f"loss there of {COUNT} ")):
        way = made(shape, 1)
        together = np.where(np.arange(COUNT) < at_once, way.sent_ns[0], way.sent_ns)
        sent = replace(way, sent_ns=together)
        found, _ = judge_ways(echoes_of(shape), (sent, sent), 0, WALL)
        assert [row.quantity for row in found if row.quantity.startswith(rows_are)]


def test_a_rate_off_by_a_thousandth_does_not_pass() -> None:
    right = LinkImpairment(rate_bit_s=10_000_000, queue_packets=20)
    rows = burst(right, 21)
    (rate,) = [row for row in rows if row.quantity.startswith("rate")]
    assert rate.ok
    assert rate.bound < 0.002 * rate.configured
    wrong = msgspec.structs.replace(right, rate_bit_s=10_030_000)
    slower = msgspec.convert(msgspec.to_builtins(burst(wrong, 21)), list[ProbeRow])
    (other,) = [row for row in slower if row.quantity.startswith("rate")]
    assert not ProbeRow.of("", "", 10_000_000, other.measured, rate.bound, "").ok


def test_run_lengths_and_their_chi_square() -> None:
    lost = np.array([1, 1, 0, 1, 0, 0, 1, 1, 1], dtype=bool)
    assert run_lengths(lost).tolist() == [2, 1, 3]
    rng = np.random.default_rng(1)
    right, freedom = chi_square(rng.geometric(0.25, 400), 0.25)
    assert freedom >= 5
    assert right < chi_square_bound(freedom)
    wrong, _ = chi_square(rng.geometric(0.5, 400), 0.25)
    assert wrong > chi_square_bound(freedom)
    assert chi_square(np.array([1, 2]), 0.5) == (0.0, 0)


def test_no_probe_has_a_row_that_zero_losses_would_pass() -> None:
    shape = LinkImpairment(one_way_delay_ns=10 * MS, loss_ratio=1e-4)  # 6 of 60,000
    assert not any(quantity.startswith("loss there") for quantity in rows_of(shape, made(shape, 1)))
    for name in ("wifi-80211n-good", "wifi-80211n-poor", "leo-handover", "transcontinental"):
        (probe, *_) = profile_probes(name, PROGRAM, Budget())
        program = probe.cell.flows[0].program
        assert program is not None
        count, shape = int(program.sender[5]), probe.cell.links[0].forward
        if shape.burst_loss is not None:
            p, r = shape.burst_loss.p_ratio, shape.burst_loss.r_ratio
            assert chain_bound(count, p, r) < 0.9 * p / (p + r), name
            assert binomial_bound(round(count * p / (p + r)), r) < 0.9 * r, name
            assert binomial_bound(round(count * r / (p + r)), p) < 0.9 * p, name
        else:
            assert binomial_bound(count, shape.loss_ratio) < 0.9 * shape.loss_ratio


def test_bounds_are_what_they_say() -> None:
    # 1 % of 1,000: Poisson with mean 10 has less than half of 1e-5 above 27
    assert 14 / 1000 < binomial_bound(1000, 0.01) < 19 / 1000
    assert binomial_bound(100, 0.0) == 0.0
    # chi-square tables: 19.511 for 1 degree of freedom and 1e-5, 23.026 for 2 (-2 ln 1e-5), 25.902 for 3
    assert chi_square_bound(2) == pytest.approx(23.026, rel=1e-3)
    assert chi_square_bound(3) == pytest.approx(25.90, rel=1e-3)
    assert chi_square_bound(1) == pytest.approx(19.51, rel=1e-3)
    assert delays_of(LinkImpairment(one_way_delay_ns=MS, jitter_ns=MS)).deviation_s == pytest.approx(
        1e-3 / 3**0.5, rel=1e-3
    )


def test_on_the_wall_clock_there_is_less_and_bounds_are_its_own() -> None:
    for probe in profile_probes("leo-handover", PROGRAM, ON_THE_WALL_CLOCK):
        assert probe.cell.duration_ns < 15 * S, probe.quantities
        assert not probe.cell.timeline
    assert WALL.late_s == 10e-3  # GuestBackend's and NetnsBackend's own limit
    names = {f"netem: {name}" for name in (*NETEM, *CHANGED)}
    assert {probe.name for probe in netem_probes(PROGRAM, Budget())} == names


def test_the_profiles_readme_is_what_the_files_say() -> None:
    """Every configured number, title and source; the measured ones are of the command (a guest test measures again)."""
    text = README.read_text()
    begin, end = text.index("<!-- made by"), text.index("<!-- end of what is made -->")
    table = text[begin:end]
    assert "?" not in table
    blank = "\n".join(
        " | ".join(_unmeasured(cell) for cell in line.split(" | ")) if "→" in line else line
        for line in table.split("\n")
    )
    made_now = profile_table([])
    assert blank == made_now[: made_now.index("<!-- end of what is made -->")]


def _unmeasured(cell: str) -> str:
    if "→" not in cell:
        return cell
    left, _, right = cell.partition(" → ")
    words = right.split(" ")
    return " ".join([left, "→", "?", *words[1:]])


def test_probes_over_ipv6_are_the_same_but_for_the_family() -> None:
    """And of two hosts a is told by the address that the testbed gives it."""
    for probe in generic_probes(PROGRAM):
        other = over_ipv6(probe)
        assert {link.ip_family for link in other.cell.links} == {IPV6}
        layout = make_layout(other.cell)
        ends = [layout.interface(node, "p1").ip for node in "ab"]
        assert [is_host_a(address) for address in ends] == [True, False]
        assert [is_host_a(make_layout(probe.cell).interface(node, "p1").ip) for node in "ab"] == [True, False]
        assert all(flow.program is not None and flow.program.receiver[-1] == "{to}" for flow in other.cell.flows)


def leave_at_changing_rates(probe: Probe, late_ns: int) -> Way:
    """A burst at 1 s through a link each of whose changes comes too late."""
    bits = 8 * probe.cell.links[0].mtu_bytes
    leaves, now = [], S
    for _ in range(CHANGED_COUNT):
        rate = next(rate for since, rate in reversed(CHANGED_NS.items()) if now >= (since and since + late_ns))
        now += bits * S // rate
        leaves.append(now)
    number = np.arange(CHANGED_COUNT, dtype=np.int64)
    return Way(np.full(CHANGED_COUNT, S), np.full(CHANGED_COUNT, bits // 8), np.array(leaves), number, 0, 0)


@pytest.mark.parametrize(
    ("late_ns", "clock", "right"),
    [
        (0, VIRTUAL, [True, True, True]),
        (9 * MS, WALL, [True, True, True]),  # before the rate falls, 9 ms more of it: three packets
        (9 * MS, VIRTUAL, [True, False, True]),  # the rate rises while the same packet is sent
        (40 * MS, WALL, [True, False, False]),
    ],
)
def test_a_late_change_of_rate_is_seen_where_the_clock_permits_none(
    late_ns: int, clock: ProbeClock, right: list[bool]
) -> None:
    probe = next(probe for probe in netem_probes(PROGRAM, Budget()) if probe.quantities == ("changes",))
    way = leave_at_changing_rates(probe, late_ns)
    rows, _ = judge_ways(probe, (way, Way(*(way.sent_ns[:0],) * 4, 0, 0)), 0, clock)
    assert [row.ok for row in rows] == right, rows
