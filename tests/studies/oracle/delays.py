"""Waits of data and messages, round trips, and what the sender's kernel said of its window: docs/metrics.md, Messages,
Head-of-line delay, Loss, retransmission and round trips.

Of a flow with one connection whose packets arrive whole: a FORWARD TSN, a reset or an abort amid the data, and what the
receiver's last acknowledgement still asks for are questions to its kernel, which no packet answers simply.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from .cell import CellFiles
from .data import Row, relative
from .flows import FlowSeen, Numbers
from .packets import (
    ABORT,
    ACK,
    DATA,
    FIN,
    FORWARD_TSN,
    I_DATA,
    I_FORWARD_TSN,
    INIT,
    INIT_ACK,
    RST,
    SACK,
    SHUTDOWN,
    SYN,
    Chunk,
    Packet,
)

Json = dict[str, Any]
S = 1e9
UNDISTURBED = ("cut", "blackhole", "link", "change", "repair", "rate", "queue", "mtu", "loss")
"""Events that happen to packets alone."""


@dataclass
class Piece:
    """A segment or a chunk with payload. begin, end: its place among its sender's bytes, or its TSN and the next."""

    t: int
    begin: int
    end: int
    size: int
    chunk: Chunk | None = None


def delay_numbers(files: CellFiles, seen: FlowSeen) -> Numbers:
    """The metrics of one flow; {} where the oracle cannot tell."""
    flow = seen.flow
    if seen.protocol == "udp" and not flow.get("program") and not flow.get("turned"):
        return _datagrams(seen)
    if flow.get("turned") or flow.get("program") or seen.protocol not in ("tcp", "sctp") or files.corrupting:
        return {}
    numbers = _kernel(files, seen)
    if any(event["action"] not in UNDISTURBED for event in files.cell["timeline"]):
        return numbers
    if any(node.get("agent") for node in files.cell["nodes"]) or len(_connections(seen)) != 1:
        return numbers
    sent = list(_pieces(seen.protocol, seen.sender.data))
    numbers |= _round_trips(seen, sent)
    came = _whole(seen)
    if came is not None:
        numbers |= _waits(seen, came) | _messages(files, seen, sent, came)
    return numbers


def _connections(seen: FlowSeen) -> set[object]:
    """Of TCP by their ports and first numbers, of SCTP by their tags, at either end."""
    if seen.protocol == "sctp":
        return {row.packet.tag for end in (seen.sender, seen.receiver) for row in end.data
                if any(chunk.kind in (DATA, I_DATA) for chunk in row.packet.chunks)}  # fmt: skip
    rows = [*seen.sender.data, *seen.receiver.data]
    return {(row.packet.sport, row.packet.seq) for row in rows if row.packet.flags & SYN} | {
        row.packet.sport for row in rows
    } - {row.packet.sport for row in rows if row.packet.flags & SYN}


def _pieces(protocol: str, rows: Sequence[Row]) -> Iterator[Piece]:
    first: int | None = None
    for row in rows:
        packet = row.packet
        if protocol == "tcp":
            if packet.flags & SYN:
                first = packet.seq
            elif packet.payload_bytes and first is not None and not packet.flags & RST:
                begin = relative(packet.seq, first) - 1
                yield Piece(packet.t, begin, begin + packet.payload_bytes, packet.payload_bytes)
        for chunk in packet.chunks:
            if chunk.kind in (INIT, INIT_ACK):  # its initial TSN (RFC 9260 3.3.2)
                first = int.from_bytes(chunk.value[12:16], "big")
            elif chunk.kind in (DATA, I_DATA) and first is not None:
                begin = relative(chunk.tsn, first)
                yield Piece(packet.t, begin, begin + 1, chunk.user_bytes, chunk)


def _datagrams(seen: FlowSeen) -> Numbers:
    """One-way delays of netwarp's own UDP, by the number in each datagram: docs/metrics.md, Datagrams."""
    stop = seen.flow["stop_ns"]
    left: dict[bytes, int] = {}
    for row in seen.sender.data:
        left.setdefault(row.packet.payload[:8], row.packet.t)
    first = [row.packet for row in seen.receiver.data if not row.repeats]
    numbers: Numbers = {"repeated_datagrams": len(seen.receiver.data) - len(first)}
    if any(packet.payload[:8] not in left for packet in first):
        return numbers
    place = {number: at for at, number in enumerate(left)}
    highest = numbers["reordered_datagrams"] = 0
    for packet in first:
        numbers["reordered_datagrams"] += place[packet.payload[:8]] < highest
        highest = max(highest, place[packet.payload[:8]])
    spans = [(left[packet.payload[:8]], packet.t) for packet in first]
    spans = [(sent, came) for sent, came in spans if stop is None or sent <= stop]
    delays = sorted(came - sent for sent, came in spans)
    names = ("min", "mean", "max", "p50", "p95", "p99")
    if not delays:
        return numbers | {f"one_way_delay_{name}_s": None for name in names} | {"delay_variation_p99_s": None}
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99)):
        numbers[f"one_way_delay_{name}_s"] = _one_of(delays, part) / S
    numbers |= {
        "one_way_delay_min_s": delays[0] / S, "one_way_delay_mean_s": sum(delays) / len(delays) / S,
        "one_way_delay_max_s": delays[-1] / S, "delay_variation_p99_s": (_one_of(delays, 0.99) - delays[0]) / S,
    }  # fmt: skip
    jitter, each = 0.0, []
    for (sent, came), (later, there) in itertools.pairwise(spans):  # RFC 3550 6.4.1
        jitter += (abs((there - came) - (later - sent)) - jitter) / 16
        each.append(jitter)
    return numbers | {"jitter_s": sum(each) / len(each) / S if each else None}


# what arrived, and when it could be read -------------------------------------------------------------------------


def _whole(seen: FlowSeen) -> list[Piece] | None:
    """The pieces that came first, in the order of time; None where the receiver's kernel did not take all of them."""
    ends = (ABORT, FORWARD_TSN, I_FORWARD_TSN, SHUTDOWN)
    for row in seen.receiver.data:
        kinds = [chunk.kind for chunk in row.packet.chunks]
        if row.packet.flags & RST or (seen.protocol == "sctp" and any(kind in ends[:3] for kind in kinds)):
            return None
    if any(packet.flags & RST or any(chunk.kind == ABORT for chunk in packet.chunks) for packet in seen.receiver.back):
        return None
    fresh = [row for row in seen.receiver.data if row.new_bytes]
    if any(row.new_bytes != row.packet.payload_bytes for row in fresh):  # new in part
        return None
    if seen.protocol == "sctp" and not _all_reported(seen):
        return None
    # what was cut anew and brings nothing is no piece
    brings = [row for row in seen.receiver.data if row.new_bytes or row.packet.flags & SYN or seen.protocol == "sctp"]
    pieces = list(_pieces(seen.protocol, brings))
    known: set[int] = set()
    came = []
    for piece in pieces:
        if piece.begin not in known:
            known.add(piece.begin)
            came.append(piece)
    if seen.protocol == "tcp" and not _acknowledged(seen, came):
        return None
    return came


def _acknowledged(seen: FlowSeen, came: Sequence[Piece]) -> bool:
    """True if the last acknowledgement asks for nothing that came before it."""
    first = next((row.packet.seq for row in seen.receiver.data if row.packet.flags & SYN), None)
    acks = [packet for packet in seen.receiver.back if packet.flags & ACK]
    if first is None or not acks:
        return False
    awaited = relative(acks[-1].ack, first) - 1
    return not any(piece.begin <= awaited < piece.end and piece.t <= acks[-1].t for piece in came)


def _all_reported(seen: FlowSeen) -> bool:
    """True if the last SACK has every TSN that came before it, and the association's first DATA came behind it."""
    sacks = [(packet.t, chunk) for packet in seen.receiver.back for chunk in packet.chunks if chunk.kind == SACK]
    if not sacks:
        return False
    last_t, last = sacks[-1]
    cumulative, _, gaps, _ = (int.from_bytes(last.value[at : at + size], "big")
                              for at, size in ((0, 4), (4, 4), (8, 2), (10, 2)))  # fmt: skip
    blocks = [(int.from_bytes(last.value[12 + 4 * n : 14 + 4 * n], "big"),
               int.from_bytes(last.value[14 + 4 * n : 16 + 4 * n], "big")) for n in range(gaps)]  # fmt: skip
    for row in seen.receiver.data:
        for chunk in row.packet.chunks:
            if chunk.kind not in (DATA, I_DATA) or row.packet.t > last_t:
                continue
            above = relative(chunk.tsn, cumulative)
            if above > 0 and not any(low <= above <= high for low, high in blocks):
                return False
    return True


def _waits(seen: FlowSeen, came: Sequence[Piece]) -> Numbers:
    """Head-of-line delay: delivery less arrival, of what was delivered within the window."""
    if seen.protocol == "tcp":
        spans = [(piece.t, done) for piece, done in in_order(came)]
    else:
        spans = [(pieces[-1].t, done) for pieces, done in delivered(came)]
    waits = sorted(done - arrived for arrived, done in spans if seen.end is None or done <= seen.end)
    if not waits:
        return dict.fromkeys(("hol_blocking_s", "hol_blocking_p95_s", "hol_blocking_max_s", "hol_blocked_ratio"))
    return {
        "hol_blocking_s": sum(waits) / len(waits) / S,
        "hol_blocking_p95_s": _one_of(waits, 0.95) / S,
        "hol_blocking_max_s": waits[-1] / S,
        "hol_blocked_ratio": sum(wait > 0 for wait in waits) / len(waits),
    }


def _one_of(ordered: Sequence[int], part: float) -> int:
    return ordered[max(0, math.ceil(part * len(ordered) - 1e-9) - 1)]


def in_order(came: Sequence[Piece]) -> Iterator[tuple[Piece, int]]:
    """TCP's segments up to the first gap, with the time at which nothing before them was missing."""
    reach = now = 0
    for piece in sorted(came, key=lambda each: each.begin):
        if piece.begin > reach:
            return
        reach, now = max(reach, piece.end), max(now, piece.t)
        yield piece, now


def delivered(came: Sequence[Piece]) -> Iterator[tuple[list[Piece], int]]:
    """SCTP's whole messages, their chunks in the order of arrival, with the time of their delivery (RFC 9260 6.5)."""
    by_tsn = {piece.begin: piece for piece in came}
    streams: dict[int, int] = {}  # when the message before the next one was delivered
    order: dict[int, int] = {}
    tsn = 0
    top = max(by_tsn, default=-1)
    while tsn <= top:
        if tsn not in by_tsn:
            tsn += 1
            continue
        begin = by_tsn[tsn]
        assert begin.chunk is not None
        parts = [begin]
        while not parts[-1].chunk.flags & 1 and tsn + len(parts) in by_tsn:  # type: ignore[union-attr]
            parts.append(by_tsn[tsn + len(parts)])
        whole = begin.chunk.flags & 2 and parts[-1].chunk is not None and parts[-1].chunk.flags & 1
        tsn += len(parts)
        stream = begin.chunk.stream
        number = int.from_bytes(begin.chunk.value[6:8], "big")
        if not whole:
            continue
        parts.sort(key=lambda each: each.t)
        ready = parts[-1].t
        if begin.chunk.flags & 4:
            yield parts, ready
            continue
        if number != order.get(stream, 0):
            order[stream] = -1  # one before it is missing: what follows in this stream waits for ever
            continue
        order[stream] = (number + 1) % 65536
        streams[stream] = max(streams.get(stream, 0), ready)
        yield parts, streams[stream]


# messages ----------------------------------------------------------------------------------------------------------


def _messages(files: CellFiles, seen: FlowSeen, sent: Sequence[Piece], came: Sequence[Piece]) -> Numbers:
    """Delays of messages: due by an interval, else when first sent, of TCP each segment."""
    options = seen.flow["sender_options"]
    if any(options.get(key) is not None for key in ("message_rate", "lifetime_ns", "max_retransmissions")):
        return {}
    if seen.flow.get("messages") or options.get("scheduler", "fcfs") != "fcfs":
        return {}
    until = files.cell["duration_ns"] if seen.end is None else seen.end
    schedule = _schedule(files, seen, until) if options.get("interval_ns") is not None else None
    first: dict[int, Piece] = {}
    for piece in sent:
        first.setdefault(piece.begin, piece)
    if not first:
        return {"messages": None, "message_delay_mean_s": None}
    if seen.protocol == "tcp":
        if len({piece.end for piece in first.values()}) < len(first) or _overlaps(first):
            return {}
        done = {piece.end: at for piece, at in in_order(came)}
        spans = [(piece.t, done.get(piece.end)) for piece in first.values()]
        if schedule is not None:
            ends = sorted(done)
            spans = [(due, next((done[end] for end in ends if end >= last), None)) for due, last in schedule]
        if len(done) > len(first) or not set(done) <= {piece.end for piece in first.values()}:
            return {}
    else:
        if any(piece.chunk is not None and piece.chunk.kind == I_DATA for piece in first.values()):
            return {}
        read = {min(part.begin for part in parts): at for parts, at in delivered(came)}
        begun = [piece for piece in first.values() if piece.chunk is not None and piece.chunk.flags & 2]
        spans = [(piece.t, read.get(piece.begin)) for piece in begun]
        if schedule is not None:
            begun.sort(key=lambda piece: piece.begin)
            spans = [(due, read.get(begun[n].begin) if n < len(begun) else None) for n, (due, _) in enumerate(schedule)]
    known = [(due, at if at is not None and at <= until else None) for due, at in spans if due <= until]
    delays = sorted(at - due for due, at in known if at is not None)
    numbers: Numbers = {
        "messages": len(known),
        "message_delay_mean_s": sum(delays) / len(delays) / S if delays else None,
    }
    for name, part in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999)):
        numbers[f"message_delay_{name}_s"] = percentile(delays, [until - due for due, at in known if at is None], part)
    return numbers


def _schedule(files: CellFiles, seen: FlowSeen, until: int) -> list[tuple[int, int]]:
    """Of each message that an interval makes due before the flow's end: when, and the number of bytes up to its end."""
    options, flow = seen.flow["sender_options"], seen.flow
    connected = next(
        (record["t_ns"] for record in files.app(seen.name, "sender") if record["record"] == "connected"), None
    )
    if connected is None:
        return []
    step, start = options["interval_ns"], flow["start_ns"]
    burst = [int(size) for size in str(options.get("burst_bytes") or flow["message_bytes"]).split(",")]
    missed = -(-max(0, connected - files.t0_monotonic - start) // step)
    last = until if flow["stop_ns"] is None else min(until, flow["stop_ns"] - 1)
    found: list[tuple[int, int]] = []
    due, number = start + missed * step, 0
    while due <= last and (flow["total_bytes"] is None or number < flow["total_bytes"]):
        for size in burst:
            if flow["total_bytes"] is None or number < flow["total_bytes"]:
                number += size
                found.append((due, number if flow["total_bytes"] is None else min(number, flow["total_bytes"])))
        due += step
    return found


def _overlaps(first: dict[int, Piece]) -> bool:
    ordered = sorted(first.values(), key=lambda each: each.begin)
    return any(one.end > other.begin for one, other in itertools.pairwise(ordered))


def percentile(delays: Sequence[int], waiting: Sequence[int], part: float) -> float | None:
    """docs/metrics.md: what has waited longer than the percentile of the others counts as longer than all."""
    if not delays:
        return None
    longer = sum(wait > _one_of(delays, part) for wait in waiting)
    place = max(0, math.ceil(part * (len(delays) + longer) - 1e-9) - 1)
    return delays[place] / S if place < len(delays) else None


# round trips -------------------------------------------------------------------------------------------------------


def _round_trips(seen: FlowSeen, sent: Sequence[Piece]) -> Numbers:
    """TCP's round trips: one sample an ACK that advances, from the segment whose last byte it acknowledges; none where
    anything newly acknowledged was ever sent twice or out of order (Karn: RFC 6298 3).
    """
    if seen.protocol == "sctp":
        return _of_sacks(seen, sent)
    if seen.protocol != "tcp":
        return {}
    until = seen.end
    syn = next((row.packet for row in seen.sender.data if row.packet.flags & SYN), None)
    if syn is None:
        return {}
    moments: list[tuple[int, int, Packet, bool]] = [(row.packet.t, 1, row.packet, True) for row in seen.sender.data]
    moments += [(packet.t, 0, packet, False) for packet in seen.sender.back]
    spans: list[tuple[int, int, int]] = []
    """Begin, end and time of what was sent once and in order, as numbers from the SYN's."""
    twice: list[tuple[int, int]] = []
    highest = 0
    for row in seen.sender.data:
        packet = row.packet
        length = packet.payload_bytes + bool(packet.flags & SYN) + bool(packet.flags & FIN)
        begin = relative(packet.seq, syn.seq)
        if not length:
            continue
        if begin < highest:
            twice.append((begin, begin + length))
        else:
            spans.append((begin, begin + length, packet.t))
        highest = max(highest, begin + length)
    acked, samples = 0, []
    for packet in sorted(seen.sender.back, key=lambda each: each.t):
        if not packet.flags & ACK or packet.flags & RST:
            continue
        ack = relative(packet.ack, syn.seq)
        if ack <= acked:
            continue
        old, acked = acked, ack
        if any(begin < ack and end > old for begin, end in twice):
            continue
        exact = [t for _, end, t in spans if end == ack and t <= packet.t]
        if exact and (until is None or packet.t <= until):
            samples.append(packet.t - exact[-1])
    if not samples:
        return {}
    samples.sort()
    return {"rtt_min_s": samples[0] / S, "rtt_mean_s": sum(samples) / len(samples) / S,
            "rtt_median_s": _one_of(samples, 0.5) / S, "rtt_p95_s": _one_of(samples, 0.95) / S}  # fmt: skip


def _of_sacks(seen: FlowSeen, sent: Sequence[Piece]) -> Numbers:
    """SCTP's: one sample a report, from the chunk sent last of those that it is the first to cover; none of chunks that
    were ever sent twice (RFC 9260 6.3.1 C5).
    """
    given_up = (FORWARD_TSN, I_FORWARD_TSN)  # what these cover is reported, though it did not come
    if len(seen.flow["paths"]) != 1 or not sent or any(
        chunk.kind in given_up for row in seen.sender.data for chunk in row.packet.chunks
    ):  # fmt: skip
        return {}
    copies = Counter(piece.begin for piece in sent)
    first = next(piece.chunk.tsn - piece.begin for piece in sent if piece.chunk is not None)
    open_: dict[int, int] = {}  # TSN -> when it was sent
    moments = [(piece.t, piece) for piece in sent] + [
        (packet.t, chunk) for packet in seen.sender.back for chunk in packet.chunks if chunk.kind in (SACK, SHUTDOWN)
    ]
    known: set[int] = set()
    samples = []
    for t, what in sorted(moments, key=lambda each: each[0]):
        if isinstance(what, Piece):
            open_.setdefault(what.begin, t)
            continue
        cumulative = relative(int.from_bytes(what.value[:4], "big"), first)
        gaps = int.from_bytes(what.value[8:10], "big") if what.kind == SACK else 0
        blocks = [(cumulative + int.from_bytes(what.value[at : at + 2], "big"),
                   cumulative + int.from_bytes(what.value[at + 2 : at + 4], "big"))
                  for at in range(12, 12 + 4 * gaps, 4)]  # fmt: skip
        fresh = {tsn for tsn in open_ if tsn not in known
                 and (tsn <= cumulative or any(low <= tsn <= high for low, high in blocks))}  # fmt: skip
        known |= fresh
        once = [open_[tsn] for tsn in fresh if copies[tsn] == 1]
        if once and (seen.end is None or t <= seen.end):
            samples.append(t - max(once))
    return {"rtt_mean_s": sum(samples) / len(samples) / S} if samples else {}


# the kernel's word -------------------------------------------------------------------------------------------------


def _kernel(files: CellFiles, seen: FlowSeen) -> Numbers:
    """cwnd of the only path, as the sender's socket said it: mean over time, first and last in the window."""
    if len(seen.flow["paths"]) != 1 or seen.flow["sender_options"].get("reconnect_ns") is not None:
        return {}
    points = [(record["t_ns"] - files.t0_monotonic, path["cwnd_bytes"])
              for record in files.app(seen.name, "sender") if record.get("record") == "sample"
              for path in record["paths"] if path.get("cwnd_bytes") is not None]  # fmt: skip
    within = [cwnd for t, cwnd in points if seen.end is None or t <= seen.end]
    if not points or not within or any(event["action"] == "restart" for event in files.cell["timeline"]):
        return {}
    whole = points[-1][0] - points[0][0]
    held = sum(cwnd * (later - t) for (t, cwnd), (later, _) in itertools.pairwise(points))
    return {"cwnd_bytes": held / whole if whole else points[-1][1], "cwnd_initial_bytes": within[0],
            "cwnd_end_bytes": within[-1]}  # fmt: skip
