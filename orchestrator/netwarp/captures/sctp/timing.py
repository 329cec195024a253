"""Round-trip times, outstanding data, timing of SACKs, heartbeats, and outages of a path."""

from __future__ import annotations

import dataclasses

import numpy as np

from ...core.wire import HEARTBEAT, HEARTBEAT_ACK
from ..arrays import unique_with_places
from ..native import Bools, Ints
from .retransmissions import SentAgain
from .transmissions import NEVER, Acknowledgements, ChunkColumns, Transmissions


@dataclasses.dataclass(frozen=True)
class RttSamples:
    """Round-trip samples: time of the acknowledgement (ns), RTT (ns), path of the data or HEARTBEAT."""

    time_ns: Ints
    rtt_ns: Ints
    path: Ints


def rtt_samples(sent: Transmissions, reports: Acknowledgements, given_up: Ints) -> RttSamples:
    """One sample per report and path, of the last chunk sent there among those that the report was the first to
    acknowledge.

    Karn's rule (RFC 9260 6.3.1 C5): chunks that were ever sent twice give no sample, nor do those that a FORWARD TSN
    had passed before (given_up: its moment for each distinct TSN; NEVER): what answers it says nothing of them. The
    receiver may have waited for a second packet or for its SACK timer before it answered (6.2); samples include that
    wait, as the sender's own do.
    """
    once = np.flatnonzero(sent.new & (sent.after < 0))
    report = reports.acked_by[sent.unit[once]]
    known = reports.moment_of(report) > sent.moment[once]
    known &= (report < len(reports.moment)) & (reports.moment_of(report) < given_up[sent.unit[once]])
    once, report = once[known], report[known]
    path = sent.rows["path"][once]
    key = report * (int(path.max(initial=0)) + 1) + path
    ends = np.flatnonzero(np.append(key[1:] != key[:-1], True)[: len(key)])  # few: only those can be the last ones
    _, place = np.unique(key[ends][::-1], return_index=True)  # the last in the order of the capture
    place = np.sort(ends[len(ends) - 1 - place])
    once, report = once[place], report[place]
    order = np.argsort(report, kind="stable")
    time = reports.time_of(report[order])
    return RttSamples(time, time - sent.rows["time_ns"][once[order]], path[place][order])


ANSWER_NS = 1_000_000_000
"""An answer may take so long (RTO.Min of RFC 9260 16), where no other shows how long it takes."""


@dataclasses.dataclass(frozen=True)
class Heartbeats:
    """One row per HEARTBEAT. answered_ns: when its HEARTBEAT ACK was captured; NEVER if none was. known_ns: of later
    ones the capture cannot show whether they were answered.
    """

    time_ns: Ints
    path: Ints
    direction: Ints
    answered_ns: Ints
    known_ns: int

    @property
    def unanswered(self) -> Bools:
        """True if no answer was captured though one had time to come."""
        return ~self.answered & (self.time_ns <= self.known_ns)

    @property
    def answered(self) -> Bools:
        """True if its answer was captured."""
        return self.answered_ns < NEVER


def heartbeats(chunks: ChunkColumns, end_ns: int) -> Heartbeats:
    """Pairs HEARTBEATs with their acknowledgements by the information that the HEARTBEAT ACK repeats (RFC 9260 8.3); an
    answer belongs to one HEARTBEAT. chunks: of one association; end_ns: of the capture.
    """
    asked, answers = (chunks.rows[chunks.of_type(kind)] for kind in (HEARTBEAT, HEARTBEAT_ACK))
    answered_ns = np.full(len(asked), NEVER, dtype=np.int64)
    waiting: dict[tuple[int, int], list[int]] = {}
    # a handful in any capture: one an interval and path
    both = np.concatenate([asked, answers])
    number = np.concatenate([np.arange(len(asked)), np.full(len(answers), -1)])
    for place in np.argsort(both["packet"], kind="stable").tolist():
        row, mine = both[place], int(number[place])
        key = (int(row["direction"]) ^ (mine < 0), int(row["message"]))
        if mine >= 0:
            waiting.setdefault(key, []).append(mine)
        elif waiting.get(key):
            answered_ns[waiting[key].pop(0)] = row["time_ns"]
    time_ns = asked["time_ns"].astype(np.int64)
    there = answered_ns < NEVER
    slowest = int((answered_ns - time_ns)[there].max(initial=0))
    return Heartbeats(
        known_ns=end_ns - max(2 * slowest, ANSWER_NS),
        time_ns=time_ns,
        path=asked["path"].astype(np.int64),
        direction=asked["direction"].astype(np.int64),
        answered_ns=answered_ns,
    )


@dataclasses.dataclass(frozen=True)
class Outstanding:
    """A step function of user bytes: the value from each time on; changes within one packet are one step."""

    moment: Ints
    time_ns: Ints
    value_bytes: Ints


def outstanding(sent: Transmissions, reports: Acknowledgements, path: int | None = None) -> Outstanding:
    """Data sent and not yet acknowledged, on one path or on all. A chunk counts on the path of its last transmission,
    from each transmission to the next one or to its acknowledgement (RFC 9260 1.3: bytes in flight; a sender subtracts
    what it considers lost at once, which captures do not show).
    """
    of_packets = sent.moment[sent.packets]
    axis, place = unique_with_places(np.concatenate([of_packets, reports.moment]))
    sent_at, reported_at = place[: len(of_packets)], place[len(of_packets) :]
    time = np.empty(len(axis), dtype=np.int64)
    time[reported_at], time[sent_at] = reports.time_ns, sent.rows["time_ns"][sent.packets]
    # places on the axis: of each transmission, of its end (that of the axis: never)
    begin = np.repeat(sent_at, sent.per_packet)
    end = np.append(reported_at, len(axis))[reports.acked_by][sent.unit]
    twice = np.flatnonzero(sent.after >= 0)
    end[twice] = np.minimum(end[twice], begin[sent.after[twice]])
    mine = end > begin
    if path is not None:
        mine &= sent.rows["path"] == path
    # sums of integers, exact in a double up to 2^53
    size = np.where(mine, sent.rows["user_bytes"], 0.0)
    change = np.bincount(begin, size, len(axis) + 1) - np.bincount(end, size, len(axis) + 1)
    changed = np.flatnonzero(change[:-1])
    return Outstanding(axis[changed], time[changed], np.cumsum(change[changed]).astype(np.int64))


@dataclasses.dataclass(frozen=True)
class Sacks:
    """For each SACK: data packets since the SACK before, and the time from the first of them to this SACK (ns; -1:
    there was none).

    In the receiver's capture this is its delayed acknowledgement (RFC 9260 6.2); elsewhere it includes the way to the
    receiver and back.
    """

    data_packets: Ints
    delay_ns: Ints


def sack_timing(sent: Transmissions, reports: Acknowledgements) -> Sacks:
    """The timing of the receiver's SACKs."""
    packet = sent.moment[sent.packets]
    time = np.append(sent.rows["time_ns"][sent.packets], 0)
    at = reports.moment[reports.is_sack]
    upto = np.searchsorted(packet, at)
    since = np.concatenate([[0], upto[:-1]])[: len(upto)]
    waited = reports.time_ns[reports.is_sack] - time[since]
    return Sacks(upto - since, np.where(upto > since, waited, -1))


@dataclasses.dataclass(frozen=True)
class Outages:
    """Intervals without progress in which T3 expired. Times in ns as captured; NEVER: it did not happen.

    from_ns: the last new acknowledgement before, or the first transmission after everything had been acknowledged.
    to_ns: the next new acknowledgement. path: of the last new data before the first expiry. retransmission_ns: first
    retransmission on another path, and other_path that path; new_data_ns: first new data on another path; both until
    new data returns to `path` or the next outage begins; return_ns: first new data on `path` after new_data_ns.
    longest_gap_ns: longest interval without progress while data was outstanding, with or without a timeout.
    """

    from_ns: Ints
    to_ns: Ints
    path: Ints
    expiries: Ints
    retransmission_ns: Ints
    other_path: Ints
    new_data_ns: Ints
    return_ns: Ints
    longest_gap_ns: int


def outages(sent: Transmissions, reports: Acknowledgements, again: SentAgain, level: Outstanding) -> Outages:
    """Find the outages in the sender's capture. level: outstanding data on all paths."""
    times, order = sent.rows["time_ns"], sent.moment
    none = np.zeros(0, dtype=np.int64)
    if not len(order):
        return Outages(none, none, none, none, none, none, none, none, 0)
    end_ns = int(max(times[-1], reports.time_ns[-1] if len(reports.time_ns) else times[-1]))
    acked = np.flatnonzero(np.bincount(reports.acked_by, minlength=len(reports.moment))[: len(reports.moment)])
    # from each new acknowledgement, or the first transmission after it if nothing was left, to the next one
    at, at_ns = np.concatenate([[-1], reports.moment[acked]]), reports.time_of(acked)
    held = np.concatenate([[0], level.value_bytes])[np.searchsorted(level.moment, at, side="right")]
    following = np.searchsorted(order, at, side="right")
    begin = np.where(held > 0, at, np.append(order, NEVER)[following])
    begin_ns = np.where(held > 0, np.concatenate([[0], at_ns]), np.append(times, NEVER)[following])
    finish, finish_ns = np.append(reports.moment[acked], NEVER), np.append(at_ns, NEVER)
    gap = np.where(begin < finish, np.minimum(finish_ns, end_ns) - np.minimum(begin_ns, end_ns), 0)
    expiry = order[again.row[again.expiries]]
    first_expiry = np.append(expiry, NEVER)[np.searchsorted(expiry, begin, side="right")]
    chosen = np.flatnonzero((begin < finish) & (first_expiry < finish) & (first_expiry < NEVER))
    begin, finish = begin[chosen], finish[chosen]
    path = sent.rows["path"]
    new = np.flatnonzero(sent.new) if len(chosen) else none
    # what was in use when the timer expired: the path of the last new data sent before
    in_use = path[new[np.maximum(np.searchsorted(order[new], first_expiry[chosen]) - 1, 0)]]
    moments = np.full((3, len(chosen)), NEVER, dtype=np.int64)
    elsewhere = in_use.copy()
    for number, (since, until, mine) in enumerate(
        zip(begin.tolist(), np.append(begin[1:], NEVER).tolist()[: len(begin)], in_use.tolist(), strict=True)
    ):  # once an outage
        low, high = np.searchsorted(order, (since, until))
        nth, where, when = sent.nth[low:high], path[low:high], times[low:high]
        other = np.flatnonzero((nth > 0) & (where != mine))
        fresh = np.flatnonzero((nth == 0) & (where != mine))
        if len(fresh):
            moments[1, number] = when[fresh[0]]
            back = np.flatnonzero((nth[fresh[0] :] == 0) & (where[fresh[0] :] == mine))
            if len(back):
                moments[2, number] = when[fresh[0] + back[0]]
        if len(other) and when[other[0]] <= moments[2, number]:
            moments[0, number], elsewhere[number] = when[other[0]], where[other[0]]
    return Outages(
        from_ns=begin_ns[chosen],
        to_ns=finish_ns[chosen],
        path=in_use,
        expiries=np.searchsorted(expiry, finish) - np.searchsorted(expiry, begin),
        retransmission_ns=moments[0],
        other_path=elsewhere,
        new_data_ns=moments[1],
        return_ns=moments[2],
        longest_gap_ns=int(gap.max(initial=0)),
    )
