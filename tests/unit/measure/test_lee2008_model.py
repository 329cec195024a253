"""lee2008's equations against hand-worked values, and where the metrics of pages use them."""

import math

import numpy as np
import pytest
from netwarp.measure.groups.pages import lee2008_metrics
from netwarp.measure.models import lee2008 as model
from netwarp.measure.models.lee2008 import CORRECTED, PRINTED
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


@pytest.mark.parametrize("loss", ["", 'bit_errors = "1e-6"', 'byte_errors = "1e-6"', "drop = [3]"])
def test_the_model_has_no_value_for_a_loss_that_it_does_not_know(loss: str) -> None:
    page = 'protocol = "sctp"\npage = { objects = { count = 5, size = "13.5 kB" } }'
    text = replaced('protocol = "tcp"', page).replace(QUEUE, f"{QUEUE}\n{loss}", 1)
    cell = plan_of(text).cells[0]
    assert bool(lee2008_metrics(FlowObservation(cell, cell.flows[0]))) is (not loss)
