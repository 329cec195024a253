"""Data that arrived at a TCP receiver's interfaces and that its kernel did not take, as its own answers show.

A kernel drops data that a capture holds as new, in order: a segment that reordering made older than a time
stamp already seen (PAWS, RFC 7323 5.3), and what comes after a reset. Linux takes a RST whose number is the right edge
of what it has SACKed, though a segment before it is still on its way (tcp_validate_incoming(); RFC 5961 3.2 asks for
RCV.NXT). A sender that is about to stop never sends such data again, so nothing but the answers tells.
"""

from __future__ import annotations

import numpy as np

from ..captures.native import Bools, Rows
from ..core.wire import ACK, RST


def taken(data: Rows, back: Rows) -> Bools:
    """Which of a connection's segments with payload the receiving kernel can have handed over.

    data: the sender's segments, RST and empty ones too; back: the receiver's. Both in the order of the receiver's own
    capture. False: those from the first one on that a kernel without the connection answered (a RST without ACK, RFC
    9293 3.10.7.1); and, where the receiver's last acknowledgement still asks for a byte that had arrived before it and
    did not come again, those from that byte on.
    """
    keep = data["payload_bytes"] > 0
    keep &= data["packet"] < _first_unknown(data, back)
    acknowledged = back[((back["flags"] & ACK) != 0) & ((back["flags"] & RST) == 0)]
    if not len(acknowledged):
        return keep
    last = acknowledged[-1]
    wanted = data[keep & (data["seq"] <= last["ack"]) & (data["seq"] + data["payload_bytes"] > last["ack"])]
    if len(wanted) and (wanted["packet"] < last["packet"]).all():
        keep &= data["seq"] < last["ack"]
    return keep


def _first_unknown(data: Rows, back: Rows) -> int:
    """The packet that the receiver's kernel first answered as one of no connection; none: the end of int64."""
    answers = back[(back["flags"] & (RST | ACK)) == RST]
    if not len(answers):
        return int(np.iinfo(np.int64).max)
    asked = data[((data["flags"] & RST) == 0) & (data["packet"] < answers["packet"][0])]
    return int(asked["packet"][-1]) if len(asked) else 0
