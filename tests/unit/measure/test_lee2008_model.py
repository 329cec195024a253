"""lee2008's equations against hand-worked values, Table 3, and the yardsticks beside them."""

import math

import numpy as np
import pytest
from netwarp.core.errors import SpecError
from netwarp.engine.models import NAMED_READINGS, lee2008_model, lee2008_yardsticks
from netwarp.measure.groups.pages import lee2008_metrics
from netwarp.measure.models.latency_models import cardwell_s
from netwarp.measure.models.lee2008 import model
from netwarp.measure.models.lee2008.readings import CORRECTED, PRINTED, Readings
from netwarp.measure.models.lee2008.table3 import COLUMNS, TABLE3, miss, model_times
from netwarp.measure.observation import FlowObservation
from support.specs import plan_of, replaced

QUEUE = 'queue = "50 packets"'
S = 8 * 536 / 40e3  # a packet on the link


def test_the_printed_formulae_worked_by_hand_for_one_object() -> None:
    """26 packets, p = 1 %: the digest's numbers; more is sent than there is."""
    x = model.sent_before_loss(0.01, 26, PRINTED)
    assert x == pytest.approx(23.77, abs=0.005)
    c = model.window_number(x, 2, PRINTED)
    y = model.window_size(26, c, 2, PRINTED)
    b = model.sent_in_window(x, c, 2, PRINTED)
    assert (c, y, round(b, 1), round(x + y - b + 1)) == (5, 11, -8.2, 44)
    stage = model.slow_start_stage(x, 26, math.inf, 2, 0.256, S, PRINTED)
    assert stage.left == pytest.approx(22.5, abs=0.05)
    assert stage.threshold == 22


def test_the_corrected_window_arithmetic_counts_a_slow_start() -> None:
    """Windows 2, 4, 8, ... and 1, 2, 4, ...: which window packet x is in, and what was sent before it there."""
    for window in (1, 2):
        sizes = [window * 2**j for j in range(6)]
        for x in range(1, sum(sizes) + 1):
            j = next(j for j in range(6) if sum(sizes[: j + 1]) >= x)
            c = model.window_number(x, window, CORRECTED)
            assert c == j + 1
            assert model.sent_in_window(x, c, window, CORRECTED) == x + 1 - sum(sizes[:j]), "the lost packet too"
            assert model.window_size(10**6, c, window, CORRECTED) == sizes[j]


@pytest.mark.parametrize("window", [1, 2])
def test_what_a_stage_of_slow_start_sends_is_its_windows_and_no_more(window: int) -> None:
    """Up to the end of the window with the loss: never more than there is (26 packets at 1 % were 27 once)."""
    for left in (5, 26, 126):
        for x in np.arange(0.5, left - 0.5, 0.25).tolist():
            ends = np.minimum(left, np.cumsum([window * 2**j for j in range(8)]))
            stage = model.slow_start_stage(x, left, math.inf, window, 0.0, 1.0, CORRECTED)
            assert stage.time_s == pytest.approx(float(ends[ends >= x][0])), "a second a packet, no round trip"
            assert stage.left == pytest.approx(left - x)


def test_whole_numbers_of_losses_are_whole() -> None:
    """100 packets at 7 % are 7.000000000000001 in binary; a loss that is next to impossible is one loss by ceil."""
    assert math.ceil(100 * 0.07) == 8
    hundred = model.object_s(0.07, 0.256, S, 100, 2, PRINTED)
    assert hundred == pytest.approx(model.object_s(0.07 - 1e-9, 0.256, S, 100, 2, PRINTED), rel=1e-6)
    assert model.sent_before_loss(1e-18, 26, PRINTED) == pytest.approx(27), "flag 2: with the lost packet"


def test_the_corrected_sum_to_the_threshold_is_a_sum() -> None:
    for th in range(1, 70):
        sizes = []
        while not sizes or sizes[-1] * 2 <= th:
            sizes.append(1 if not sizes else sizes[-1] * 2)
        expected = sum(sizes) + (0 if math.log2(th).is_integer() else th)
        assert model.sum_to_threshold(th, 2, CORRECTED) == expected


@pytest.mark.parametrize("window", [1, 2])
def test_stalls_are_the_waits_of_a_server_whose_window_doubles(window: int) -> None:
    """Kurose and Ross: the server waits s + rtt - (window's time) after each window but the last, where that is > 0."""
    for packets in (1, 2, 3, 6, 7, 26, 126):
        for rtt in (0.055, 0.08, 0.256, 2.0):
            waits, sent, size = 0.0, 0, window
            while sent + size < packets:
                waits += max(0.0, rtt + window * S - size * S)
                sent, size = sent + size, 2 * size
            assert model.stalled_s(packets, window, rtt, S, CORRECTED) == pytest.approx(waits)


def test_without_loss_the_time_is_stalls_and_packets() -> None:
    time = model.object_s(0.0, 0.256, S, 26, 2, CORRECTED)
    assert time == pytest.approx(26 * S + model.stalled_s(26, 2, 0.256, S, CORRECTED))


def test_table_3_by_every_named_reading() -> None:
    """What docs/lee2008-model.md says of how far they miss; no reading comes near the paper's 6 %."""
    expected = {
        "printed": (0.629, 0.615, 0.640),
        "corrected": (0.333, 0.346, 0.325),
        "A": (0.151, 0.144, 0.179),
        "B": (0.155, 0.136, 0.180),
        "C": (0.157, 0.156, 0.164),
    }
    for name, values in expected.items():
        rms = [miss(NAMED_READINGS[name], columns).rms for columns in COLUMNS]
        assert rms == pytest.approx(values, abs=0.0006), name
    assert min(miss(readings, columns).rms for readings in NAMED_READINGS.values() for columns in COLUMNS) > 0.13


def test_one_condition_has_one_value_in_the_model_and_several_in_the_table() -> None:
    same = [number for number, row in enumerate(TABLE3) if (row.loss, row.rate_bit_s, row.rtt_s) == (0.01, 40e3, 0.256)]
    assert len(same) == 3
    assert len({tuple(model_times(PRINTED)[number]) for number in same}) == 1
    assert len({TABLE3[number].model_sctp_s for number in same}) == 2


def test_arrays_are_broadcast() -> None:
    times = lee2008_model(np.array([[0.004], [0.02]]), np.array([40e3, 400e3, 3e6]), 0.256, reading="B")
    assert times.tcp_s.shape == times.sctp_s.shape == (2, 3)
    assert float(lee2008_model(0.02, 3e6, 0.256, reading="B").sctp_s) == times.sctp_s[1, 2]


def test_every_switch_can_be_read_every_way() -> None:
    for name, values in Readings.choices().items():
        assert values[0] == getattr(PRINTED, name), "what the paper prints comes first"
        for value in values:
            times = model_times(PRINTED.read(**{name: value}))
            assert np.isfinite(times).all() and (times > 0).all()


@pytest.mark.parametrize("arguments", [{"reading": "D"}, {"switches": {"stall": "floor"}}, {"switches": {"left": "x"}}])
def test_what_there_is_not_is_refused(arguments: dict[str, object]) -> None:
    with pytest.raises(SpecError, match=r"there is no|cannot be"):
        lee2008_model(0.01, 40e3, 0.256, **arguments)  # type: ignore[arg-type]
    with pytest.raises(SpecError, match="loss is at least 0"):
        lee2008_model(1.0, 40e3, 0.256)


def test_cardwell_without_loss_is_slow_start_alone() -> None:
    """d = 7 from 1 with doubling windows: 1 + 2 + 4 in log2(8) = 3 round trips."""
    assert cardwell_s(7, 0, 0.1, timeout_s=1, window_packets=1e9, initial_window=1, b=1) == pytest.approx(0.3)


def test_cardwells_rest_goes_at_the_rate_of_its_equation_22() -> None:
    """What arrives, not what is sent: half a window and one packet of a series of timeouts. b = 2, no limit."""
    p, rtt, t0 = 0.02, 0.1, 0.4
    q, w = 1 - p, 2 / 3 + math.sqrt(8 * 0.98 / (6 * 0.02) + 4 / 9)
    timeouts = (1 + q**3 * (1 - q ** (w - 3))) * (1 - q**3) / (1 - q**w)
    g = 1 + p + 2 * p**2 + 4 * p**3 + 8 * p**4 + 16 * p**5 + 32 * p**6
    rate = (q / p + w / 2 + timeouts) / (rtt * (w + 1) + timeouts * g * t0 / q)
    short, long = (
        cardwell_s(packets, p, rtt, timeout_s=t0, window_packets=1e9, initial_window=1, b=2)
        for packets in (10_000, 11_000)
    )
    assert long - short == pytest.approx(1000 / rate)


def test_yardsticks_where_there_is_no_round_trip_or_next_to_no_loss() -> None:
    """Without a round trip nothing but the link takes time; 1e-17 of the packets lost are as none."""
    for loss in (0.0, 0.01, 0.5):
        beside = lee2008_yardsticks(loss, 40e3, 0.0)
        assert beside.cardwell_s == beside.pftk_s == beside.mathis_s == beside.on_link_s
    least, none = (lee2008_yardsticks(loss, 3e6, 0.256) for loss in (1e-17, 0.0))
    assert least.cardwell_s == pytest.approx(none.cardwell_s)
    with pytest.raises(SpecError, match="loss is at least 0"):
        lee2008_yardsticks(1.0, 40e3, 0.256)


def test_yardsticks_are_of_the_packets_that_the_switches_say() -> None:
    """Five objects together are five times the packets; a one-way delay is half a round trip."""
    one, five = (
        lee2008_yardsticks(0.0, 40e3, 0.256, switches={"scope": scope}) for scope in ("object", "objects together")
    )
    assert (one.on_link_s, five.on_link_s) == pytest.approx((26 * S, 126 * S))
    far = lee2008_yardsticks(0.02, 3e6, 0.256, switches={"rtt_is": "one-way delay"})
    assert far == lee2008_yardsticks(0.02, 3e6, 0.512)


def test_yardsticks_are_never_below_the_link() -> None:
    beside = lee2008_yardsticks(0.01, 40e3, 0.256)
    assert beside.on_link_s == pytest.approx(26 * S)
    fast = lee2008_yardsticks(0.02, 3e6, 0.256)
    for each in (beside, fast):
        assert min(each.cardwell_s, each.pftk_s, each.mathis_s) >= each.on_link_s
    assert fast.cardwell_s > fast.on_link_s


@pytest.mark.parametrize("loss", ["", 'bit_errors = "1e-6"', 'byte_errors = "1e-6"', "drop = [3]"])
def test_the_model_has_no_value_for_a_loss_that_it_does_not_know(loss: str) -> None:
    page = 'protocol = "sctp"\npage = { objects = { count = 5, size = "13.5 kB" } }'
    text = replaced('protocol = "tcp"', page).replace(QUEUE, f"{QUEUE}\n{loss}", 1)
    cell = plan_of(text).cells[0]
    assert bool(lee2008_metrics(FlowObservation(cell, cell.flows[0]))) is (not loss)
