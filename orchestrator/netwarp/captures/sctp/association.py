"""One SCTP association at one capture point, analysed in the direction of its data."""

from __future__ import annotations

import functools

import numpy as np

from ...core.wire import (
    ABORT,
    COOKIE_ACK,
    COOKIE_ECHO,
    FORWARD_TSN,
    I_FORWARD_TSN,
    INIT,
    INIT_ACK,
    USER_INITIATED,
)
from ..capture import CLEAR_NS, NEAR, Capture, rows_of_flow
from ..native import UNKNOWN, Bools, Ints, Rows
from .messages import Messages, messages
from .retransmissions import SentAgain, retransmissions
from .timing import (
    Heartbeats,
    Outages,
    Outstanding,
    RttSamples,
    Sacks,
    heartbeats,
    outages,
    outstanding,
    rtt_samples,
    sack_timing,
)
from .transmissions import NEVER, Acknowledgements, ChunkColumns, Order, Transmissions, acknowledgements, transmissions


class Association:
    """The parts of the analysis, each computed when it is first accessed. All are about the data of `direction`.

    direction: the flow's (0: from the initiator); by default the one with more user data.
    """

    def __init__(self, capture: Capture, flow: int, *, direction: int | None = None) -> None:
        self.capture, self.flow = capture, flow
        self.row = capture.flows[flow]
        self.columns = ChunkColumns(rows_of_flow(capture, "chunks", flow))
        self.direction = _data_direction(self.columns) if direction is None else direction

    @property
    def chunks(self) -> Rows:
        """The association's rows of the chunk table."""
        return self.columns.rows

    @functools.cached_property
    def order(self) -> Order:
        """The order of its packets."""
        arrivals = {"sender": 1 - self.direction, "receiver": self.direction}.get(self.point)
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
    def zero_windows(self) -> tuple[Ints, Ints, Ints]:
        """When the receiver's window was zero, and the path of the SACK that said so first: begin and end in ns, to the
        next SACK with another window, or to the last packet.
        """
        is_sack = np.flatnonzero(self.reports.is_sack)
        change = np.diff(self.reports.closed[is_sack].astype(np.int8), prepend=0, append=0)
        begin, end = np.flatnonzero(change == 1), np.flatnonzero(change == -1)
        times = np.append(self.reports.time_ns[is_sack], self.row["last_ns"])
        return times[begin], times[end], self.reports.path[is_sack[begin]]

    @functools.cached_property
    def taken(self) -> Ints:
        """In the receiver's capture, for each distinct TSN the first row of `sent` that the receiver did not discard;
        their number if there is none. What came into a zero window was discarded: the next report announces one and
        does not cover the chunk.
        """
        sent, reports = self.sent, self.reports
        following = np.searchsorted(reports.moment, sent.moment, side="right")
        kept = np.flatnonzero(~np.append(reports.closed, False)[following] | (reports.acked_by[sent.unit] <= following))
        first = np.full(len(sent.tsns), len(sent), dtype=np.int64)
        first[sent.unit[kept][::-1]] = kept[::-1]  # of equal places the last assignment holds
        return first

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

    def aborts(self, *, asked_for: bool) -> Rows:
        """The ABORTs of both ends that an application asked for, or those that none did."""
        rows, causes = self.chunks[self.columns.of_type(ABORT)], self.capture.causes
        packets = causes["packet"][causes["code"] == USER_INITIATED]
        chosen: Rows = rows[np.isin(rows["packet"], packets) == asked_for]
        return chosen

    @functools.cached_property
    def again(self) -> SentAgain:
        """The retransmissions and their causes."""
        near_ns = None if self.point == "sender" else self._near_ns
        return retransmissions(self.sent, self.reports, near_ns)

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
        return heartbeats(self.columns, int(self.capture.sources["last_ns"].max()))

    @functools.cached_property
    def answers_unseen(self) -> bool:
        """Whether no packet of the data's receiver is in the capture, though the sender's show that there were some."""
        other = 1 - self.direction
        return bool(self.row["heard"][other]) and not (self.columns["direction"] == other).any()

    @functools.cached_property
    def sacks(self) -> Sacks:
        """The acknowledgements of the data's receiver."""
        return sack_timing(self.sent, self.reports)

    @functools.cached_property
    def outages(self) -> Outages:
        """Outages: intervals without progress in which T3 expired."""
        return outages(self.sent, self.reports, self.again, self.outstanding)

    @functools.cached_property
    def handshake_ns(self) -> tuple[int, int] | None:
        """Time from the capture point to the initiator and back, and to the responder and back, by the handshake (INIT
        ACK to COOKIE ECHO, INIT to INIT ACK); None: not seen.
        """
        times = [self.chunks["time_ns"][self.columns.of_type(kind)] for kind in (INIT, INIT_ACK, COOKIE_ECHO)]
        if not all(len(times_of_kind) for times_of_kind in times):
            return None
        # the last INIT ACK before the COOKIE ECHO, and the last INIT before that: earlier ones were lost
        echo = times[2][0]
        answered = times[1][times[1] <= echo]
        asked = times[0][times[0] <= (answered[-1] if len(answered) else echo)]
        if not len(answered) or not len(asked):
            return None
        return int(echo - answered[-1]), int(answered[-1] - asked[-1])

    @property
    def _near_ns(self) -> int | None:
        """Time from the capture point to the data's sender and back: the least by the handshake (COOKIE ACK to the
        first DATA too, since a COOKIE ECHO may have been lost) and by HEARTBEATs.
        """
        if self.handshake_ns is None:
            return None
        beats = self.heartbeats
        asked = beats.answered & (beats.direction != self.direction)
        least = int((beats.answered_ns - beats.time_ns)[asked].min(initial=self.handshake_ns[self.direction]))
        up = self.chunks[self.columns.of_type(COOKIE_ACK)]
        if not self.direction and len(up) and up["packet"][0] < self.columns["packet"][-1]:
            after = self.sent.rows["time_ns"][self.sent.moment > self.order(up["packet"][:1])[0]]
            least = min(least, int((after[:1] - up["time_ns"][0]).min(initial=least)))
        return least

    @functools.cached_property
    def point(self) -> str:
        """The side at which the capture was taken: "sender" (of the data) or "receiver", if that end answers the
        handshake in less than a quarter of the round trip; "middle" if neither does; "unknown" without a handshake,
        or if that took so little that the hosts' own times count and data were lost before they came here. What
        `captured_at` says comes first.
        """
        said = self.capture.captured_end(self.flow)
        if said is not None:
            return "sender" if said == self.direction else "receiver"
        round_trip = sum(self.handshake_ns or ())
        if self.handshake_ns is None or not round_trip:
            return "unknown"
        to_sender = self.handshake_ns[self.direction]
        near, far = to_sender < NEAR * round_trip, to_sender > (1 - NEAR) * round_trip
        if near and round_trip < CLEAR_NS and (np.diff(self.columns["tsn"][self._new_data]) < 0).any():
            return "unknown"
        return "sender" if near else "receiver" if far else "middle"

    @property
    def _new_data(self) -> Bools:
        chunks = self.columns
        mine: Bools = chunks.is_data & (chunks["direction"] == self.direction) & (chunks["tsn"] != UNKNOWN)
        mine &= ~chunks["is_retransmission"]
        return mine

    @functools.cached_property
    def paths(self) -> list[int]:
        """Rows of the capture's path table that the association used, in the order of first use."""
        return list(rows_of_flow(self.capture, "flow_paths", self.flow)["path"].tolist())

    def path_name(self, path: int) -> str:
        """ "<initiator's address>><responder's>"."""
        used = rows_of_flow(self.capture, "flow_paths", self.flow)
        row = used[used["path"] == path][0]
        end = int(row["path_direction"])
        return f"{self.capture.address(path, end)}>{self.capture.address(path, 1 - end)}"


def _data_direction(chunks: ChunkColumns) -> int:
    user = [int(chunks["user_bytes"][chunks.is_data & (chunks["direction"] == d)].sum()) for d in (0, 1)]
    return int(user[1] > user[0])
