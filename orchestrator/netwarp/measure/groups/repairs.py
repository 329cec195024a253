"""Metrics of how soon a sender repairs what it can know to be lost, and of what it calls failed without a reason.
Definitions: docs/metrics.md, Waits and promises.

All from the sender's own captures: what it sent, and what had come to it by then.
"""

from __future__ import annotations

import numpy as np

from ...captures.mptcp import DATA_ACK, MAPPED, data_level
from ...captures.native import UNKNOWN, Ints, Rows
from ...core.wire import ACK, DATA, FIN, HEARTBEAT, HEARTBEAT_ACK, I_DATA, SHUTDOWN
from ...store.app_records import Notification
from ...store.ndjson import of_kind
from ..flow_packets import FlowPackets
from ..models.failover_inputs import failover_settings
from ..observation import FlowObservation

TIMEOUT_NS = 200_000_000
"""No timeout comes earlier: TCP_RTO_MIN, include/net/tcp.h."""
AT_ONCE_NS = 1_000_000
"""The longest time after an arrival in which its answer leaves."""
AWAY = ("POTENTIALLY_FAILED", "UNREACHABLE")


def repair_metrics(observation: FlowObservation, sender: FlowPackets) -> dict[str, float | None]:
    """Those of the flow's protocol."""
    protocol = observation.flow.protocol
    if protocol == "sctp":
        metrics: dict[str, float | None] = {"shutdowns": float((sender.sent_chunks["type"] == SHUTDOWN).sum())}
        if observation.flow.program is None:
            metrics["unfounded_path_failures"] = float(_unfounded_failures(observation, sender))
        return metrics
    metrics = {"overtaken_wait_s": _overtaken_wait_ns(sender) / 1e9}
    if protocol == "mptcp":
        metrics["reinjection_wait_s"] = _reinjection_wait_ns(sender) / 1e9
    return metrics


# ------------------------------------------------------------------------------------------------------------ TCP
def _overtaken_wait_ns(sender: FlowPackets) -> int:
    """The longest time from an acknowledgement that shows the first missing segment overtaken to its repetition."""
    capture, longest = sender.point.capture, 0
    for flow, sends in sender.data_direction.items():
        mine = capture.segments[capture.segments["flow"] == flow]
        data = mine[(mine["direction"] == sends) & (mine["payload_bytes"] > 0) & (mine["seq"] != UNKNOWN)]
        acks = mine[(mine["direction"] != sends) & (mine["flags"] & ACK > 0)]
        if len(data) and (acks["sack_blocks"] > 0).any():
            longest = max(longest, _overtaken(data, acks, capture.blocks))
    return longest


def _overtaken(data: Rows, acks: Rows, blocks: Rows) -> int:
    with_blocks = acks[acks["sack_blocks"] > 0]
    counts = with_blocks["sack_blocks"].astype(np.int64)
    begin = np.cumsum(counts) - counts
    place = np.arange(counts.sum()) + np.repeat(with_blocks["first_block"].astype(np.int64) - begin, counts)
    highest = np.maximum.reduceat(blocks["end"][place], begin)
    hole, packet = with_blocks["ack"], with_blocks["packet"].astype(np.int64)
    # when what the SACK reports was first sent: new data go out in order, so the highest end says it
    ends = np.maximum.accumulate(data["seq"] + data["payload_bytes"].astype(np.int64))
    first_sent = np.searchsorted(ends, highest)
    known = (highest > hole) & (first_sent < len(data))
    hole, packet, first_sent = hole[known], packet[known], first_sent[known]
    ack_ns = with_blocks["time_ns"][known]
    # the transmissions of each number, in the order of the capture
    order = np.lexsort((data["packet"], data["seq"]))
    seq, sent_packet = data["seq"][order], data["packet"][order].astype(np.int64)
    last = _before(seq, sent_packet, hole, packet)
    sent = (last >= 0) & (seq[last] == hole)
    overtaken = sent & (sent_packet[last] < data["packet"][first_sent])
    again = last + 1
    repeated = overtaken & (again < len(seq)) & (seq[np.minimum(again, len(seq) - 1)] == hole)
    if not repeated.any():
        return 0
    again_packet = sent_packet[again[repeated]]
    # unless the acknowledgement came first: then the segment was late, and not lost
    advanced = np.maximum.accumulate(acks["ack"])
    over = np.searchsorted(advanced, hole[repeated], side="right")
    over_packet = np.append(acks["packet"].astype(np.int64), np.iinfo(np.int64).max)[over]
    waits = data["time_ns"][order][again[repeated]] - ack_ns[repeated]
    return int(np.where(over_packet > again_packet, waits, 0).max())


def _before(numbers: Ints, packets: Ints, number: Ints, packet: Ints) -> Ints:
    """The place of the last row of a number before a packet, in rows sorted by both; -1 or another number: none."""
    low, high = np.searchsorted(numbers, number), np.searchsorted(numbers, number, side="right")
    places = np.empty(len(number), dtype=np.int64)
    for row, (begin, end) in enumerate(zip(low.tolist(), high.tolist(), strict=True)):
        places[row] = begin + np.searchsorted(packets[begin:end], packet[row]) - 1
    return np.where(places >= low, places, -1)


# ---------------------------------------------------------------------------------------------------------- MPTCP
def _reinjection_wait_ns(sender: FlowPackets) -> int:
    """The longest time from a timeout of one subflow, another being idle, until other subflows carried the data too."""
    data = sender.data_segments
    level = data_level(data)
    flow, seq, time = data["flow"].astype(np.int64), data["seq"], data["time_ns"]
    mapped, longest = np.flatnonzero(data["options"] & MAPPED), 0
    base = int(data["dsn"][mapped[0]] - level.start[mapped[0]]) if len(mapped) else 0
    for row in np.flatnonzero(level.known & level.seen).tolist():
        before = np.flatnonzero((flow[:row] == flow[row]) & (seq[:row] == seq[row]))
        if len(before) != 1 or time[row] - time[before[0]] < TIMEOUT_NS or _answers(sender, data[row]):
            continue
        carried = level.known & (flow != flow[row]) & (level.start <= level.start[row])
        carried &= level.start + data["payload_bytes"] > level.start[row]
        if carried[:row].any() or not _idle(sender, int(flow[row]), int(data["packet"][row])):
            continue
        until = [int(time[place]) for place in np.flatnonzero(carried)[:1]]
        end = base + int(level.start[row]) + int(data["payload_bytes"][row])
        until += _acknowledged(sender, end, int(time[row]))
        if until:
            longest = max(longest, min(until) - int(time[row]))
    return longest


def _answers(sender: FlowPackets, segment: Rows) -> bool:
    """Whether a segment is sent because of one that has just come on its subflow, and not by a timer."""
    segments = sender.point.capture.segments
    back = (segments["flow"] == segment["flow"]) & (segments["direction"] != segment["direction"])
    came = segments["time_ns"][back]
    return bool(((came > segment["time_ns"] - AT_ONCE_NS) & (came <= segment["time_ns"])).any())


def _idle(sender: FlowPackets, but: int, packet: int) -> bool:
    """Whether another subflow, on which data had been sent, had nothing outstanding before a packet of the capture."""
    segments = sender.point.capture.segments
    for flow, sends in sender.data_direction.items():
        mine = segments[(segments["flow"] == flow) & (segments["packet"] < packet)]
        sent = mine[(mine["direction"] == sends) & (mine["payload_bytes"] > 0)]
        acks = mine[(mine["direction"] != sends) & (mine["flags"] & ACK > 0)]
        if flow == but or not len(sent) or not len(acks) or (mine["flags"] & FIN > 0).any():
            continue
        if int((sent["seq"] + sent["payload_bytes"]).max()) <= int(acks["ack"].max()):
            return True
    return False


def _acknowledged(sender: FlowPackets, end: int, after_ns: int) -> list[int]:
    """When the first acknowledgement of the connection up to a data sequence number came after a time; [] if never."""
    acks = sender.rows(sender.point.capture.segments, back=True)
    acks = acks[(acks["options"] & DATA_ACK > 0) & (acks["time_ns"] > after_ns)]
    reached = np.flatnonzero(acks["dsn"] - end >= 0)  # 64-bit numbers wrap, their distances do not
    return [int(acks["time_ns"][reached[0]])] if len(reached) else []


# ----------------------------------------------------------------------------------------------------------- SCTP
def _unfounded_failures(observation: FlowObservation, sender: FlowPackets) -> int:
    """Notifications that a path failed before anything sent to it had been unanswered for long enough: a heartbeat
    follows another after half an RTO at the earliest (RFC 9260 8.3).
    """
    least_ns = round(failover_settings(observation.cell, observation.flow).rto_min_s / 2 * 1e9)
    count = 0
    for change in of_kind(observation.sender_records, Notification):
        path = sender.peers.get(str(change.address))
        if change.type != "PEER_ADDR_CHANGE" or path is None or change.state not in AWAY:
            continue
        at_ns = change.t_ns - observation.t0_monotonic_ns + sender.t0_realtime_ns
        count += not _unanswered(sender, path, at_ns - least_ns, at_ns)
    return count


def _unanswered(sender: FlowPackets, path: int, since_ns: int, at_ns: int) -> bool:
    """Whether something was sent to a path by since_ns that nobody had answered at at_ns."""
    chunks = sender.point.capture.chunks
    rows = [row for row, index in sender.path_index.items() if index == path]
    ours = sender.mask(chunks)
    early = ours & np.isin(chunks["path"], rows) & (chunks["time_ns"] <= since_ns)
    answered = chunks[~ours & (chunks["type"] == HEARTBEAT_ACK) & (chunks["time_ns"] < at_ns)]["message"]
    asked = chunks[early & (chunks["type"] == HEARTBEAT)]["message"]
    if not np.isin(asked, answered).all():
        return True
    if (early & (chunks["type"] == SHUTDOWN)).any():  # the association would be gone if it had been answered
        return True
    data = chunks[early & np.isin(chunks["type"], (DATA, I_DATA)) & (chunks["tsn"] != UNKNOWN)]
    return _lacks_a_sack(sender, data["tsn"], at_ns)


def _lacks_a_sack(sender: FlowPackets, tsns: Ints, at_ns: int) -> bool:
    """Whether no SACK had acknowledged one of the TSNs by then."""
    capture = sender.point.capture
    sacks = sender.rows(capture.sacks, back=True)
    sacks = sacks[sacks["time_ns"] < at_ns]
    left = np.unique(tsns[tsns > sacks["cumulative_tsn"].max(initial=-1)])
    if not len(left):
        return False
    gaps = sacks["gap_blocks"].astype(np.int64)
    offset = np.arange(gaps.sum()) - np.repeat(np.cumsum(gaps) - gaps, gaps)
    blocks = capture.blocks[np.repeat(sacks["first_block"].astype(np.int64), gaps) + offset]
    return any(not ((blocks["start"] <= tsn) & (tsn < blocks["end"])).any() for tsn in left)
