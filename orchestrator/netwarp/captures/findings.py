"""Sentences about what stands out in a capture (resets, silences, retransmissions), each with the number behind it.

Nothing is guessed: each sentence follows from packets in the capture and names their number.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.numbers import fixed, given, in_short, percent
from ..core.units import counted, counted_of
from .connection import Connection, Connections
from .hop_joins import Hop

if TYPE_CHECKING:
    from .mptcp import MptcpConnection

MOST = 12  # Findings per file; those of larger connections come first
MOST_OF_ONE = 6
LIMITS_OF = 3  # Connections of which it is said what limited them
LIMITED = 0.02
LIMITED_PACKETS = 50  # With fewer data packets there is no time in which a limit lasts
MANY = 3  # More connections than this with the same end, or the same finding, become one sentence
COMPARED = 200  # Connections whose findings are compared, the largest
_ADDRESSES = re.compile(r"\[[0-9a-f:.]+\]:\d+|\d+\.\d+\.\d+\.\d+(:\d+)?|[0-9a-f]*:[0-9a-f:]+")
_NUMBERS = re.compile(r"(\d+(?:\s\d{3})*(?:\.\d+)?)(?:\s?([mun]?s)\b)?")
UNITS = {"ms": 1e-3, "us": 1e-6, "ns": 1e-9}
SLOW_S = 0.5  # An answer (to a SYN; to a request, minus the SYN's) is reported if it took at least this long
SILENCE_S = 0.5
NAGLE_WAITS = 5
KEEP_ALIVES = 2
SILENT_S = 5  # A connection's silence to the end of the capture is reported if it is so long,
SILENT_TIMES = 3  # and so many times its longest pause
# A pause that a retransmission ended is reported if it is at least this share of the connection's time (and long
# enough)
SILENCE_SHARE = 0.02
RETRANSMITTED = 0.01
SPURIOUS = 0.1
HEAD_OF_LINE_S = 0.01
LONG_BURST = 5
QUEUED = 1.5  # A hop's p95 delay is reported if it is at least this many times the shortest delay


def file_findings(connections: Connections, multipath: Sequence[MptcpConnection] = ()) -> tuple[str, ...]:
    """The sentences about a file, at most MOST: first what limited its largest connections, last where most of that is
    unknown.
    """
    sentences: list[str] = []
    last: list[str] = []
    for connection in itertools.islice(connections.in_depth(), LIMITS_OF):
        where = f"flow {connection.number}: " if len(connections) > 1 else ""
        for text, known in _limits(connection):
            (sentences if known else last).append(where + text)
    sentences += [text for connection in multipath for text in _multipath(connection)]
    unanswered = connections.unanswered()
    silent = int(unanswered.sum())
    if silent > MANY:
        sentences.append(f"{counted_of(silent, len(connections), 'connection')} have no answer in the capture")
    refused, ports_of = connections.refused()
    together = int(refused.sum()) > MANY
    if together:
        for host, ports in sorted(ports_of.items(), key=lambda item: -len(item[1])):
            at = f"port {ports[0]}" if min(ports) == max(ports) else f"ports {min(ports)} to {max(ports)}"
            sentences.append(f"{counted_of(len(ports), len(connections), 'connection')} were refused by {host} ({at})")
            if len(sentences) >= MOST_OF_ONE:
                break
    looked_at = connections.worth_a_look() & ~(unanswered & (silent > MANY)) & ~(refused & together)
    alike: dict[str, list[tuple[int, str]]] = {}
    for connection in connections.at(np.flatnonzero(looked_at)[:COMPARED].tolist()):
        for text in connection_findings(connection):
            alike.setdefault(_NUMBERS.sub("#", _ADDRESSES.sub("@", text)), []).append((connection.number, text))
    for said in alike.values():
        if len(said) > MANY:
            number, text = max(said, key=lambda one: _size(one[1]))
            sentences.append(f"{len(said)} connections alike, at worst flow {number}: {text}")
        else:
            sentences += [f"flow {number}: {text}" if len(connections) > 1 else text for number, text in said]
    return (*sentences[: MOST - len(last)], *last)


def _size(text: str) -> float:
    """The first number of a finding that is of no address, in its base unit."""
    number = _NUMBERS.search(_ADDRESSES.sub("@", text))
    return float("".join(number[1].split())) * UNITS.get(number[2], 1) if number else 0.0


def connection_findings(connection: Connection) -> list[str]:
    """The sentences about one connection, the most serious first, at most MOST_OF_ONE."""
    return every_finding(connection)[:MOST_OF_ONE]


def every_finding(connection: Connection) -> list[str]:
    """All of them."""
    return [
        *_unseen(connection),
        *_end(connection),
        *_slow(connection),
        *_window(connection),
        *tcp_causes(connection),
        *_silence(connection),
        *_paths(connection),
        *_repeated(connection),
        *_other(connection),
    ]


def _limits(connection: Connection) -> Iterator[tuple[str, bool]]:
    """What limited the data's sender, the largest share first, and whether that is known rather than not. What is not
    certain is no cause, but unknown.
    """
    totals = connection.totals
    unknown, data = totals.get("unknown_limit_ratio"), totals.get("data_packets", totals.get("data_chunks")) or 0
    if unknown is None or data < LIMITED_PACKETS:
        return
    d = int(totals["data_direction"])
    sender, receiver = (connection.ends[end].rpartition(":")[0] for end in (d, 1 - d))
    causes = {
        "application": f"its application ({sender})",
        "receive_window": f"the receiver's window ({receiver})",
        "congestion_window": "its congestion window",
        "loss": "losses",
        "path": "the path's rate",
        "nagle": "Nagle's algorithm beside delayed acknowledgements",
    }
    shares = sorted(((totals.get(f"{name}_limited_ratio", 0.0), by) for name, by in causes.items()), reverse=True)
    text = ", ".join(
        f"by {by} for {percent(share, 2)}{' of its time' if not place else ''}"
        for place, (share, by) in enumerate(shares)
        if share >= LIMITED
    )
    if not text:
        return
    way = f"{sender} > {receiver}"
    if unknown > max(share for share, _ in shares):
        text = text.replace(" of its time", "")
        yield f"what limited {way} is unknown for {percent(unknown, 2)} of its time; it was limited {text}", False
    else:
        rest = f"; {percent(unknown, 2)} unknown" if unknown >= LIMITED else ""
        yield f"{way} was limited {text}{rest}", True


def _multipath(connection: MptcpConnection) -> Iterator[str]:
    where = f"MPTCP of flows {', '.join(map(str, connection.flows))}"
    totals = connection.totals
    if totals["fails"]:
        yield f"{where}: {counted(int(totals['fails']), 'MP_FAIL')}: a checksum was wrong, or data could not be mapped"
    if totals["unmapped_bytes"]:
        bare = counted_of(totals["unmapped_bytes"], totals["payload_bytes"], "byte")
        yield f"{where}: {bare} without a mapping (fallback?)"
    if totals["reinjected_bytes"]:
        segments = counted(int(totals["reinjected_segments"]), "segment")
        yield f"{where}: {segments} ({counted(totals['reinjected_bytes'], 'byte')}) sent again on another subflow"
    for row in connection.tables["subflows"]:
        if row["asked_s"] is not None and row["joined_s"] is None and len(connection.flows) > 1:
            yield f"{where}: subflow {row['subflow']} was asked for at {_at(row['asked_s'])} and never established"
        elif row["lost_s"] is not None:
            yield f"{where}: subflow {row['subflow']} was lost at {_at(row['lost_s'])}, before the connection's end"
    joined = {row["subflow"].partition(">")[2].rpartition(":")[0] for row in connection.tables["subflows"]}
    yield from _moves(connection, where)
    for event in connection.events:
        if event["what"] == "ADD_ADDR" and event["from"] == "other" and event["address"] not in joined:
            announced = f"address {event['address']} was told at {_at(event['t_s'])} (ADD_ADDR)"
            yield f"{where}: {announced}, and no subflow to it is in this capture"
    if len(connection.flows) > 1 and totals["subflows_with_data"] == 1:
        yield f"{where}: only one of {len(connection.flows)} subflows carried data"


def _moves(connection: MptcpConnection, where: str) -> Iterator[str]:
    """When new data left one subflow for another that goes on without it."""
    rows = [row for row in connection.tables["subflows"] if row["last_new_data_s"] is not None]
    rows.sort(key=lambda row: float(row["last_new_data_s"]))
    for before, after in itertools.pairwise(rows):
        left_s, came_s = before["last_new_data_s"], after["first_new_data_s"]
        old, new = _path(before["subflow"]), _path(after["subflow"])
        if came_s >= left_s:
            yield f"{where}: new data moved from {old} to {new} at {_at(came_s)}"
        elif after["last_new_data_s"] - left_s >= SILENCE_S:
            yield f"{where}: from {_at(left_s)} on new data went on {new} without {old}"


def _at(when_s: float) -> str:
    return f"{given(when_s, 6) if when_s >= 1e-3 else fixed(when_s, 6)} s"


def _unseen(connection: Connection) -> Iterator[str]:
    """Data that is missing from the capture. This sentence comes first, since it limits what the others can say."""
    for unit in ("bytes", "chunks"):
        if unseen := connection.totals.get(f"acknowledged_unseen_{unit}"):
            were = counted(int(unseen), f"{unit[:-1]} was", f"{unit} were")
            yield (
                f"{were} acknowledged that this capture does not hold: it lost packets, or is of one interface of "
                "several (--merge, without --join, makes one summary of a host's files); why something was sent again "
                "is guesswork"
            )


def _end(connection: Connection) -> Iterator[str]:
    whats = [str(event.get("what")) for event in connection.events]
    if "rst" in whats:
        yield from _reset(connection, connection.events[whats.index("rst")], whats[: whats.index("rst")].count("fin"))
    if "ABORT" in whats:
        event = connection.events[whats.index("ABORT")]
        d = int(connection.totals["data_direction"])
        by = connection.ends[d if event["direction"] == "data" else 1 - d]
        causes = f" ({', '.join(event['causes'])})" if event.get("causes") else ""
        yield f"the association was aborted at {_at(event['t_s'])} by {by}{causes}"
    again = max(int(connection.totals.get("syn_packets") or 0) - 1, 0)
    for event in connection.events:
        if event.get("what") == "restart":
            yield f"restarts the association of flow {event['restart_of']} at {_at(event['t_s'])} (RFC 9260 5.2)"
    icmp = _icmp(connection)
    inits = int(connection.totals.get("inits") or 0)
    crossed = bool(connection.totals.get("inits_back"))
    answered = all(counts["packets"] for counts in connection.directions)
    unseen = connection.facts["unseen_end"]
    if unseen is not None:
        yield f"no packet of {connection.ends[unseen]} is in this capture: what it received and answered is unknown"
    elif icmp and not answered:
        yield icmp
    elif not answered and (inits or connection.totals.get("syn_s") is not None):
        yield f"no answer to {counted(inits, 'INIT') if inits else counted(again + 1, 'SYN')} is in the capture"
    elif again and (answers := int(connection.totals.get("syn_ack_packets") or 0)):
        silent = again + 1 - answers - int(connection.totals.get("stray_answers") or 0)
        yield f"the handshake took {counted(again + 1, 'SYN')}" + (f": {silent} got no answer" if silent > 0 else "")
    elif int(connection.totals.get("syn_ack_packets") or 0) > 1:
        yield f"the handshake took {counted(int(connection.totals['syn_ack_packets']), 'SYN+ACK')}"
    elif inits > 1:
        yield f"the handshake took {inits} INITs"
    if icmp and answered:
        yield icmp
    if crossed:
        yield "both ends asked for the association at the same time (RFC 9260 5.2.1)"
    yield from _last_packet(connection)


def _icmp(connection: Connection) -> str:
    """The ICMP errors about a connection; "": none."""
    events = [event for event in connection.events if event.get("what") == "icmp"]
    if not events:
        return ""
    hosts = list(dict.fromkeys(str(event["from"]) for event in events))
    words = list(dict.fromkeys(str(event["error"]) for event in events))
    who = hosts[0] if len(hosts) == 1 else f"{len(hosts)} hosts"
    of = connection.ends[events[0]["direction"]]
    return (
        f"{who} answered {of} with {counted(len(events), 'ICMP error')}, from {_at(events[0]['t_s'])} on: "
        + ", ".join(words)
    )


def _last_packet(connection: Connection) -> Iterator[str]:
    """Silence to the end of the capture, longer than any before, of an association that nothing closed: HEARTBEATs
    would go on.
    """
    facts = connection.facts
    end_s = facts["start_s"] + facts["duration_s"]
    rest_s = connection.capture_s - end_s
    if connection.protocol != "sctp" or any(facts["ended"]) or connection.totals.get("up_s") is None:
        return
    longest_s = max((length_s for _, _, length_s, _ in connection.silences), default=facts["duration_s"])
    if rest_s >= SILENT_S and rest_s > SILENT_TIMES * longest_s:
        goes_on = f"the capture goes on for {in_short(rest_s, 's')}, and nothing closed it"
        yield f"its last packet is at {_at(end_s)}: {goes_on}"


def _reset(connection: Connection, event: Mapping[str, Any], fins: int) -> Iterator[str]:
    """The reset, unless nothing was lost by it: both ends had sent FIN, or all that was sent was acknowledged. A reset
    by the end whose own data were the only ones outstanding is how a sender stops (RFC 9293 3.10.5, ABORT).
    """
    at, end = _at(event["t_s"]), connection.ends[event["direction"]]
    refused = connection.totals.get("syn_s") is not None and connection.totals.get("syn_ack_after_s") is None
    if refused and event["direction"] == 1 and not connection.directions[1]["data_packets"]:
        yield f"the connection was refused at {at}"
        return
    own, other = event["unacknowledged_bytes"]
    if own is None or other is None:
        return
    if fins < 2 and (own or other):
        open_ = f"{counted(own + other, 'byte')} not acknowledged"
        yield (
            f"{end} stopped by a reset at {at}, {open_}"
            if not other
            else (f"the connection was reset at {at} by {end}, {open_}")
        )


def _slow(connection: Connection) -> Iterator[str]:
    """A slow handshake or a slow first response, if nothing was retransmitted meanwhile."""
    if (connection.totals.get("syn_packets") or 0) > 1:
        return
    answered = connection.totals.get("syn_ack_after_s")
    if answered is not None and answered >= SLOW_S:
        yield f"the answer to the SYN took {in_short(answered, 's')}"
    response = connection.totals.get("response_after_s")
    if response is not None and response - (answered or 0) >= SLOW_S:
        longer = None if answered is None else in_short(response - answered, "s")
        beyond = f", {longer} longer than the one to the SYN" if longer else ""
        yield f"the first answer to {connection.ends[0]} came {in_short(response, 's')} after its request{beyond}"


def _silence(connection: Connection) -> Iterator[str]:
    """The longest pause that a retransmission ended, with the number of timeouts if the capture can show it."""
    if connection.facts["unseen_end"] is not None:
        return  # what was sent again, and why, is known by the acknowledgements
    counts = {direction: int(totals.get("timeouts") or totals.get("t3_expiries") or 0)
              for direction, totals in totals_of(connection).items()}  # fmt: skip
    word, plural = ("T3 expiry", "T3 expiries") if connection.protocol == "sctp" else ("retransmission timeout", "")
    words = {direction: counted(count, word, plural) for direction, count in counts.items() if count}
    for direction, begin_s, length_s, ended_again in sorted(connection.silences, key=lambda pause: -pause[2]):
        if _closed_s(connection, direction, begin_s, length_s) > length_s / 2:
            continue  # the sender waited for the receiver: _window says so
        if ended_again and length_s >= max(SILENCE_S, SILENCE_SHARE * connection.facts["duration_s"]):
            pause = f"for {in_short(length_s, 's')} from {_at(begin_s)} on"
            text = words.pop(direction, "")
            yield f"no data from {connection.ends[direction]} {pause}, until a retransmission" + (
                f" ({text} in all)" if text else ""
            )
            break
    for direction, text in words.items():
        yield text + (f" of {connection.ends[direction]}" if len(counts) > 1 else "")


def totals_of(connection: Connection) -> dict[int, Mapping[str, Any]]:
    """The totals of each direction that carries data, by direction; the one with more data first."""
    first = int(connection.totals.get("data_direction") or 0)
    both: dict[int, Mapping[str, Any]] = {first: connection.totals}
    if reverse := {name[8:]: value for name, value in connection.totals.items() if name.startswith("reverse_")}:
        both[1 - first] = reverse
    return both


def _closed_s(connection: Connection, direction: int, begin_s: float, length_s: float) -> float:
    """For how long within a pause in the data of `direction` the other end's window was zero."""
    closed = 0.0
    for event in connection.events:
        if event["what"] == "zero_window" and event["direction"] != direction:
            end_s = event["t_s"] + (connection.facts["duration_s"] if event["for_s"] is None else event["for_s"])
            closed += max(0.0, min(end_s, begin_s + length_s) - max(event["t_s"], begin_s))
    return closed


def _paths(connection: Connection) -> Iterator[str]:
    changes = int(connection.totals.get("path_changes") or 0)
    for event in connection.events:
        if event.get("what") == "new data on another path":
            way = f"from {_path(event.get('before'))} to {_path(event.get('path'))}"
            if connection.totals.get("point") == "receiver":  # what was lost before is new here when it comes again
                yield (f"data not seen before came on another path at {_at(event['t_s'])}, {way} "
                       f"({counted(changes, 'change')} in all): sent again, or moved")  # fmt: skip
                break
            yield f"new data moved {way} at {_at(event['t_s'])}" + (f" ({changes} moves in all)" if changes > 1 else "")
            break
    if unanswered := int(connection.totals.get("heartbeats_unanswered") or 0):
        yield f"{counted(unanswered, 'HEARTBEAT')} of {connection.totals['heartbeats']} got no answer"


def _path(name: object) -> str:
    return str(name).replace(">", " > ")


def _repeated(connection: Connection) -> Iterator[str]:
    for direction, counts in enumerate(connection.directions):
        again, data = counts["retransmitted_data_packets"], counts["data_packets"]
        again = counts["retransmitted_packets"] or 0 if again is None else again
        if data and again > RETRANSMITTED * data:
            share = f"{counted_of(again, data, 'data packet')} ({percent(again / data)})"
            repeat = "repeats" if again == 1 else "repeat"
            totals = totals_of(connection).get(direction, {}) if connection.protocol == "sctp" else {}
            probes = int(totals.get("zero_window_probes") or 0)
            of_them = f", {fixed(probes, 0)} of them to probe the closed window" if probes else ""
            yield f"{share} of {connection.ends[direction]} {repeat} what it had sent before{of_them}"
    both = totals_of(connection)
    for direction, totals in both.items():
        for unit in ("packets", "chunks"):
            spurious, again = (totals.get(f"{name}retransmitted_{unit}") for name in ("spurious_", ""))
            if spurious and again and spurious >= SPURIOUS * again:
                they = "was needless: what it repeats" if spurious == 1 else "were needless: what they repeat"
                of = f" of {connection.ends[direction]}" if len(both) > 1 else ""
                yield f"{counted_of(spurious, again, f'retransmitted {unit[:-1]}')}{of} {they} had arrived"
    if reordered := connection.totals.get("reordered_packets"):
        yield f"{counted(int(reordered), 'packet')} arrived after others that had been sent later: reordering, not loss"


def _window(connection: Connection) -> Iterator[str]:
    for direction, totals in totals_of(connection).items():
        closed_s, duration_s = totals.get("zero_window_s") or 0.0, connection.facts["duration_s"]
        if (spells := int(totals.get("zero_windows") or 0)) and closed_s:
            share = f", {percent(closed_s / duration_s)} of the connection" if duration_s else ""
            probes = int(totals.get("zero_window_probes") or 0)
            yield (f"{connection.ends[1 - direction]} closed its receive window for {in_short(closed_s, 's')} "
                   f"({counted(spells, 'time')}{share}): the sender had to wait" +
                   (f" (it asked {counted(probes, 'time')})" if probes else ""))  # fmt: skip


def tcp_causes(connection: Connection) -> Iterator[str]:
    """What the packets say why a TCP connection waits or ends, beyond losses and windows: the same words in
    `netwarp analyze` and `explain`.
    """
    totals = connection.totals
    direction = int(totals.get("data_direction") or 0)
    sender, receiver = connection.ends[direction], connection.ends[1 - direction]
    if (count := int(totals.get("nagle_waits") or 0)) >= NAGLE_WAITS:
        share = totals["nagle_wait_s"] / connection.facts["duration_s"]
        yield (
            f"Nagle's algorithm beside delayed acknowledgements: {counted(count, 'small segment')} of {sender} waited "
            f"for an acknowledgement that {receiver} put off by {in_short(totals['nagle_ack_delay_s'], 's')}, "
            f"{in_short(totals['nagle_wait_s'], 's')} in all ({percent(share, 2)} of its time)"
        )
    quiet_s = connection.facts["duration_s"]
    if connection.facts["handshake_seen"] and quiet_s >= SILENT_S and _without_data(connection):
        yield (
            f"the capture has no data of either end in the {in_short(quiet_s, 's')} from the handshake on: none was "
            "sent, or none came here, as behind a path-MTU black hole"
        )
    if (count := int(totals.get("unanswered_keep_alives") or 0)) >= KEEP_ALIVES:
        end = int(totals["unanswered_keep_alives_by"])
        reset = any(event["what"] == "rst" and event["direction"] == end for event in connection.events)
        yield (
            f"{counted(count, 'keep-alive')} of {connection.ends[end]} got no answer from "
            f"{_at(totals['unanswered_keep_alives_s'])} on" + (", then it reset the connection" if reset else "")
        )
    if lost := int(totals.get("large_lost_packets") or 0):
        since, until = _at(totals["large_lost_s"]), _at(totals["large_lost_until_s"])
        passed, icmp = totals["large_lost_passed_bytes"], int(totals.get("icmp_errors") or 0)
        small = "its handshake passed" if passed is None else f"smaller ones with up to {passed} B passed"
        told = counted(icmp, "ICMP error") + " came" if icmp else "no ICMP is in the capture"
        yield (
            f"none of {counted(lost, 'packet')} of {sender} with {totals['large_lost_least_bytes']} B of data and more "
            f"was acknowledged from {since} to {until}, while {small}: as in a path-MTU black hole ({told})"
        )


def _without_data(connection: Connection) -> bool:
    counts = connection.directions
    return (
        connection.protocol == "tcp"
        and not any(each["data_packets"] for each in counts)
        and all(each["packets"] for each in counts)
    )


def _other(connection: Connection) -> Iterator[str]:
    if stray := connection.totals.get("stray_packets"):
        packets = counted(int(stray), "packet of these ports is", "packets of these ports are")
        yield f"{packets} of none of this connection's windows: of an earlier one, or stray; left out"
    if marked := connection.totals.get("ce_packets"):
        yield f"{counted(int(marked), 'packet was', 'packets were')} marked CE by a router (ECN)"
    waits, alone = connection.totals.get("hol_blocking_mean_s"), connection.totals.get("hol_blocking_one_stream_mean_s")
    if waits is not None and waits >= HEAD_OF_LINE_S:
        yield f"messages wait {in_short(waits, 's')} on average for earlier ones of their stream" + (
            f" ({in_short(alone, 's')} if they were one stream)" if alone is not None and alone > 1.01 * waits else ""
        )
    if gone := connection.totals.get("abandoned_chunks"):
        yield f"{counted(int(gone), 'chunk was', 'chunks were')} given up by their sender (FORWARD TSN)"


def hop_findings(hops: Sequence[Hop]) -> tuple[str, ...]:
    """The sentences about joined captures; hops with the most losses first."""
    sentences: list[str] = []
    for hop in sorted(hops, key=lambda hop: -(hop.loss_ratio or 0)):
        where = f"{hop.before} > {hop.after} ({hop.source} > {hop.destination})"
        if hop.lost_packets and hop.packets:
            text = f"{where} lost {counted_of(hop.lost_packets, hop.packets, 'packet')} ({percent(hop.loss_ratio)})"
            longest = max(hop.bursts)
            sentences.append(text + (f", up to {longest} in a row" if longest >= LONG_BURST else ""))
        if hop.again_packets:
            sentences.append(f"{where} doubled {counted(hop.again_packets, 'packet')}")
        if hop.reordered_packets:
            sentences.append(f"{where} reordered {counted(hop.reordered_packets, 'packet')}")
    waits = [
        hop for hop in hops if hop.delay_p95_s and hop.delay_min_s and hop.delay_p95_s > QUEUED * hop.delay_min_s > 0
    ]
    for hop in sorted(waits, key=lambda hop: -((hop.delay_p95_s or 0) - (hop.delay_min_s or 0)))[:2]:
        where = f"{hop.before} > {hop.after} ({hop.source} > {hop.destination})"
        slow, fast = in_short(hop.delay_p95_s or 0, "s"), in_short(hop.delay_min_s or 0, "s")
        sentences.append(f"{where}: 5% of the packets took over {slow}, the fastest {fast}: they waited somewhere")
    return tuple(sentences[:MOST])
