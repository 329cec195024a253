"""Finds the TCP segments that the receiver's kernel accepted, among those that arrived at its interfaces.

A kernel drops some segments that a capture shows as new data in order: those after a TCP reset or MPTCP's fast close,
and those that reordering made older than a time stamp already seen (PAWS, RFC 7323 5.3). A sender that is about to stop
does not retransmit them, so only the receiver's answers show the drop.

A reset is accepted only if its sequence number is the next one expected or the right edge of the data that arrived (RFC
5961 3.2 and net/ipv4/tcp_input.c, tcp_validate_incoming(): Linux accepts a RST at the right edge of what it has SACKed,
even while an earlier segment is still missing); otherwise it is answered by a challenge ACK. Linux reads the MPTCP
options of a reset only if it accepts the reset (tcp_reset()).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..captures.native import Bools, Ints, Rows
from ..core.wire import ACK, FIN, MP_FASTCLOSE, MP_TCPRST, RST
from .flow_packets import FlowPackets

NEVER = int(np.iinfo(np.int64).max)


def accepted_segments(receiver: FlowPackets, protocol: str) -> Rows:
    """The segments with payload that the receiving kernel can have delivered, in the order of the capture."""
    segments = receiver.sent_segments
    segments = segments[_before_resets(receiver, segments)]
    if protocol == "mptcp":
        return segments[segments["payload_bytes"] > 0]
    keep = np.zeros(len(segments), dtype=np.bool_)
    table = receiver.point.capture.segments
    for row, sends in receiver.data_direction.items():
        mine = np.flatnonzero(segments["flow"] == row)
        keep[mine] = _taken(segments[mine], table[(table["flow"] == row) & (table["direction"] != sends)])
    return segments[keep]


def _before_resets(receiver: FlowPackets, segments: Rows) -> Bools:
    """The sender's segments (in the order of the capture) that arrived while their connection still
    accepted data.
    """
    rows = np.unique(segments["flow"][segments["flags"] & RST > 0]).tolist()
    resets = [reset for row in rows for reset in _taken_reset(segments[segments["flow"] == row])]
    closed = _fast_closed(receiver, resets)
    for reset in resets:
        row, moment = int(reset["flow"]), int(reset["time_ns"])
        closed[row] = min(closed.get(row, moment), moment)
    keep = np.ones(len(segments), dtype=np.bool_)
    for row, moment in closed.items():
        keep &= (segments["flow"] != row) | (segments["time_ns"] <= moment)
    return keep


def _taken_reset(segments: Rows) -> Rows:
    """The first reset of a connection or subflow that the receiver accepted: one row, or none."""
    for at in np.flatnonzero(segments["flags"] & RST).tolist():
        before, number = segments[:at], int(segments["seq"][at])
        end = before["seq"] + before["payload_bytes"].astype(np.int64) + (before["flags"] & FIN)
        order = np.argsort(before["seq"], kind="stable")
        reach: Ints = np.maximum.accumulate(np.concatenate([[1], end[order]]))  # the stream's first byte is number 1
        holes = np.flatnonzero(before["seq"][order] > reach[:-1])
        awaited = int(reach[holes[0]] if len(holes) else reach[-1])
        if number in (awaited, int(reach[-1])):
            return segments[at : at + 1]
    return segments[:0]


def _fast_closed(receiver: FlowPackets, resets: Sequence[Rows]) -> dict[int, int]:
    """For each subflow, the time at which the receiver closed it because the sender aborted the whole MPTCP connection
    (RFC 8684 3.5).

    Linux closes the other subflows from a work queue and sends a reset with MP_TCPRST on each. Data that arrive between
    the MP_FASTCLOSE and that reset are still read. Without such a reset: the arrival of the MP_FASTCLOSE.
    """
    options = receiver.point.capture.mptcp_options
    packets = [int(reset["packet"]) for reset in resets]
    aborts = options[(options["subtype"] == MP_FASTCLOSE) & np.isin(options["packet"], packets)]
    if not len(aborts):
        return {}
    aborted = int(aborts["time_ns"].min())
    closed = {}
    for row, sends in receiver.data_direction.items():
        answers = options[(options["flow"] == row) & (options["subtype"] == MP_TCPRST)]
        answers = answers[(answers["direction"] != sends) & (answers["time_ns"] >= aborted)]
        closed[row] = int(answers["time_ns"][0]) if len(answers) else aborted
    return closed


def _taken(data: Rows, back: Rows) -> Bools:
    """The segments with payload of a connection that the receiving kernel can have delivered, judged by its answers.

    data: all of the sender's segments, RST and empty ones included; back: the receiver's; both in the order of the
    receiver's own capture. False from the first segment on that the kernel answered as belonging to no connection (a
    RST without ACK, RFC 9293 3.10.7.1). Also False from the byte on that the receiver's last acknowledgement still asks
    for, if it had arrived before and was not sent again.
    """
    keep: Bools = (data["payload_bytes"] > 0) & (data["packet"] < _first_unknown(data, back))
    acknowledged = back[((back["flags"] & ACK) != 0) & ((back["flags"] & RST) == 0)]
    if not len(acknowledged):
        return keep
    last = acknowledged[-1]
    awaited = data[keep & (data["seq"] <= last["ack"]) & (data["seq"] + data["payload_bytes"] > last["ack"])]
    if len(awaited) and (awaited["packet"] < last["packet"]).all():
        keep &= data["seq"] < last["ack"]
    return keep


def _first_unknown(data: Rows, back: Rows) -> int:
    """The first packet that the receiver's kernel answered as belonging to no connection; NEVER if there is none."""
    answers = back[(back["flags"] & (RST | ACK)) == RST]
    if not len(answers):
        return NEVER
    asked = data[((data["flags"] & RST) == 0) & (data["packet"] < answers["packet"][0])]
    return int(asked["packet"][-1]) if len(asked) else 0
