"""Words and numbers of a connection and of joined captures, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...captures import Join
from ...captures.capture import Capture
from ...captures.connection import Connection
from ...captures.hop_joins import Hop
from ...captures.summary import other_traffic
from ...core.numbers import DASH, fixed, readable, scale, with_unit
from ...core.units import counted

HEADS = ("  hop", "packets", "lost", "burst", "delay min/med/p95/max", "reord.")
ENDS = (("_bit_s", "bit/s"), ("_bytes", "bytes"), ("_ratio", "ratio"), ("_s", "s"))
WHOLE_NAMES = {"flight_bytes": "in flight", "round_packets": "packets a round trip", "outstanding_bytes": "outstanding"}
"""Series whose names need more than their words in another spelling."""


def seconds(value: float | None) -> str:
    """A time with the unit that suits it: 12.3 ms."""
    return with_unit(value, "s")


def delays(*values: float | None) -> str:
    """Several times in one unit, that of the largest: 20.4/260/506/634 ms."""
    if all(value is None for value in values):
        return DASH
    divisor, unit = scale(values, "s")
    return "/".join(DASH if value is None else readable(value / divisor, 3) for value in values) + f" {unit}"


def beside(capture: Capture) -> str:
    """The packets that are in no connection, by protocol; "" if there are none."""
    parts = []
    for row in other_traffic(capture):
        text = f"{row['protocol']} {counted(row['packets'], 'packet')}"
        if row["largest"]:
            text += f", {with_unit(row['ip_bytes'], 'bytes')}, "
            several = row["conversations"] > 1
            text += f"{fixed(row['conversations'], 0)} conversations, the largest " if several else ""
            text += " \u2194 ".join(row["largest"][0]["ends"])
        parts.append(text)
    return "; ".join(parts)


def share(count: int | None, of: int) -> str:
    """A count and its share: 10 (2.77 %); a dash if it is not known, or nothing of nothing."""
    if count is None:
        return DASH
    return f"{fixed(count, 0)} ({readable(100 * count / of, 3)} %)" if of else fixed(count, 0) if count else DASH


def unit_of(name: str) -> str:
    """The unit that ends a series' or total's name; "" for counts."""
    bare = name.split("[")[0]
    return next((unit for end, unit in ENDS if bare.endswith(end)), "")


def words_of(name: str) -> str:
    """A series' or total's name as words: rtt_min_s -> RTT min."""
    bare, _, path = name.partition("[")
    if bare in WHOLE_NAMES:
        return WHOLE_NAMES[bare] + (f", {path_of(name)}" if path else "")
    for end, _ in ENDS:
        if bare.endswith(end):
            bare = bare.removesuffix(end)
            break
    text = " ".join({"rtt": "RTT", "hol": "head-of-line", "tsn": "TSN", "t3": "T3", "ecn": "ECN"}.get(word, word)
                    for word in bare.split("_"))  # fmt: skip
    return f"{text}, {path_of(name)}" if path else text


def path_of(name: str) -> str:
    """The path a series is of, as words; "" if of none."""
    return name.partition("[")[2].rstrip("]").replace(">", " → ")


def value_text(name: str, value: Any) -> str:
    """A total with its unit."""
    if value is None:
        return DASH
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    unit = unit_of(name)
    return seconds(value) if unit == "s" else with_unit(value, unit)


def lead(connection: Connection) -> str:
    """The duration, the start, the beginning and the end of a connection."""
    facts = connection.facts
    ended = [connection.ends[side] for side in (0, 1) if facts["ended"][side]]
    end = "not ended" if not ended else "ended by both" if len(ended) == 2 else f"ended by {ended[0]}"
    begin = "handshake seen" if facts["handshake_seen"] else "handshake not in the capture"
    start = facts["start_s"]
    since = f"{readable(start, 6)} s" if start >= 1 else seconds(start)
    return f"{seconds(facts['duration_s'])} from {since} on, {begin}, {end}"


def protocol(connection: Connection) -> str:
    """TCP, SCTP, or MPTCP subflow."""
    return "MPTCP subflow" if connection.facts["mptcp_subflow"] else connection.protocol.upper()


def direction_rows(connection: Connection) -> list[tuple[str, str, str]]:
    """Name, and the value of each direction."""
    two = connection.directions
    rows = {
        "packets": [fixed(d["packets"], 0) for d in two],
        "with data": [fixed(d["data_packets"], 0) for d in two],
        "new payload": [with_unit(d["new_bytes"], "bytes") for d in two],
        "goodput": [with_unit(d["goodput_bit_s"], "bit/s") for d in two],
        "retransmitted": [_again(d) for d in two],
    }
    return [(name, cells[0], cells[1]) for name, cells in rows.items()]


def _again(counts: Mapping[str, Any]) -> str:
    """Retransmitted data packets and their share; then retransmitted SYN and FIN, which are no data."""
    data, all_of_them = counts["retransmitted_data_packets"], counts["retransmitted_packets"]
    bare = (all_of_them or 0) - (data or 0)
    if data is None and all_of_them is not None:  # a connection without series: what it carried is not known
        return fixed(all_of_them, 0)
    text = share(data, counts["data_packets"])
    return text if not bare else f"{bare} SYN/FIN" if text == DASH else f"{text}, {bare} SYN/FIN"


def event_text(event: Mapping[str, Any]) -> str:
    """An event with all its details."""
    more = [str(event[name]).replace(">", " → ") for name in ("path", "subflow") if name in event]
    for name, value in event.items():
        if name not in ("t_s", "what", "path", "direction", "subflow") and value is not None and value is not False:
            more.append(words_of(name) if value is True else f"{words_of(name)} {value_text(name, value)}")
    return str(event.get("what", "")).replace("_", " ") + (f" ({'; '.join(more)})" if more else "")


def hop_row(hop: Hop) -> tuple[str, ...]:
    """The columns of HEADS."""
    return (
        f"  {hop.before} \u2192 {hop.after}",
        fixed(hop.packets, 0),
        _lost(hop),
        f"{readable(hop.burst_mean_packets, 3)}/{max(hop.bursts)}" if hop.bursts else DASH,
        delays(hop.delay_min_s, hop.delay_median_s, hop.delay_p95_s, hop.delay_max_s),
        fixed(hop.reordered_packets, 0),
    )


def _lost(hop: Hop) -> str:
    if not hop.lost_packets or hop.loss_ratio is None:
        return fixed(hop.lost_packets, 0)
    return f"{fixed(hop.lost_packets, 0)} ({readable(hop.loss_ratio * 100, 3)} %)"


def join_notes(join: Join) -> list[str]:
    """Notes on the numbers of the hops: packets that are in none, equal packets, clocks."""
    notes = [f"{point.name}: {point.trouble}" for point in join.points if point.trouble]
    if join.alone:
        notes.append(f"shares no packet with the others: {', '.join(join.alone)}")
    unknown = sum(hop.unknown_packets for hop in join.hops)
    if unknown:
        verb, were = ("is", "it was") if unknown == 1 else ("are", "they were")
        notes.append(f"{counted(unknown, 'packet')} {verb} in no number below: {were} due at the next point when "
                     "nothing was captured there any more, or not yet")  # fmt: skip
    by_time = sum(hop.by_time_packets for hop in join.hops)
    if by_time:
        look = counted(by_time, "packet looks", "packets look")
        notes.append(f"{look} exactly like others, and only time tells which were lost")
    negative = sum(hop.negative_packets for hop in join.hops)
    if negative:
        were = "it was" if negative == 1 else "they were"
        notes.append(f"{counted(negative, 'packet')} arrived before {were} sent: the captures' clocks differ")
        notes += _offsets(join)
    elif not join.one_clock:
        notes.append("delays are differences of the captures' times: as true as their clocks agree")
    return notes


def _offsets(join: Join) -> list[str]:
    """For each pair of points with negative delays, the offset of their clocks."""
    texts: dict[frozenset[str], str] = {}
    for hop in join.hops:
        if hop.clock_offset_if_symmetric_s is not None and hop.negative_packets:
            ahead = hop.clock_offset_if_symmetric_s
            text = f"{hop.after} is {seconds(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} {hop.before}, if the "
            texts.setdefault(frozenset((hop.before, hop.after)), text + "shortest delays of both directions are equal")
    return list(texts.values())
