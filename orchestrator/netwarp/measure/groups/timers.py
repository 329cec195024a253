"""Metrics of what a flow waits for, and of promises that it keeps whatever is lost. Definitions: docs/metrics.md, Waits
and promises.

Times between packets are those of one host's own captures, where it sends them. Both ends of a connection are closed:
what each of them sent to close it was answered in the end (RFC 9293 3.6: each end's FIN is acknowledged; RFC 9260 9.2:
SHUTDOWN by a SHUTDOWN ACK, that by a SHUTDOWN COMPLETE; RFC 8684 3.3.3: each end's DATA_FIN by a DATA_ACK).
"""

from __future__ import annotations

import numpy as np

from ...captures.capture import rows_of_flow, rows_of_flows, rows_where
from ...captures.mptcp.data_level import DATA_ACK, MAPPED, data_level
from ...captures.native import UNKNOWN, Ints, Rows
from ...captures.time_spans import longest_gap
from ...core.types import closing
from ...core.wire import (
    ABORT,
    ACK,
    COOKIE_ECHO,
    DATA,
    DSS,
    FIN,
    HEARTBEAT,
    HEARTBEAT_ACK,
    I_DATA,
    INIT,
    RST,
    SHUTDOWN,
    SHUTDOWN_ACK,
    SHUTDOWN_COMPLETE,
    SYN,
)  # fmt: skip
from ...store.app_records import Notification, Summary
from ...store.ndjson import last, of_kind
from ..flow_packets import FlowPackets
from ..models.failover_inputs import failover_settings
from ..observation import FlowObservation, is_break
from .reports import report_metrics
from .tail_probes import unprobed_timeouts

TOLD_NS = 2000
"""The application is told of a change, and reads the clock, a little after what the kernel sends because of it."""
TIMEOUT_NS = 200_000_000
"""No timeout comes earlier: TCP_RTO_MIN, include/net/tcp.h."""
AT_ONCE_NS = 1_000_000
"""The longest time after an arrival in which its answer leaves."""
AWAY = ("POTENTIALLY_FAILED", "UNREACHABLE")
AS_ASKED = ("stop", "total", "terminated")
"""Reasons of a sender that ended where it was to end."""


def timer_metrics(observation: FlowObservation) -> dict[str, float | None]:
    """Waits, and counts of broken promises; {} without both captures."""
    sender, receiver = observation.sender, observation.receiver
    if sender is None or receiver is None:
        return {}
    sides = ((sender, True), (receiver, False))
    sent = [
        (packets.sent_segments, packets.sent_chunks)
        if by_sender
        else (packets.rows(capture.segments, back=True), packets.rows(capture.chunks, back=True))
        for packets, by_sender, capture in ((*side, side[0].point.capture) for side in sides)
    ]
    times = np.sort(
        np.concatenate([packets.data.t_ns if by_sender else packets.back.t_ns for packets, by_sender in sides])
    )
    begin, end = longest_gap(times) or (0, 0)
    setup_ns, data_ns, close_ns = map(max, zip(*(_repeat_waits(*rows) for rows in sent), strict=True))
    together = observation.flow.protocol == "mptcp"  # its subflows are one connection
    aborts = sum((segments["flags"] & RST > 0).sum() + (chunks["type"] == ABORT).sum() for segments, chunks in sent)
    as_asked = _aborted_as_asked(observation)
    metrics: dict[str, float | None] = {
        "silence_s": (end - begin) / 1e9,
        "setup_repeat_wait_s": setup_ns / 1e9,
        "data_repeat_wait_s": data_ns / 1e9,
        "close_repeat_wait_s": close_ns / 1e9,
        "acknowledgement_wait_s": _acknowledgement_wait_s(receiver, together=together),
        "aborts": None if as_asked else float(aborts),
        "unclosed_ends": None if as_asked else unclosed_ends(sender, receiver),
        **repair_metrics(observation, sender),
        **report_metrics(observation),
    }
    if observation.flow.program is None:
        metrics |= _promises(observation, sender)
    return metrics


def _repeat_waits(segments: Rows, chunks: Rows) -> tuple[int, int, int]:
    """The longest wait (ns) before something was sent again: in the set-up, data, at the close. Both tables are in the
    order of time.
    """
    flags = segments["flags"]
    syn, fin = flags & SYN > 0, flags & FIN > 0
    data = (segments["payload_bytes"] > 0) & (segments["seq"] != UNKNOWN)
    kind = chunks["type"]
    payload = np.isin(kind, (DATA, I_DATA)) & (chunks["tsn"] != UNKNOWN)
    setup = [
        _wait(segments[syn], ("flow",)),
        *(_wait(chunks[kind == chunk_type], ("flow",)) for chunk_type in (INIT, COOKIE_ECHO)),
    ]
    again = [_wait(rows_where(segments, data), ("flow", "seq")), _wait(rows_where(chunks, payload), ("flow", "tsn"))]
    close = [
        _wait(segments[fin], ("flow",)),
        *(_wait(chunks[kind == chunk_type], ("flow",)) for chunk_type in (SHUTDOWN, SHUTDOWN_ACK)),
    ]
    return max(setup), max(again), max(close)


def _wait(rows: Rows, same: tuple[str, ...]) -> int:
    """The longest time between two successive rows that are equal in these columns; 0 if no two are. The rows are in
    the order of time.
    """
    if len(rows) < 2:
        return 0
    order: Ints = np.arange(len(rows))
    for name in reversed(same):  # numbers mostly grow, which a stable sort makes use of
        order = order[np.argsort(rows[name][order], kind="stable")]
    equal = np.ones(len(rows) - 1, dtype=np.bool_)
    for name in same:
        ordered = rows[name][order]
        equal &= ordered[1:] == ordered[:-1]
    waits = np.diff(rows["time_ns"][order])[equal]
    return int(waits.max()) if len(waits) else 0


def _acknowledgement_wait_s(receiver: FlowPackets, *, together: bool) -> float | None:
    """The longest time from the arrival of data to the receiver's next acknowledgement of the same connection."""
    rows = list(receiver.data_direction)
    connections = [rows] if together and rows else [[row] for row in rows]
    waits = [wait for connection in connections if (wait := _unacknowledged_ns(receiver, connection)) is not None]
    return max(waits) / 1e9 if waits else None


def _unacknowledged_ns(receiver: FlowPackets, connection: list[int]) -> int | None:
    """The same of one connection (rows of the flow table), in ns."""
    packets = rows_of_flows(receiver.point.capture, "packets", connection)
    sends = np.zeros(max(connection) + 1, dtype=np.int64)
    for row in connection:
        sends[row] = receiver.data_direction[row]
    from_sender = packets["direction"] == sends[packets["flow"]]
    arrivals: Ints = np.sort(packets["time_ns"][from_sender & (packets["payload_bytes"] > 0)])
    acks: Ints = np.sort(packets["time_ns"][~from_sender & packets["acks"].astype(np.bool_)])
    following = np.searchsorted(acks, arrivals)
    known = following < len(acks)
    return int((acks[following[known]] - arrivals[known]).max()) if known.any() else None


def _promises(observation: FlowObservation, sender: FlowPackets) -> dict[str, float | None]:
    """Metrics from netwarp's own programs: the bytes read of those asked for, and the end of each of them."""
    flow = observation.flow
    sent, read = (last(records, Summary) for records in (observation.sender_records, observation.receiver_records))
    metrics: dict[str, float | None] = {"undelivered_bytes": None, "ends_disagree": None}
    arrived = read.unique_bytes or 0 if read else 0
    if flow.total_bytes is not None and not flow.is_page:
        metrics["undelivered_bytes"] = float(flow.total_bytes - arrived)
    elif sent is not None and is_break(flow, sent.reason) and not flow.is_page:
        metrics["undelivered_bytes"] = float((sent.sent_bytes or 0) - arrived)
    if not _aborted_as_asked(observation):
        sender_well = sent is not None and sent.status == 0 and sent.reason != "gave_up"
        metrics["ends_disagree"] = float(sender_well != (read is not None and read.reason == "closed"))
    if flow.protocol == "sctp":
        metrics["data_on_failed_path_packets"] = float(_on_failed_path(observation, sender))
    return metrics


def _aborted_as_asked(observation: FlowObservation) -> bool:
    """True if netwarp's own sender reached its end and closed by an ABORT or RST, as the spec asks: neither is then a
    sign of anything. One that ended before (given up, aborted by its peer) counts.
    """
    flow = observation.flow
    if flow.program is not None or flow.is_page or closing(flow) != "abort":
        return False
    sent = last(observation.sender_records, Summary)
    return sent is not None and sent.reason in AS_ASKED


def _on_failed_path(observation: FlowObservation, sender: FlowPackets) -> int:
    """Data packets sent on a path that the kernel had called failed, while another was not."""
    changes = sorted(
        (
            change.t_ns - observation.t0_monotonic_ns - TOLD_NS,
            sender.peers[str(change.address)],
            change.state in AWAY,
        )
        for change in of_kind(observation.sender_records, Notification)
        if change.type == "PEER_ADDR_CHANGE" and str(change.address) in sender.peers
    )
    data = sender.data
    carries = data.payload_bytes > 0
    count, away = 0, dict.fromkeys(range(len(observation.flow.paths)), False)
    ends_ns = [at_ns for at_ns, _, _ in changes[1:]] + [np.iinfo(np.int64).max]
    for (since_ns, path, failed), until_ns in zip(changes, ends_ns, strict=False):
        away[path] = failed
        if all(away.values()):
            continue
        within = carries & (data.t_ns > since_ns) & (data.t_ns <= until_ns)
        count += sum(int((within & (data.path == number)).sum()) for number, gone in away.items() if gone)
    return count


WRAP = 1 << 32
"""A DATA_FIN may have 32 bits of its number only."""


def unclosed_ends(sender: FlowPackets, receiver: FlowPackets) -> float:
    """Ends that were never closed, each by the captures of its own host: of every connection that was set up (subflow,
    association), and of MPTCP's connection as a whole. A reset or an ABORT closes the end that sends or receives it.
    """
    unclosed = 0
    for packets, own_is_data in ((sender, True), (receiver, False)):
        capture = packets.point.capture
        own = {row: sends if own_is_data else 1 - sends for row, sends in packets.data_direction.items()}
        for row, direction in own.items():
            segments, chunks = (rows_of_flow(capture, name, row) for name in ("segments", "chunks"))
            if len(chunks):
                unclosed += not _association_closed(chunks, direction)
            elif bool((segments["flags"] & (SYN | RST) == 0).any()):
                unclosed += not _tcp_closed(segments, direction)
        unclosed += not _mptcp_closed(packets, own)
    return float(unclosed)


def _tcp_closed(segments: Rows, own: int) -> bool:
    if (segments["flags"] & RST > 0).any():
        return True
    sent = segments["direction"] == own
    fins = segments[sent & (segments["flags"] & FIN > 0) & (segments["seq"] != UNKNOWN)]
    return bool(len(fins)) and bool((segments["ack"][~sent] > (fins["seq"] + fins["payload_bytes"]).max()).any())


def _association_closed(chunks: Rows, own: int) -> bool:
    heard = chunks["direction"] != own
    ends = (SHUTDOWN_ACK, SHUTDOWN_COMPLETE)
    return bool((chunks["type"] == ABORT).any() or np.isin(chunks["type"][heard], ends).any())


def _mptcp_closed(packets: FlowPackets, own: dict[int, int]) -> bool:
    """True if a DATA_FIN of this end was answered; also if it sent none, as after a fallback to TCP, or if its peer
    sends DATA_ACKs of 32 bits, which the analyser does not keep: those are not judged.
    """
    rows = list(own)
    capture = packets.point.capture
    options, segments = (rows_of_flows(capture, name, rows) for name in ("mptcp_options", "segments"))
    if not len(options):
        return True
    direction = np.zeros(max(rows) + 1, dtype=np.uint8)
    direction[rows] = [own[row] for row in rows]
    fins = options[(options["subtype"] == DSS) & (options["dsn"] != UNKNOWN)]
    fins = fins[fins["direction"] == direction[fins["flow"]]]
    if not len(fins):
        return True
    payload = dict(zip(segments["packet"].tolist(), segments["payload_bytes"].tolist(), strict=True))
    last = max(int(fin["dsn"]) + payload.get(int(fin["packet"]), 0) for fin in fins)
    heard = (segments["direction"] != direction[segments["flow"]]) & (segments["options"] & DATA_ACK > 0)
    beyond = (segments["dsn"][heard].astype(np.int64) - last) % WRAP
    return not len(beyond) or bool(((beyond > 0) & (beyond < WRAP // 2)).any())


def repair_metrics(observation: FlowObservation, sender: FlowPackets) -> dict[str, float | None]:
    """How soon a sender repairs what it can know to be lost, and what it calls failed without a reason: by the sender's
    own captures, of the flow's protocol.
    """
    protocol = observation.flow.protocol
    if protocol == "sctp":
        metrics: dict[str, float | None] = {"shutdowns": float((sender.sent_chunks["type"] == SHUTDOWN).sum())}
        if observation.flow.program is None:
            metrics["unfounded_path_failures"] = float(_unfounded_failures(observation, sender))
        return metrics
    unprobed = unprobed_timeouts(sender)
    metrics = {
        "overtaken_wait_s": _overtaken_wait_ns(sender) / 1e9,
        "unprobed_timeouts": None if unprobed is None else float(unprobed),
    }
    if protocol == "mptcp":
        metrics["reinjection_wait_s"] = _reinjection_wait_ns(sender) / 1e9
    return metrics


# ------------------------------------------------------------------------------------------------------------ TCP
def _overtaken_wait_ns(sender: FlowPackets) -> int:
    """The longest time from an acknowledgement that shows the first missing segment overtaken to its repetition."""
    capture, longest = sender.point.capture, 0
    for flow, sends in sender.data_direction.items():
        mine = rows_of_flow(capture, "segments", flow)
        sent = mine["direction"] == sends
        data = sent & (mine["payload_bytes"] > 0) & (mine["seq"] != UNKNOWN)
        acks = ~sent & (mine["flags"] & ACK > 0)
        if data.any() and (mine["sack_blocks"][acks] > 0).any():
            overtaken_ns = _overtaken(rows_where(mine, data), rows_where(mine, acks), capture.blocks)
            longest = max(longest, overtaken_ns)
    return longest


def _overtaken(data: Rows, acks: Rows, blocks: Rows) -> int:
    with_blocks = rows_where(acks, acks["sack_blocks"] > 0)
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
    order = np.argsort(data["seq"], kind="stable")
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
