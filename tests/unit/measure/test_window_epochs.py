"""The window between losses, of a sender made by arithmetic: its decrease and its cubic come back."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from netwarp.measure.models.window_epochs import Epoch, cubic_of, curve_metrics, decrease_ratio, epochs_of
from netwarp.measure.sent_data import Sending

RTT_NS = 100_000_000


def sender(windows: list[list[int]]) -> Sending:
    """Epochs of windows: each round trip's packets leave at once and are acknowledged one by one a round trip later;
    after an epoch one packet is sent again, which everything before it waits for.
    """
    rows: list[tuple[int, int, bool]] = []  # of data: time, number, again
    acks: list[tuple[int, int]] = []  # time, next number
    t_ns, number = 0, 0
    for epoch in windows:
        for window in epoch:
            rows += [(t_ns, number + k, False) for k in range(window)]
            acks += [(t_ns + RTT_NS, number + k + 1) for k in range(window)]
            t_ns, number = t_ns + RTT_NS, number + window
        acks = [ack for ack in acks if ack[1] <= number - 1]  # the last packet is lost, and sent again
        rows.append((t_ns, number - 1, True))
        t_ns += RTT_NS
        acks.append((t_ns, number))
    order = sorted(
        [(at, 1, place) for place, (at, _, _) in enumerate(rows)]
        + [(at, 0, place) for place, (at, _) in enumerate(acks)]
    )
    packets = {kind: np.zeros(count, dtype=np.int64) for kind, count in ((1, len(rows)), (0, len(acks)))}
    for packet, (_, kind, place) in enumerate(order):
        packets[kind][place] = packet
    begin = np.array([row[1] for row in rows], dtype=np.int64)
    return Sending(
        packet=packets[1],
        sent_ns=np.array([row[0] for row in rows], dtype=np.int64),
        begin=begin,
        end=begin + 1,
        payload_bytes=np.full(len(rows), 1448, dtype=np.int64),
        again=np.array([row[2] for row in rows]),
        ack_packet=packets[0],
        ack_ns=np.array([ack[0] for ack in acks], dtype=np.int64),
        acked=np.array([ack[1] for ack in acks], dtype=np.int64),
    )


def grown(curve: Callable[[float], float], rounds: int) -> list[int]:
    return [round(curve(k * RTT_NS / 1e9)) for k in range(rounds)]


def test_a_sawtooth_is_halved() -> None:
    sending = sender([[*range(20, 41)]] * 4)
    epochs = epochs_of(sending, sending.loss_events())
    assert [epoch.packets.tolist() for epoch in epochs] == [
        [*range(20, 40)]
    ] * 3  # without the first; of the last round the end is not known
    assert decrease_ratio(epochs) == pytest.approx(20 / 39)


@pytest.mark.parametrize("plateau", [300.0, 255.0])
def test_a_cubic_comes_back(plateau: float) -> None:
    """C 0.4, from 0.7 of 300 packets; the plateau of fast convergence as well."""
    k_s = ((plateau - 210) / 0.4) ** (1 / 3)
    epoch = grown(lambda t: 0.4 * (t - k_s) ** 3 + plateau, 70 if plateau == 255 else 60)
    epoch += [300 if plateau == 255 else epoch[-1]]  # the window at the loss
    sending = sender([epoch] * 5)
    metrics = curve_metrics(sending, sending.loss_events())
    assert metrics["cubic_c"] == pytest.approx(0.4, rel=0.05)
    assert metrics["cubic_k_s"] == pytest.approx(k_s, rel=0.03)


def test_too_few_round_trips_are_no_curve() -> None:
    sending = sender([[*range(4, 9)]] * 3)
    assert all(cubic_of(epoch) is None for epoch in epochs_of(sending, sending.loss_events()))
    assert curve_metrics(sending, sending.loss_events())["cubic_c"] is None


def test_a_round_that_begins_with_what_was_acknowledged_before_ends() -> None:
    """Needless retransmissions after a silence: the next round would begin where this one did (it never ended once)."""
    begin = np.array([0, 1, 2, 0, 1, 3, 0, 4], dtype=np.int64)
    rows = len(begin)
    sending = Sending(
        packet=np.arange(0, 2 * rows, 2),
        sent_ns=np.arange(rows) * RTT_NS,
        begin=begin,
        end=begin + 1,
        payload_bytes=np.full(rows, 1448, dtype=np.int64),
        again=np.array([False, False, False, True, True, False, True, False]),
        ack_packet=np.arange(5, 2 * rows, 2),
        ack_ns=np.arange(len(range(5, 2 * rows, 2))) * RTT_NS,
        acked=np.array([3, 3, 3, 4, 4, 5][: len(range(5, 2 * rows, 2))], dtype=np.int64),
    )
    for event in range(rows):
        for following in range(event, rows):
            epochs_of(sending, np.array([event, following], dtype=np.int64))


def test_a_decrease_is_over_one_loss_event() -> None:
    """An epoch without a whole round trip between two that have some: their windows say nothing of one decrease."""
    one, two = (Epoch(number, np.array([0.0]), np.array([window])) for number, window in ((0, 40), (2, 10)))
    assert decrease_ratio([one, two]) is None
    assert decrease_ratio([one, Epoch(1, np.array([0.0]), np.array([20])), two]) == 0.5
