"""A packet in words, from what `random_fields.Plain` reads: "data 1449 to 2896", "ACK 2897", "RST".

Sequence numbers and TSNs count from the first of their direction, as in the clauses.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from ipaddress import ip_address

from ..core import wire
from .packet_words import ack_words, block_words, chunk_words, sent_words

Clauses = tuple[tuple[str, object], ...]
IDENTITY = ("addresses", "IP protocol", "ports", "sequence number", "TSN", "ICMP", "length of the datagram")
"""The clauses that say which packet it is; of TCP and SCTP what `meaning` says besides."""
_KINDS: dict[object, int] = {name: kind for kind, name in wire.CHUNK_NAMES.items()}
_PROTOCOLS = {wire.ICMP: "ICMP", wire.ICMPV6: "ICMPv6", wire.UDP: "a UDP datagram"}


def meaning(clauses: Clauses) -> str:
    """What the packet does, and who sends it."""
    first = _first_values(clauses)
    protocol = first.get("IP protocol")
    if protocol == wire.TCP:
        words = _tcp(first)
    elif protocol == wire.SCTP:
        words = ", ".join(_sctp(clauses)) or "a packet without chunks"
    elif isinstance(protocol, int):
        words = _other(protocol, first)
    else:
        words = "a frame that is not IP"
    sender = first.get("addresses")
    return f"{words} from {ip_address(sender[0])}" if isinstance(sender, tuple) else words


def identity(clauses: Clauses) -> tuple[object, ...]:
    """Equal for two packets that do the same work: direction, position, flags or chunks, and payload."""
    kept = tuple((name, value) for name, value in clauses if name in IDENTITY)
    return (*kept, meaning(clauses))


def _first_values(clauses: Clauses) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, value in clauses:
        found.setdefault(name, value)
    return found


def _tcp(first: dict[str, object]) -> str:
    flags, _ = _pair(first.get("TCP flags"))
    sequence, size, acknowledged = (
        _number(first.get(k)) for k in ("sequence number", "payload bytes", "acknowledgement")
    )
    words = sent_words(flags, sequence, size) or [ack_words(acknowledged)]
    if isinstance(edges := first.get("SACK"), tuple):
        blocks = [(low, high - 1) for low, high in zip(edges[::2], edges[1::2], strict=False)]
        words.append(f"SACK {block_words(blocks)}")
    return ", ".join(words)


def _sctp(clauses: Clauses) -> Iterator[str]:
    """Each chunk, with the TSN that follows it."""
    at = [place for place, (name, _) in enumerate(clauses) if name == "chunk"]
    for begin, end in itertools.pairwise([*at, len(clauses)]):
        value = clauses[begin][1]
        assert isinstance(value, tuple)
        inside = dict(clauses[begin + 1 : end])
        tsn, up_to = inside.get("TSN"), inside.get("cumulative TSN")
        kind = _number(_KINDS.get(value[0], value[0]))
        yield chunk_words(kind, [tsn] if isinstance(tsn, int) else (), up_to if isinstance(up_to, int) else None)


def _other(protocol: int, first: dict[str, object]) -> str:
    words = _PROTOCOLS.get(protocol, f"IP protocol {protocol}")
    if isinstance(kind := first.get("ICMP"), tuple):
        return f"{words} type {kind[0][0]}, code {kind[0][1]}"
    if (size := first.get("length of the datagram")) is not None:
        return f"{words} of {size} B"
    return words


def _pair(value: object) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (0, 0)


def _number(value: object) -> int:
    return value if isinstance(value, int) else 0
