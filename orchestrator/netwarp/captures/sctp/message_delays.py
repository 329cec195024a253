"""Delays of messages that were captured at both ends of an association: from the first transmission to the delivery."""

from __future__ import annotations

import numpy as np

from ..arrays import unique_with_places
from .association import Association

Delays = dict[int, tuple[float, float]]


def message_delays(sender: Association, receiver: Association) -> Delays | None:
    """By stream the mean and the longest delay in s of the messages of the data direction. None: the captures cannot
    show it, since one lacks the handshake by which TSNs are counted, or their clocks differ (a delay is below 0).
    """
    way = sender.direction
    if not (sender.row["base_known"][way] and receiver.row["base_known"][way]):
        return None
    messages = receiver.messages
    sent, done = sender.sent, messages.delivered
    tsn, stream, delivered_ns = messages.tsn[done], messages.stream[done], messages.delivery_ns[done]
    first = np.flatnonzero(sent.new)
    first = first[np.argsort(sent.rows["tsn"][first], kind="stable")]
    place = np.searchsorted(sent.rows["tsn"][first], tsn)
    there = place < len(first)
    there[there] &= sent.rows["tsn"][first[place[there]]] == tsn[there]
    delay = delivered_ns[there] - sent.rows["time_ns"][first[place[there]]]
    if not len(delay) or delay.min() < 0:
        return None
    streams, place = unique_with_places(stream[there])
    longest = np.zeros(len(streams), dtype=np.int64)
    np.maximum.at(longest, place, delay)
    means = np.bincount(place, weights=delay) / np.bincount(place) / 1e9
    return dict(zip(streams.tolist(), zip(means.tolist(), (longest / 1e9).tolist(), strict=True), strict=True))
