"""A path-MTU black hole under an association: large packets vanish again and again while small ones pass."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..capture import Capture
from .association import Association
from .network_evidence import transmissions_that_arrived

VANISHED = 3
"""A chunk that was lost so often, and no less, is taken for one that cannot pass."""
PASSED = 2
ICMP = (1, 58)


@dataclasses.dataclass(frozen=True)
class MtuHole:
    """Packets with `lost_bytes` of data and more vanished from from_ns to to_ns, `lost` of them, while `passed` with
    `passed_bytes` at most (and HEARTBEATs) arrived. icmp: packets of ICMP in the capture, which might have told the
    sender.
    """

    from_ns: int
    to_ns: int
    lost: int
    lost_bytes: int
    passed: int
    passed_bytes: int
    icmp: int


def mtu_hole(association: Association) -> MtuHole | None:
    """The hole that the capture at the data's sender shows; None: it shows none."""
    sent = association.sent
    if association.point != "sender" or not len(sent):
        return None
    arrived = transmissions_that_arrived(association, {})
    lost = np.array([each is False for each in arrived])
    often = np.bincount(sent.unit[lost], minlength=len(sent.tsns)) >= VANISHED
    gone = np.flatnonzero(lost & often[sent.unit])
    if not len(gone):
        return None
    times = sent.rows["time_ns"]
    from_ns, to_ns = int(times[gone].min()), int(times[gone].max())
    there = np.array([each is True for each in arrived]) & (times >= from_ns) & (times <= to_ns)
    in_packet = np.repeat(np.add.reduceat(sent.rows["user_bytes"], sent.packets), sent.per_packet)
    gone_bytes, passed_bytes = in_packet[gone], in_packet[there]
    beats = association.heartbeats
    answered = beats.answered & (beats.direction == association.direction)
    answered &= (beats.time_ns >= from_ns) & (beats.time_ns <= to_ns)
    passed = len(np.unique(sent.moment[there])) + int(answered.sum())
    largest = int(passed_bytes.max(initial=0))
    if passed < PASSED or largest >= int(gone_bytes.min()):
        return None
    vanished = len(np.unique(sent.moment[gone]))
    return MtuHole(from_ns, to_ns, vanished, int(gone_bytes.min()), passed, largest, _icmp(association.capture))


def _icmp(capture: Capture) -> int:
    rows = capture.conversations
    return int(rows["packets"][np.isin(rows["protocol"], ICMP)].sum())
