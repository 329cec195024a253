"""The window from one loss event to the next, counted on the wire round trip by round trip: by how much it falls, and
the cubic that fits its growth (RFC 9438 4.2: W(t) = C (t - K)^3 + W_max).
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from ...captures.native import Floats, Ints
from ..sent_data import Sending

FEWEST_ROUNDS = 8
"""Round trips of an epoch in which a cubic can be told from a line."""
LAST_EPOCHS = 10
"""Epochs that are fitted: the last ones, far from slow start."""
STEPS = 400
"""Values of K that are tried: up to three times as long as the epoch."""


@dataclasses.dataclass(frozen=True)
class Epoch:
    """The round trips between a recovery and the next loss event: when each began (s from the first one) and how many
    packets left in it, of which the last one is the window at the loss. number: of the loss event that it follows.
    """

    number: int
    begin_s: Floats
    packets: Ints

    @property
    def at_loss(self) -> int:
        """The window at the loss that ends it."""
        return int(self.packets[-1])


@dataclasses.dataclass(frozen=True)
class Cubic:
    """C in packets/s^3, K in s from the first round trip, and the plateau W_max in packets."""

    c: float
    k_s: float
    plateau: float


def epochs_of(sending: Sending, events: Ints) -> list[Epoch]:
    """The epochs between loss events that have a whole round trip; the last one has no end and is left out."""
    known = np.maximum.accumulate(sending.acked) if len(sending.acked) else sending.acked
    highest = np.maximum.accumulate(sending.end)
    epochs: list[Epoch] = []
    for number, (event, following) in enumerate(itertools.pairwise(events.tolist())):
        row = _first_after(sending, known, int(highest[event]))
        begins: list[int] = []
        while row is not None and row < following:
            begins.append(row)
            after = _first_after(sending, known, int(sending.end[row]))
            row = (
                after if after is not None and after > row else None
            )  # what was sent again may be acknowledged already
        if len(begins) > 1:
            rows = np.array(begins, dtype=np.int64)
            epochs.append(Epoch(number, (sending.sent_ns[rows[:-1]] - sending.sent_ns[rows[0]]) / 1e9, np.diff(rows)))
    return epochs


def _first_after(sending: Sending, known: Ints, number: int) -> int | None:
    """The first data packet that leaves after everything below a number is acknowledged."""
    ack = int(np.searchsorted(known, number))
    if ack == len(known):
        return None
    row = int(np.searchsorted(sending.packet, sending.ack_packet[ack]))
    return row if row < len(sending.packet) else None


def decrease_ratio(epochs: Sequence[Epoch]) -> float | None:
    """The first window of an epoch over the window at the loss before it, in the mean; None: no two epochs with one
    loss event between them.
    """
    ratios = [after.packets[0] / before.at_loss for before, after in _neighbours(epochs)]
    return float(np.mean(ratios)) if ratios else None


def _neighbours(epochs: Sequence[Epoch]) -> Iterator[tuple[Epoch, Epoch]]:
    """Two epochs with one loss event between them; one without a whole round trip is in none."""
    return ((before, after) for before, after in itertools.pairwise(epochs) if after.number == before.number + 1)


def cubic_of(epoch: Epoch) -> Cubic | None:
    """The cubic with the least squares; None: fewer than FEWEST_ROUNDS round trips, or they do not grow."""
    if len(epoch.packets) < FEWEST_ROUNDS or epoch.packets[-1] <= epoch.packets[0]:
        return None
    windows = epoch.packets.astype(np.float64)
    ks = np.linspace(0, 3 * epoch.begin_s[-1], STEPS)
    cubes = (epoch.begin_s[np.newaxis, :] - ks[:, np.newaxis]) ** 3
    spread = cubes - cubes.mean(axis=1, keepdims=True)
    c = spread @ (windows - windows.mean()) / (spread**2).sum(axis=1)
    plateau = windows.mean() - c * cubes.mean(axis=1)
    errors = ((c[:, np.newaxis] * cubes + plateau[:, np.newaxis] - windows) ** 2).sum(axis=1)
    best = int(np.where(c > 0, errors, np.inf).argmin())
    return Cubic(float(c[best]), float(ks[best]), float(plateau[best])) if c[best] > 0 else None


def curve_metrics(sending: Sending, events: Ints) -> dict[str, float | None]:
    """The metrics of the epochs; medians of those of LAST_EPOCHS that have a value."""
    epochs = epochs_of(sending, events)
    last = epochs[-LAST_EPOCHS:]
    cubics = [(before.at_loss, cubic_of(epoch)) for before, epoch in _neighbours(epochs)]
    fitted = [(window, cubic) for window, cubic in cubics[-LAST_EPOCHS:] if cubic is not None]

    def median(values: Sequence[float]) -> float | None:
        return float(np.median(values)) if values else None

    return {
        "window_at_loss_packets": median([epoch.at_loss for epoch in last]),
        "window_decrease_ratio": decrease_ratio(epochs[-LAST_EPOCHS - 1 :]),
        "cubic_c": median([cubic.c for _, cubic in fitted]),
        "cubic_k_s": median([cubic.k_s for _, cubic in fitted]),
        "cubic_plateau_ratio": median([cubic.plateau / window for window, cubic in fitted]),
    }
