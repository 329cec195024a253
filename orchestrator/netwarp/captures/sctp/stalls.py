"""The course of an association at one end: waits of its data for acknowledgement, retransmissions, the end. Two courses
with the same messages are compared by the numbers of their chunks.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ...core.wire import COOKIE_ACK
from .association import Association

OPEN = float("inf")


@dataclasses.dataclass(frozen=True)
class Stall:
    """An interval without progress in which T3 expired. tsn: the first chunk that waited (relative); sent_s: when it
    was sent, from the association's beginning; wait_s: until it was acknowledged, OPEN: it never was.
    """

    tsn: int
    sent_s: float
    wait_s: float
    expiries: int


@dataclasses.dataclass(frozen=True)
class AssociationCourse:
    """Of the data of one end, in its own capture. waits_s: of each chunk (by relative TSN) from its first sending to
    its acknowledgement (OPEN: none); up_s: when the COOKIE ACK came; given_up_s: when an end aborted by itself; None:
    it did not.
    """

    chunks: int
    sent_again: int
    needless: int
    expiries: int
    stalls: tuple[Stall, ...]
    waits_s: dict[int, float] = dataclasses.field(repr=False)
    up_s: float | None
    given_up_s: float | None

    def as_json(self) -> dict[str, Any]:
        """Its numbers; null: it never came."""
        return {
            "chunks": self.chunks,
            "sent_again": self.sent_again,
            "needless": self.needless,
            "t3_expiries": self.expiries,
            "longest_wait_s": self.longest_wait_s,
            "up_s": self.up_s,
            "given_up_s": self.given_up_s,
            "stalls": [
                dataclasses.asdict(stall) | {"wait_s": None if stall.wait_s == OPEN else stall.wait_s}
                for stall in self.stalls
            ],
        }

    @property
    def longest_wait_s(self) -> float:
        """Of all chunks that were acknowledged."""
        return max((wait for wait in self.waits_s.values() if wait != OPEN), default=0.0)


def association_course(association: Association, begin_ns: int, until_ns: int) -> AssociationCourse:
    """The course of the data of `association.direction`, captured at its sender, up to a time."""
    sent, reports, again, out = association.sent, association.reports, association.again, association.outages
    waits: dict[int, float] = {}
    stalls: list[Stall] = []
    if len(sent):
        first = np.flatnonzero(sent.new & (sent.rows["time_ns"] <= until_ns))
        acked_ns = reports.time_of(reports.acked_by)
        base = 0 if association.row["base_known"].all() else int(sent.tsns[0])
        for row in first.tolist():
            unit = int(sent.unit[row])
            answer_ns = int(acked_ns[unit])
            wait = OPEN if answer_ns > until_ns else (answer_ns - int(sent.rows["time_ns"][row])) / 1e9
            waits[int(sent.tsns[unit]) - base] = wait
        for place, from_ns in enumerate(out.from_ns.tolist()):
            to_ns = int(out.to_ns[place])
            waiting = first[
                (acked_ns[sent.unit[first]] >= to_ns) & (sent.rows["time_ns"][first] < min(to_ns, until_ns))
            ]
            if from_ns > until_ns or not len(waiting):
                continue
            row = int(waiting[0])
            tsn = int(sent.tsns[sent.unit[row]]) - base
            sent_s = (int(sent.rows["time_ns"][row]) - begin_ns) / 1e9
            stalls.append(Stall(tsn, sent_s, waits[tsn], int(out.expiries[place])))
    within = sent.rows["time_ns"][again.row] <= until_ns
    up = association.chunks["time_ns"][association.columns.of_type(COOKIE_ACK)]
    aborts = association.aborts(asked_for=False)
    aborts = aborts[aborts["time_ns"] <= until_ns]
    return AssociationCourse(
        chunks=len(waits),
        sent_again=int(within.sum()),
        needless=int((again.spurious & within).sum()),
        expiries=int((sent.rows["time_ns"][again.row[again.expiries]] <= until_ns).sum()),
        stalls=tuple(_longest_each(stalls)),
        waits_s=waits,
        up_s=(int(up[0]) - begin_ns) / 1e9 if len(up) else None,
        given_up_s=(int(aborts["time_ns"][0]) - begin_ns) / 1e9 if len(aborts) else None,
    )


def giving_up(association: Association) -> int | None:
    """The end that aborted although no application asked for it; None: neither."""
    aborts = association.aborts(asked_for=False)
    return int(aborts["direction"][0]) if len(aborts) else None


def _longest_each(stalls: list[Stall]) -> list[Stall]:
    """One stall for each first chunk."""
    by_tsn: dict[int, Stall] = {}
    for stall in stalls:
        known = by_tsn.get(stall.tsn)
        expiries = stall.expiries + (known.expiries if known else 0)
        by_tsn[stall.tsn] = dataclasses.replace(stall, expiries=expiries)
    return list(by_tsn.values())
