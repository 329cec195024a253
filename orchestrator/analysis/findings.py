"""What somebody who knows transport protocols would notice first, in words, each with the number behind it.

Nothing is guessed: a sentence stands only on what packets show, and says how many.
"""

from __future__ import annotations

from collections.abc import Sequence

from .connection import Connection

MOST = 12
"""Findings a file; those of larger connections come first."""
SILENCE_S = 1.0
SILENCE_SHARE = 0.02
"""A pause that a retransmission ended is told from this length and this share of the connection's time on."""
RETRANSMITTED = 0.01


def file_findings(connections: Sequence[Connection]) -> tuple[str, ...]:
    """Sentences, at most MOST."""
    found: list[str] = []
    for one in connections:
        where = f"flow {one.number}: " if len(connections) > 1 else ""
        found += [where + text for text in connection_findings(one)]
    return tuple(found[:MOST])


def connection_findings(one: Connection) -> list[str]:
    """What stands out in one connection."""
    found: list[str] = []
    for direction, counts in enumerate(one.directions):
        again, data = counts["retransmitted_packets"], counts["data_packets"]
        if data and again > RETRANSMITTED * data:
            found.append(f"{again} of {data} data packets of {one.ends[direction]} repeat what it had sent before "
                         f"({again / data:.1%})")  # fmt: skip
    for direction, begin_s, length_s, ended_again in one.silences[:1]:
        if ended_again and length_s >= max(SILENCE_S, SILENCE_SHARE * one.facts["duration_s"]):
            found.append(f"{one.ends[direction]} sent no data for {length_s:.3g} s from {begin_s:.6g} s on, "
                         "and what ended the silence was a retransmission")  # fmt: skip
    return found
