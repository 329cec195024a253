"""Outages of a path as packets show them: no progress, T3 expiries, data on another path, and the return."""

from __future__ import annotations

import dataclasses

import numpy as np

from ..native import Ints
from .retransmissions import SentAgain
from .timing import Outstanding
from .transmissions import NEVER, Acknowledgements, Transmissions


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
