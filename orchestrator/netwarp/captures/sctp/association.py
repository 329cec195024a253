"""One SCTP association at one capture point, analysed in the direction of its data."""

from __future__ import annotations

import functools

import numpy as np

from ...core.wire import (
    ABORT,
    COOKIE_ECHO,
    FORWARD_TSN,
    I_FORWARD_TSN,
    INIT,
    INIT_ACK,
    SHUTDOWN,
    SHUTDOWN_COMPLETE,
)
from ..capture import Capture, rows_of_flow
from ..native import NONE, UNKNOWN, Ints, Rows
from .columns import Columns
from .messages import Messages, messages
from .outages import Outages, outages
from .retransmissions import Retransmissions, retransmissions
from .timing import Heartbeats, Outstanding, RttSamples, Sacks, heartbeats, outstanding, rtt_samples, sack_timing
from .transmissions import NEVER, Acknowledgements, Order, Transmissions, acknowledgements, transmissions


class Association:
    """The parts of the analysis, each computed when it is first accessed. All are about the data of `direction`.

    direction: the flow's (0: from the initiator); by default the one with more user data. receiver: the capture of the
    same run at the data's receiver, which shows what arrived twice; without it the receiver's own reports are used.
    """

    def __init__(
        self, capture: Capture, flow: int, *, direction: int | None = None, receiver: Capture | None = None
    ) -> None:
        self.capture, self.flow = capture, flow
        self.row = capture.flows[flow]
        self.columns = Columns(rows_of_flow(capture, "chunks", flow))
        self.direction = _data_direction(self.columns) if direction is None else direction
        self.receiver = receiver

    @property
    def chunks(self) -> Rows:
        """The association's rows of the chunk table."""
        return self.columns.rows

    @functools.cached_property
    def order(self) -> Order:
        """The order of its packets."""
        arrivals = {"sender": 1 - self.direction, "receiver": self.direction, "unknown": None}[self.point]
        # mergecap leaves one interface of several: then the association's paths tell
        several = len(self.capture.interfaces) > 1 or len(self.paths) > 1
        return Order(self.columns, arrivals if several else None)

    @functools.cached_property
    def sent(self) -> Transmissions:
        """The data's transmissions."""
        return transmissions(self.columns, self.direction, self.order)

    @functools.cached_property
    def reports(self) -> Acknowledgements:
        """The SACKs and SHUTDOWNs that came back for the data."""
        return acknowledgements(self.capture, self.columns, self.flow, self.direction, self.sent.tsns, self.order)

    @functools.cached_property
    def given_up(self) -> Ints:
        """For each distinct TSN of the data, the moment of the first FORWARD TSN that passed it; NEVER."""
        rows = self.chunks[self.columns.of_type(FORWARD_TSN, I_FORWARD_TSN)]
        rows = rows[(rows["direction"] == self.direction) & (rows["tsn"] != UNKNOWN)]
        if not len(rows):
            return np.full(len(self.sent.tsns), NEVER, dtype=np.int64)
        moment = self.order(rows["packet"])
        in_order = np.argsort(moment, kind="stable")
        cumulative = np.maximum.accumulate(rows["tsn"][in_order])
        passed: Ints = np.append(moment[in_order], NEVER)[np.searchsorted(cumulative, self.sent.tsns)]
        return passed

    @functools.cached_property
    def again(self) -> Retransmissions:
        """The retransmissions and their causes."""
        return retransmissions(self.sent, self.reports, self._duplicates())

    @functools.cached_property
    def messages(self) -> Messages:
        """The data as messages."""
        whole = bool(self.row["base_known"][self.direction])
        return messages(self.columns, self.direction, whole=whole)

    @functools.cached_property
    def rtt(self) -> RttSamples:
        """Round-trip samples from data to its acknowledgement."""
        return rtt_samples(self.sent, self.reports, self.given_up)

    @functools.cached_property
    def outstanding(self) -> Outstanding:
        """Outstanding user bytes on all paths."""
        return outstanding(self.sent, self.reports)

    def outstanding_on(self, path: int) -> Outstanding:
        """Outstanding user bytes on one path."""
        return self.outstanding if len(self.paths) == 1 else outstanding(self.sent, self.reports, path)

    @functools.cached_property
    def heartbeats(self) -> Heartbeats:
        """Heartbeats of both directions."""
        return heartbeats(self.columns)

    @functools.cached_property
    def sacks(self) -> Sacks:
        """The acknowledgements of the data's receiver."""
        return sack_timing(self.sent, self.reports)

    @functools.cached_property
    def outages(self) -> Outages:
        """Outages: intervals without progress in which T3 expired."""
        return outages(self.sent, self.reports, self.again, self.outstanding)

    @functools.cached_property
    def point(self) -> str:
        """The side at which the capture was taken: "sender" (of the data) or "receiver", whichever answers the
        handshake sooner (INIT to INIT ACK, INIT ACK to COOKIE ECHO); "unknown" without a handshake.
        """
        times = [self.chunks["time_ns"][self.columns.of_type(kind)] for kind in (INIT, INIT_ACK, COOKIE_ECHO)]
        if not all(len(times_of_kind) for times_of_kind in times):
            return "unknown"
        # the last INIT ACK before the COOKIE ECHO, and the last INIT before that: earlier ones were lost
        echo = times[2][0]
        answered = times[1][times[1] <= echo]
        asked = times[0][times[0] <= (answered[-1] if len(answered) else echo)]
        if not len(answered) or not len(asked):
            return "unknown"
        to_initiator, to_responder = echo - answered[-1], answered[-1] - asked[-1]
        if to_initiator == to_responder:
            return "unknown"
        at_initiator = to_initiator < to_responder
        return "sender" if at_initiator == (self.direction == 0) else "receiver"

    @functools.cached_property
    def paths(self) -> list[int]:
        """Rows of the capture's path table that the association used, in the order of first use."""
        paths: list[int] = rows_of_flow(self.capture, "flow_paths", self.flow)["path"].tolist()
        return paths

    def path_name(self, path: int) -> str:
        """ "<initiator's address>><responder's>"."""
        used = rows_of_flow(self.capture, "flow_paths", self.flow)
        row = used[used["path"] == path][0]
        end = int(row["path_direction"])
        return f"{self.capture.address(path, end)}>{self.capture.address(path, 1 - end)}"

    def _duplicates(self) -> tuple[Ints, Ints] | None:
        if self.receiver is None:
            return None
        other = same_association(self.capture, self.flow, self.receiver)
        if other is None:
            return None
        there, direction = other
        chunks = Columns(self.receiver.chunks[self.receiver.chunks["flow"] == there])
        rows = transmissions(chunks, self.direction ^ direction, Order(chunks, None))
        twice = rows.repeated
        shift = _shift(self.row, self.receiver.flows[there], self.direction, self.direction ^ direction)
        return rows.rows["tsn"][twice] + shift, rows.rows["time_ns"][twice]


def _shift(mine: Rows, theirs: Rows, my_direction: int, their_direction: int) -> int:
    """The number to add to the other capture's TSNs to get this one's (0 if both saw the INIT)."""
    gap = int(theirs["base"][their_direction]) - int(mine["base"][my_direction])
    return (gap + 2**31) % 2**32 - 2**31


def same_association(capture: Capture, flow: int, other: Capture) -> tuple[int, int] | None:
    """The flow of another capture point that is this association, recognised by ports and verification tags, and 0 if
    its direction 0 is this one's, otherwise 1. None: it is not there.
    """
    mine = capture.flows[flow]
    for row in np.flatnonzero(other.flows["protocol"] == mine["protocol"]).tolist():
        theirs = other.flows[row]
        for turned in (0, 1):
            ends = [turned, 1 - turned]
            known = mine["tag_known"] & theirs["tag_known"][ends]
            if (
                (mine["port"] == theirs["port"][ends]).all()
                and known.any()
                and (mine["tag"] == theirs["tag"][ends])[known].all()
            ):
                return row, turned
    return None


def _data_direction(chunks: Columns) -> int:
    user = [int(chunks["user_bytes"][chunks.is_data & (chunks["direction"] == d)].sum()) for d in (0, 1)]
    return int(user[1] > user[0])


def ending(association: Association) -> str:
    """The end of the association."""
    if len(association.columns.of_type(ABORT)):
        return "abort"
    return (
        "shutdown" if all(len(association.columns.of_type(kind)) for kind in (SHUTDOWN, SHUTDOWN_COMPLETE)) else "open"
    )


def restarted(association: Association) -> int | None:
    """The flow that this association restarted (RFC 9260 5.2.2)."""
    before = int(association.row["restart_of"])
    return None if before == NONE else before
