"""Metrics of what an SCTP receiver reports: promises that its SACKs keep. Definitions: docs/metrics.md, Waits and
promises. They are of the receiver's own captures: what arrived there, and what it says of it.
"""

from __future__ import annotations

import numpy as np

from ...captures.arrays import spread
from ...captures.capture import rows_of_flow
from ...captures.sctp.association import Association
from ...captures.sctp.transmissions import GAP_BLOCK
from ..flow_packets import associations_at
from ..observation import FlowObservation

MOST_BLOCKS = 16
"""A SACK of Linux lists so many gap blocks (include/net/sctp/tsnmap.h, SCTP_MAX_GABS): one that is full says nothing of
what lies above.
"""
ANSWER_NS = 100_000
"""A SACK that leaves so soon after an arrival may have been made before it, on another path."""
MOST_LOOKED_AT = 1000
"""SACKs that report fewer than came: more of them say nothing new."""
OPEN = 0.5
"""While a window is at least this part of the first one, its receiver has no reason to discard anything."""


def report_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Both metrics, of flows of SCTP; {} without the receiver's capture."""
    if observation.flow.protocol != "sctp" or observation.receiver is None:
        return {}
    associations = associations_at(observation.receiver)
    windows = [excess for each in associations if (excess := _window_excess_bytes(each)) is not None]
    return {
        "unreported_chunks": float(sum(_unreported(each) for each in associations)),
        "window_excess_bytes": float(max(windows)) if windows else None,
    }


def _first_window(association: Association) -> int | None:
    """What the data's receiver announced in its INIT or INIT ACK; None: not captured."""
    inits = rows_of_flow(association.capture, "inits", association.flow)
    inits = inits[inits["direction"] != association.direction]
    return int(inits["a_rwnd_bytes"].max()) if len(inits) else None


def _window_excess_bytes(association: Association) -> int | None:
    first = _first_window(association)
    sacks = rows_of_flow(association.capture, "sacks", association.flow)
    sacks = sacks[sacks["direction"] != association.direction]
    if first is None or not len(sacks):
        return None
    return max(0, int(sacks["a_rwnd_bytes"].max()) - first)


def _unreported(association: Association) -> int:
    """The most TSNs that had arrived when a SACK left and that it does not report. Counted first: a receiver that
    reports what came reports as many as came. Where it does not, its TSNs are looked at.
    """
    first = _first_window(association)
    sacks = rows_of_flow(association.capture, "sacks", association.flow)
    sacks = sacks[sacks["direction"] != association.direction]
    sent = association.sent
    if first is None or not len(sacks) or not len(sent):
        return 0
    moment = association.order(sacks["packet"])
    in_order = np.argsort(moment, kind="stable")
    sacks = sacks[in_order]
    arrived = np.full(len(sent.tsns), np.iinfo(np.int64).max)
    np.minimum.at(arrived, sent.unit, sent.rows["time_ns"])
    judged = arrived > sacks["time_ns"][0]  # until its first SACK a receiver may have had no association
    tsns, arrived = sent.tsns[judged], arrived[judged]
    short = np.flatnonzero(sacks["a_rwnd_bytes"] < OPEN * first)
    whole = (sacks["gap_blocks"] < MOST_BLOCKS) & (sacks["incomplete"] == 0)
    if len(short):
        whole[short[0] :] = False
    cumulative = np.searchsorted(tsns, sacks["cumulative_tsn"], side="right")
    reported = cumulative.copy()
    report, places = spread(sacks["first_block"], sacks["gap_blocks"].astype(np.int64) + sacks["duplicate_tsns"])
    blocks = association.capture.blocks[places]
    gaps = blocks["kind"] == GAP_BLOCK
    report, blocks = report[gaps], blocks[gaps]
    begin, end = (np.searchsorted(tsns, blocks[edge]) for edge in ("start", "end"))
    np.add.at(reported, report, end - begin)
    fewer = whole & (np.searchsorted(np.sort(arrived), sacks["time_ns"], side="right") > reported)
    most = 0
    for row in np.flatnonzero(fewer)[:MOST_LOOKED_AT]:
        missing = arrived < sacks["time_ns"][row] - ANSWER_NS
        missing[: cumulative[row]] = False
        for block in np.flatnonzero(report == row):
            missing[begin[block] : end[block]] = False
        most = max(most, int(missing.sum()))
    return most
