"""When the receiver's kernel stopped taking a flow's data: a TCP reset, MPTCP's fast close.

A reset is taken only if its sequence number is the next one awaited, or the end of the right-most data that arrived
(RFC 5961 3.2 and net/ipv4/tcp_input.c, tcp_validate_incoming()); else it is answered by a challenge ACK. Linux reads
the MPTCP options of a reset only where it takes the reset (tcp_reset()).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..captures.native import Bools, Rows
from ..core.wire import FIN, MP_FASTCLOSE, MP_TCPRST, RST
from .flow_packets import FlowPackets


def before_resets(view: FlowPackets, segments: Rows) -> Bools:
    """Which of the sender's segments, in the order of the capture, came while their connection took data."""
    rows = np.unique(segments["flow"][segments["flags"] & RST > 0]).tolist()
    taken = [reset for row in rows for reset in _taken_reset(segments[segments["flow"] == row])]
    closed = _fast_closed(view, taken)
    for reset in taken:
        row, moment = int(reset["flow"]), int(reset["time_ns"])
        closed[row] = min(closed.get(row, moment), moment)
    keep = np.ones(len(segments), dtype=np.bool_)
    for row, moment in closed.items():
        keep &= (segments["flow"] != row) | (segments["time_ns"] <= moment)
    return keep


def _taken_reset(segments: Rows) -> Rows:
    """The first reset of one connection, or subflow, that the receiver took: one row, or none."""
    for at in np.flatnonzero(segments["flags"] & RST).tolist():
        before, number = segments[:at], int(segments["seq"][at])
        end = before["seq"] + before["payload_bytes"].astype(np.int64) + (before["flags"] & FIN)
        order = np.argsort(before["seq"], kind="stable")
        reach = np.maximum.accumulate(np.concatenate([[1], end[order]]))  # the stream's first byte is number 1
        holes = np.flatnonzero(before["seq"][order] > reach[:-1])
        awaited = int(reach[holes[0]] if len(holes) else reach[-1])
        if number in (awaited, int(reach[-1])):
            return segments[at : at + 1]
    return segments[:0]


def _fast_closed(view: FlowPackets, taken: Sequence[Rows]) -> dict[int, int]:
    """By subflow, when the receiver closed it because the sender aborted the whole connection (RFC 8684 3.5).

    Linux closes the other subflows from a work queue and sends a reset with MP_TCPRST on each; data that arrive between
    the MP_FASTCLOSE and that reset are still read. Without such a reset: when the MP_FASTCLOSE arrived.
    """
    options = view.point.capture.mptcp_options
    packets = [int(reset["packet"]) for reset in taken]
    aborts = options[(options["subtype"] == MP_FASTCLOSE) & np.isin(options["packet"], packets)]
    if not len(aborts):
        return {}
    aborted = int(aborts["time_ns"].min())
    closed = {}
    for row, sends in view.data_direction.items():
        answers = options[(options["flow"] == row) & (options["subtype"] == MP_TCPRST)]
        answers = answers[(answers["direction"] != sends) & (answers["time_ns"] >= aborted)]
        closed[row] = int(answers["time_ns"][0]) if len(answers) else aborted
    return closed
