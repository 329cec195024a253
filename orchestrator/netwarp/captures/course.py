"""The course of a connection in words, and the network's part in it, from its packets alone."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..core.numbers import given, in_short, percent
from ..core.units import counted
from .capture import NEAR
from .connection import Connection
from .findings import tcp_causes, totals_of

STALL_S = 0.5
"""A pause of TCP that is told; stalls of SCTP less far apart are told together."""
LISTED = 6

Event = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Moment:
    """Something that happened: when (s from the capture's first packet), and a sentence."""

    t_s: float
    text: str


def course(connection: Connection) -> tuple[Moment, ...]:
    """What happened, in order; of many alike one sentence."""
    moments = [
        *_opening(connection),
        *_faults(connection),
        *_windows(connection),
        *_pauses(connection),
        *_ending(connection),
    ]
    return tuple(sorted(moments, key=lambda moment: moment.t_s))


def _of(connection: Connection, *kinds: str) -> list[Event]:
    return [event for event in connection.events if event["what"] in kinds]


def _opening(connection: Connection) -> Iterator[Moment]:
    if connection.protocol != "sctp":
        yield from _tcp_opening(connection)
        return
    totals = connection.totals
    first = "data" if not totals.get("data_direction") else "back"
    inits = [event for event in _of(connection, "INIT") if event["direction"] == first]
    if not inits:
        yield Moment(float(connection.facts["start_s"]), "the capture begins; the association was up already")
        return
    start_s = float(inits[0]["t_s"])
    text = f"{connection.ends[0]} asks for an association"
    if totals["inits_back"]:
        text += f", and {connection.ends[1]} for the same at the same time"
    if len(inits) > 1:
        gaps = [in_short(b["t_s"] - a["t_s"], "s") for a, b in itertools.pairwise(inits)]
        text += f", with {len(inits)} INITs ({_some(gaps)} apart)"
    if totals["cookie_echos"] > 1:
        text += f" and {totals['cookie_echos']} COOKIE ECHOs"
    if connection.facts["unseen_end"] is not None:
        text += f"; no packet of {connection.ends[connection.facts['unseen_end']]} is in this capture"
    elif totals["up_s"] is None:
        text += f": {_not_up(connection)}"
    yield Moment(start_s, text)
    if totals["up_s"] is not None:
        text = f"the association is up, after {in_short(totals['up_s'] - start_s, 's')}"
        shown = (
            "" if totals["up_by"] == "COOKIE ACK" else f": {totals['up_by']} shows it, the capture has no COOKIE ACK"
        )
        yield Moment(float(totals["up_s"]), text + shown)
    for event in _of(connection, "restart"):
        yield Moment(float(event["t_s"]), f"it restarts the association of flow {event['restart_of']} (RFC 9260 5.2)")


def _not_up(connection: Connection) -> str:
    if not connection.directions[1]["packets"] and not _of(connection, "icmp"):
        return "no answer is in the capture"
    ended = _of(connection, "ABORT", "icmp")
    return "it never came up" if ended else "its handshake is not completed in the capture"


def _tcp_opening(connection: Connection) -> Iterator[Moment]:
    start_s, totals = float(connection.facts["start_s"]), connection.totals
    if totals.get("syn_s") is None:
        yield Moment(start_s, "the capture begins; the connection was up already")
        return
    start_s = float(totals["syn_s"])
    syns = int(totals.get("syn_packets") or 0)
    text = f"{connection.ends[0]} connects" + (f", with {counted(syns, 'SYN')}" if syns > 1 else "")
    answered = totals.get("syn_ack_after_s")
    if totals.get("simultaneous_open"):
        text += f", and {connection.ends[1]} to it at the same time"
    if connection.facts["unseen_end"] is not None:
        text += f"; no packet of {connection.ends[connection.facts['unseen_end']]} is in this capture"
    elif answered is None and not totals.get("simultaneous_open"):
        text += ": no answer is in the capture"
    yield Moment(start_s, text)
    if answered is not None:
        yield Moment(start_s + answered, f"{connection.ends[1]} answers, after {in_short(answered, 's')}")


def _faults(connection: Connection) -> Iterator[Moment]:
    """Stalls that a timer ended, where the data went, and heartbeats without answer."""
    sender = connection.ends[int(connection.totals.get("data_direction") or 0)]
    stalls: dict[tuple[str, str], list[Event]] = {}
    expiries: dict[tuple[str, str], list[float]] = {}
    elsewhere: set[tuple[str, float]] = set()
    for event in connection.events:
        who = str(event.get("data_of", sender))
        match event["what"]:
            case "outage begins":
                stalls.setdefault((who, str(event["path"])), []).append(event)
            case "T3 expiry":
                expiries.setdefault((who, str(event["path"])), []).append(float(event["t_s"]))
            case "first retransmission on another path":
                elsewhere.add((who, round(event["t_s"] - event["after_s"], 6)))
    yield from _icmp(connection)
    for (who, path), rows in stalls.items():
        mine = expiries.get((who, path), [])
        alike, others = _alike(list(_groups(rows)))
        if alike:
            yield _many_stalls(who, path, alike, mine)
        for group in others:
            moved = (who, round(group[0]["t_s"], 6)) in elsewhere
            yield _stalls(who, path, group, mine, moved=moved)
    yield from _more_stalls(connection)
    for event in _of(connection, "new data on another path", "new data returns to its first path"):
        moves = "returns" if event["what"].startswith("new data returns") else "moves"
        yield Moment(float(event["t_s"]), f"new data {moves} from {_way(event['before'])} to {_way(event['path'])}")
    unanswered: dict[str, list[Event]] = {}
    for event in _of(connection, "unanswered HEARTBEAT"):
        unanswered.setdefault(str(event["path"]), []).append(event)
    for path, events in unanswered.items():
        first, last = float(events[0]["t_s"]), float(events[-1]["t_s"])
        text = f"{counted(len(events), 'HEARTBEAT')} on {_way(path)} without answer"
        yield Moment(first, text + (f", the last at {_at(last)}" if len(events) > 1 else ""))
    if connection.protocol == "sctp":
        return
    for direction, begin_s, length_s, ended_again in connection.silences:
        if connection.facts["unseen_end"] is None and ended_again and length_s >= STALL_S:
            text = f"no data from {connection.ends[direction]} for {in_short(length_s, 's')}, until a retransmission"
            yield Moment(begin_s, text)


def _icmp(connection: Connection) -> Iterator[Moment]:
    """ICMP errors, equal ones of one host together."""
    alike: dict[tuple[str, str, int], list[Event]] = {}
    for event in _of(connection, "icmp"):
        alike.setdefault((event["from"], event["error"], event["direction"]), []).append(event)
    for (host, error, direction), events in alike.items():
        first, last = float(events[0]["t_s"]), float(events[-1]["t_s"])
        size = f", at most {events[0]['mtu_bytes']} B" if "mtu_bytes" in events[0] else ""
        text = f"{host} answers {connection.ends[direction]} by ICMP: {error}{size}"
        yield Moment(first, text + (f" ({len(events)} times, the last at {_at(last)})" if len(events) > 1 else ""))


def _more_stalls(connection: Connection) -> Iterator[Moment]:
    """Of very many outages only the first are events: the others by the totals."""
    for direction, totals in totals_of(connection).items():
        who = connection.ends[direction]
        listed = [event for event in _of(connection, "outage begins") if event.get("data_of", who) == who]
        more = int(totals.get("outages") or 0) - len(listed)
        if listed and more > 0:
            expiries = int(totals.get("t3_expiries") or 0)
            text = f"{counted(more, 'more stall')} of {who} after these; T3 expires {counted(expiries, 'time')} in all"
            yield Moment(float(listed[-1]["t_s"]), text)


def _groups(rows: Sequence[Event]) -> Iterator[list[Event]]:
    """Stalls that follow each other closely: the next begins within the length of the one before it."""
    group = [rows[0]]
    for before, row in itertools.pairwise(rows):
        length_s = before["duration_s"]
        if length_s is None or row["t_s"] > before["t_s"] + length_s + max(length_s, STALL_S):
            yield group
            group = []
        group.append(row)
    yield group


def _alike(groups: Sequence[list[Event]]) -> tuple[list[Event], list[list[Event]]]:
    """Single stalls that are told together, where there are many of about one length; and the other groups."""
    single = [group[0] for group in groups if len(group) == 1 and group[0]["duration_s"] is not None]
    if len(single) <= LISTED:
        return [], list(groups)
    usual = sorted(float(row["duration_s"]) for row in single)[len(single) // 2]
    alike = [row for row in single if row["duration_s"] <= 2 * usual]
    return alike, [group for group in groups if len(group) > 1 or group[0] not in alike]


def _many_stalls(who: str, path: str, rows: Sequence[Event], expiries: Sequence[float]) -> Moment:
    lengths = sorted(float(row["duration_s"]) for row in rows)
    waits = sorted(
        t_s - row["t_s"] for row in rows for t_s in expiries if row["t_s"] <= t_s <= row["t_s"] + row["duration_s"]
    )
    text = f"{counted(len(rows), 'stall')} of {who}, of {_range(lengths)}, until {_at(rows[-1]['t_s'])} ({_way(path)})"
    return Moment(float(rows[0]["t_s"]), f"{text}; T3 expires after {_range(waits)} each time" if waits else text)


def _range(values: Sequence[float]) -> str:
    first, last = in_short(values[0], "s"), in_short(values[-1], "s")
    return first if first == last else f"{first} to {last}"


def _stalls(who: str, path: str, rows: Sequence[Event], expiries: Sequence[float], *, moved: bool) -> Moment:
    """One stall of what an end sends on a path, or several in a row. moved: the first was sent again elsewhere."""
    begin_s, last = float(rows[0]["t_s"]), rows[-1]
    waits: list[str] = []
    for row in rows:
        end_s = float("inf") if row["duration_s"] is None else row["t_s"] + row["duration_s"]
        inside = [t_s for t_s in expiries if row["t_s"] <= t_s <= end_s]
        waits += [in_short(b - a, "s") for a, b in itertools.pairwise([float(row["t_s"]), *inside])]
    lengths = [in_short(row["duration_s"], "s") for row in rows if row["duration_s"] is not None]
    if last["duration_s"] is None:
        text = f"from here on nothing that {who} sends is acknowledged any more ({_way(path)})"
    elif len(rows) == 1:
        text = f"nothing that {who} sends is acknowledged for {lengths[0]} ({_way(path)})"
    else:
        text = f"{len(rows)} stalls of {who} in a row, of {_some(lengths)} ({_way(path)})"
    if waits:
        expiries_in_all = sum(int(row["t3_expiries"]) for row in rows)
        text += f"; T3 expires {counted(expiries_in_all, 'time')}, after {_some(waits)}"
    return Moment(begin_s, text + ("; the data is sent again on the other path" if moved else ""))


def _pauses(connection: Connection) -> Iterator[Moment]:
    """Times in which an end had nothing to send; the longest."""
    for event in sorted(_of(connection, "pause"), key=lambda event: -float(event["for_s"]))[:LISTED]:
        text = (
            f"no data for {in_short(event['for_s'], 's')}, all is acknowledged: {connection.ends[event['direction']]}"
        )
        yield Moment(float(event["t_s"]), f"{text} has nothing to send until then")


def _windows(connection: Connection) -> Iterator[Moment]:
    for event in _of(connection, "zero_window"):
        end = connection.ends[int(event["direction"])]
        for_s = event["for_s"]
        text = f"{end} closes its receive window"
        yield Moment(
            float(event["t_s"]),
            text + (f" for {in_short(for_s, 's')}" if for_s is not None else ", to its last packet"),
        )


def _ending(connection: Connection) -> Iterator[Moment]:
    end_s = float(connection.facts["start_s"]) + float(connection.facts["duration_s"])
    aborts, shutdowns = _of(connection, "ABORT", "rst"), _of(connection, "SHUTDOWN", "fin")
    ways = {"data": int(connection.totals.get("data_direction") or 0)}
    for event in aborts[:1]:
        where = event["direction"]
        number = where if isinstance(where, int) else ways["data"] if where == "data" else 1 - ways["data"]
        causes = f" ({', '.join(event['causes'])})" if event.get("causes") else ""
        word = "aborts the association" if event["what"] == "ABORT" else "resets the connection"
        yield Moment(float(event["t_s"]), f"{connection.ends[number]} {word}{causes}")
    if not aborts and shutdowns:
        yield Moment(float(shutdowns[0]["t_s"]), _closing(connection, shutdowns))
    if not aborts and not shutdowns:
        goes_on_s = connection.capture_s - end_s
        text = "the capture ends; nothing closed it"
        if goes_on_s >= STALL_S:
            text = f"its last packet: the capture goes on for {in_short(goes_on_s, 's')} without one; nothing closed it"
        yield Moment(end_s, text)


def _closing(connection: Connection, shutdowns: Sequence[Event]) -> str:
    if connection.protocol == "sctp":
        whole = connection.totals["ending"] == "shutdown"
        return "it is closed in order" if whole else "a SHUTDOWN; the capture has no answer to it"
    ends = {int(event["direction"]) for event in shutdowns}
    if len(ends) > 1:
        return "it is closed in order"
    (end,) = ends
    return f"{connection.ends[end]} closes its direction; no FIN of the other end is in the capture"


def network_part(connection: Connection) -> Iterator[str]:
    """What the packets say of the network, for each direction with data: round trips, and what was sent again."""
    yield from tcp_causes(connection)
    for direction, totals in totals_of(connection).items():
        who = connection.ends[direction]
        if totals.get("rtt_min_s") is not None and totals.get("rtt_max_s") is not None:
            least, most = (in_short(totals[f"rtt_{name}_s"], "s") for name in ("min", "max"))
            whose = who if _captured_at(connection, direction) else f"{who} as seen from the capture"
            puts_off = "with the time for which the other end puts its answer off"
            yield f"round trips of {whose}: {least} to {most}, {puts_off}"
        again, sent = totals.get("retransmitted_chunks"), totals.get("data_chunks")
        if not again or not sent:
            continue
        needless = int(totals.get("spurious_retransmitted_chunks") or 0)
        chunks = counted(int(totals["new_data_chunks"]), "DATA chunk")
        text = f"{int(again)} of {counted(int(sent), 'transmission')} of {chunks} of {who} were retransmissions"
        if needless:
            had = f"{needless} of them ({percent(needless / int(again))}) repeat what had arrived"
            text += f"; {had}: its acknowledgement was late, or lost"
        yield text


def _captured_at(connection: Connection, direction: int) -> bool:
    """Whether the capture was taken at the sender of a direction."""
    totals = connection.totals
    is_data = direction == int(totals.get("data_direction") or 0)
    if connection.protocol == "sctp":
        return bool(totals["point"] == ("sender" if is_data else "receiver"))
    ratio = totals.get("capture_point_ratio")
    return ratio is not None and bool(ratio < NEAR if is_data else ratio > 1 - NEAR)


def _way(path: object) -> str:
    return str(path).replace(">", " > ")


def _some(items: Sequence[str]) -> str:
    if len(items) > LISTED:
        items = [*items[: LISTED - 1], "...", items[-1]]
    return ", ".join(items)


def _at(t_s: float) -> str:
    return f"{given(t_s, 6)} s"
