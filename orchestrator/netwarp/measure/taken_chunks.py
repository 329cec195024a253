"""The DATA chunks that a receiving SCTP kernel took, of those that arrived at its host.

It drops what arrives before the COOKIE ACK, if it opened the association (RFC 9260 5.1 step D), what finds no room in
its receive buffer, whose bookkeeping for each message counts too, and what it takes out of that buffer again (6.2). Its
own SACKs tell: what a later one reports missing was dropped.
"""

from __future__ import annotations

import numpy as np

from ..captures.capture import rows_where
from ..captures.native import Bools, Rows
from ..core.wire import ABORT, COOKIE_ACK, COOKIE_ECHO, DATA, FORWARD_TSN, I_DATA, I_FORWARD_TSN
from .flow_packets import FlowPackets

MOST_GAPS = 16
"""In a SACK of Linux (include/net/sctp/constants.h: SCTP_MAX_GABS): of what is above them a SACK tells nothing then."""
GAP_BLOCK = 0
REFLECTED = 1
"""The T bit of an ABORT (RFC 9260 3.3.7)."""
NEVER = np.iinfo(np.uint32).max  # a packet behind all others


def taken_chunks(receiver: FlowPackets, row: int) -> Rows:
    """The chunks of flow `row` that its sender sent, without the transmissions of data that the receiver dropped. Of
    each TSN the first transmission that is left is none that repeats.
    """
    capture, sends = receiver.point.capture, receiver.data_direction[row]
    chunks = rows_where(receiver.sent_chunks, receiver.sent_chunks["flow"] == row)
    data = (chunks["type"] == DATA) | (chunks["type"] == I_DATA)
    every = capture.chunks[capture.chunks["flow"] == row]
    dropped = data & ((chunks["packet"] < _opened(every, sends)) | (chunks["packet"] >= _closed(every, sends)))
    sacks = capture.sacks[(capture.sacks["flow"] == row) & (capture.sacks["direction"] != sends)]
    if len(sacks):
        forward = chunks[(chunks["type"] == FORWARD_TSN) | (chunks["type"] == I_FORWARD_TSN)]
        again = chunks["is_retransmission"] > 0
        for told in {*(np.searchsorted(sacks["packet"], forward["packet"]) - 1).tolist(), len(sacks) - 1} - {-1}:
            again |= _missing(sacks[told], capture.blocks, chunks["tsn"])
        places = np.flatnonzero(data & ~dropped)
        places = places[np.argsort(chunks["tsn"][places], kind="stable")]
        tsns = chunks["tsn"][places]
        for tsn in np.unique(tsns[again[places]]).tolist():
            copies = places[slice(*np.searchsorted(tsns, (tsn, tsn + 1)))]
            skipped = int(forward["packet"][forward["tsn"] >= tsn].min(initial=NEVER))
            dropped[copies[: _refused(chunks[copies], skipped, sacks, capture.blocks)]] = True
    if not dropped.any():
        return chunks
    chunks = rows_where(chunks, ~dropped).copy()
    left = np.flatnonzero((chunks["type"] == DATA) | (chunks["type"] == I_DATA))
    _, first = np.unique(chunks["tsn"][left], return_index=True)
    chunks["is_retransmission"][left[first]] = 0
    return chunks


def _opened(chunks: Rows, sends: int) -> int:
    """The packet with the first COOKIE ACK that came to the one that asked for it; 0 if the data's sender opened."""
    asked = (chunks["type"] == COOKIE_ECHO) & (chunks["direction"] != sends)
    came = chunks["packet"][(chunks["type"] == COOKIE_ACK) & (chunks["direction"] == sends)]
    return int(came.min(initial=NEVER)) if asked.any() else 0


def _closed(chunks: Rows, sends: int) -> int:
    """The packet from which on the receiver took nothing, since it had closed the association: that of its first ABORT,
    or, if that only answers a packet of no association (its T bit; RFC 9260 8.4), the packet that it answers.
    """
    aborts = chunks[(chunks["type"] == ABORT) & (chunks["direction"] != sends)]
    if not len(aborts):
        return NEVER
    first = int(aborts["packet"][0])
    if not aborts["flags"][0] & REFLECTED:
        return first
    before = chunks["packet"][(chunks["direction"] == sends) & (chunks["packet"] < first)]
    return int(before.max(initial=0))


def _missing(sack: Rows, blocks: Rows, tsn: Rows) -> Bools:
    """Which TSNs a SACK reports missing."""
    own = blocks[int(sack["first_block"]) :][: int(sack["gap_blocks"]) + int(sack["duplicate_tsns"])]
    gaps = own[own["kind"] == GAP_BLOCK]
    missing: Bools = tsn > sack["cumulative_tsn"]
    if len(gaps) >= MOST_GAPS or sack["incomplete"]:
        missing &= tsn < gaps["end"].max(initial=0)
    for gap in gaps:
        missing &= (tsn < gap["start"]) | (tsn >= gap["end"])
    return missing


def _refused(copies: Rows, skipped: int, sacks: Rows, blocks: Rows) -> int:
    """How many transmissions of one TSN came before the first that was taken: the last SACK before the next one reports
    it missing. skipped: the packet of the FORWARD TSN that covers it, from which on it is reported as if it had come.
    """
    ends = [*copies["packet"][1:].tolist(), NEVER]
    for number, (own, end) in enumerate(zip(copies, ends, strict=True)):
        last = int(np.searchsorted(sacks["packet"], min(end, skipped))) - 1
        # packets of one instant at two interfaces have no order; a timer's SACK may be older than the chunk that came
        # at its instant, and where a FORWARD TSN follows no later one corrects it
        while (
            last >= 0
            and sacks["time_ns"][last] == own["time_ns"]
            and (skipped < end or sacks["path"][last] != own["path"])
        ):
            last -= 1
        if last < 0 or sacks["packet"][last] <= own["packet"]:
            return number
        if not _missing(sacks[last], blocks, copies["tsn"][:1])[0]:
            return number
    return len(copies)
