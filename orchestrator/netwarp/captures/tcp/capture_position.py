"""The position of a capture between the two ends, from the times of the handshake. It determines what the capture can
show.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from ..capture import NEAR
from ..native import Ints
from .columns import DirectionColumns


@dataclasses.dataclass(frozen=True)
class CapturePosition:
    """The position as the sender of one direction sees it. near_ns, far_ns: time from the capture point to that sender
    and back, and to the other end and back, from the handshake; None: not seen. given: the position that the caller
    states, which takes precedence (True: at the sender).
    """

    near_ns: int | None = None
    far_ns: int | None = None
    given: bool | None = None

    @property
    def share(self) -> float | None:
        """0: at the sender; 1: at the other end; None: not known."""
        if self.given is not None:
            return 0.0 if self.given else 1.0
        if self.near_ns is None or self.far_ns is None or self.near_ns + self.far_ns == 0:
            return None
        return self.near_ns / (self.near_ns + self.far_ns)

    @property
    def is_near(self) -> bool:
        """True if the capture was taken at the sender."""
        return self.share is not None and self.share < NEAR

    @property
    def is_far(self) -> bool:
        """True if the capture was taken at the other end."""
        return self.share is not None and self.share > 1 - NEAR

    @property
    def round_trip_ns(self) -> int | None:
        """The round-trip time of the handshake: both parts."""
        return None if self.near_ns is None or self.far_ns is None else self.near_ns + self.far_ns


def capture_positions(handshake: tuple[int, int] | None, at: int | None) -> tuple[CapturePosition, CapturePosition]:
    """The positions for both directions. handshake: SYN to SYN+ACK and SYN+ACK to ACK, ns; at: the direction whose
    sender the capture is known to be at.
    """
    to_responder, to_initiator = handshake if handshake else (None, None)
    given = [None if at is None else at == d for d in (0, 1)]
    return CapturePosition(to_initiator, to_responder, given[0]), CapturePosition(to_responder, to_initiator, given[1])


def smallest(values: Ints, other: int | None) -> int | None:
    """The smallest of all values; None if there is none."""
    known = [int(np.min(values))] if len(values) else []
    return min(known + ([] if other is None else [other]), default=None)


def handshake_ns(initiator: DirectionColumns, responder: DirectionColumns) -> tuple[int, int] | None:
    """Time from SYN to SYN+ACK, and from SYN+ACK to the initiator's first ACK of it, at the capture point; None: not
    all seen.

    Also None if a SYN or SYN+ACK was sent twice: it is not known which of them was answered (Karn).
    """
    asked = initiator.syns
    answered = responder.syns
    if len(asked) != 1 or len(answered) != 1:
        return None
    since = int(np.searchsorted(initiator.row, responder.row[answered[0]], side="right"))
    taken = since + np.flatnonzero(initiator.ack[since:] > 0)
    if not len(taken) or initiator.row[asked[0]] > responder.row[answered[0]]:
        return None
    moments = initiator.time_ns[asked[0]], responder.time_ns[answered[0]], initiator.time_ns[taken[0]]
    return int(moments[1] - moments[0]), int(moments[2] - moments[1])
