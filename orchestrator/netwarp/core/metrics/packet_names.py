"""Names of a flow's packets, as expressions of metrics use them: at("DATA 7 again"), count("DATA", "< ACK 3")."""

from __future__ import annotations

import dataclasses
import re
from typing import Protocol

from ..wire import CHUNK_NAMES

AGAIN = "DATA again"
SEGMENTS = ("SYN", "SYN ACK", "ACK", "SACK", "DSACK", "FIN", "RST")
KINDS = ("DATA", AGAIN, *SEGMENTS, *(name for name in CHUNK_NAMES.values() if name not in ("DATA", "SACK", "I-DATA")))
"""Kinds of packets: of data, of TCP, and SCTP's chunks by the names of their RFCs."""
ACKNOWLEDGING = ("ACK", "SACK")
EXAMPLE = 'at("DATA 7 again") or count("DATA", "< ACK 3", "< ACK 4")'
MOST_NAMES = {"at": 1, "count": 3}
"""Functions of an expression -> how many packets they are given at most."""
_NAME = re.compile(
    r"(?P<back>< )?(?P<kind>DATA again|[A-Z][A-Z-]*(?: [A-Z][A-Z-]*)*)(?: (?P<number>[1-9]\d{0,6}))?"
    r"(?P<again> again(?: (?P<times>[1-9]\d{0,6}))?)?(?: of DATA (?P<of>[1-9]\d{0,6}))?(?: on (?P<path>\S+))?"
)


@dataclasses.dataclass(frozen=True)
class PacketName:
    """A packet of a flow, or a kind of them.

    back: it comes from the flow's receiver. number: which of its kind, counted from 1 (None: the first, or all). again:
    of a DATA packet, the so many-th packet that carries its first byte or chunk again (0: itself). of: of an
    acknowledgement, the first one that covers this DATA packet. path: only packets on it count ("": on any).
    """

    kind: str
    back: bool = False
    number: int | None = None
    again: int = 0
    of: int | None = None
    path: str = ""

    @property
    def is_kind(self) -> bool:
        """True if it names no single packet."""
        return self.number is None and not self.again and self.of is None


def packet_name(text: str) -> PacketName:
    """The packet of a name. Raises ValueError, which says what is wrong."""
    found = _NAME.fullmatch(" ".join(text.split()))
    if found is None or found["kind"] not in KINDS:
        raise ValueError(f'"{text}" names no packet; for example {EXAMPLE}; kinds are {", ".join(KINDS)}')
    name = PacketName(
        kind=found["kind"],
        back=found["back"] is not None,
        number=int(found["number"]) if found["number"] else None,
        again=int(found["times"] or 1) if found["again"] else 0,
        of=int(found["of"]) if found["of"] else None,
        path=found["path"] or "",
    )
    if name.again and (name.kind != "DATA" or name.back or name.number is None):
        raise ValueError(f'"{text}": only a packet of the flow\'s data is sent again; for example "DATA 7 again"')
    if name.of is not None and (name.kind not in ACKNOWLEDGING or not name.back or name.number is not None):
        raise ValueError(f'"{text}": an acknowledgement of data is "< ACK of DATA 7" or "< SACK of DATA 7"')
    return name


def names_problem(function: str, names: list[str]) -> str | None:
    """The reason why a call of `at` or `count` is wrong, or None."""
    try:
        parsed = [packet_name(name) for name in names]
    except ValueError as error:
        return str(error)
    if function == "count" and not parsed[0].is_kind:
        return f'count("{names[0]}"): what is counted is a kind without a number; for example {EXAMPLE}'
    return None


class Packets(Protocol):
    """The packets of a flow, by name; at its sender, or at its receiver where only that is captured."""

    def at(self, name: str) -> float | None:
        """When a packet passed, in s from T0; None: there is no such packet."""

    def count(self, kind: str, after: str | None = None, before: str | None = None) -> float | None:
        """How many packets of a kind passed after one packet and before another; None if one is not there."""

    def over_time(self, function: str, numbers: list[float], text: str) -> float | None:
        """The value of a function of time (flow_functions.py); None: there is none."""


class NoPackets:
    """Of a flow of which no packet has a name: datagrams, or a flow that was not captured."""

    def at(self, name: str) -> float | None:
        """None."""

    def count(self, kind: str, after: str | None = None, before: str | None = None) -> float | None:
        """None."""

    def over_time(self, function: str, numbers: list[float], text: str) -> float | None:
        """None."""
