"""Words and numbers of a connection, for the terminal and the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...captures.capture import Capture
from ...captures.connection import Connection
from ...captures.summary import other_traffic
from ...core.numbers import DASH, fixed, readable, scale, with_unit
from ...core.units import counted

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
