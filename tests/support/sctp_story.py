"""SCTP associations written packet by packet, for tests of their analysis.

Times are in ms. TSNs count from ISN. At the initiator, the tags are 11 and 22.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from netwarp.captures.sctp import SctpAssociation, analyze_sctp

from support.captures import ISN, T, association, data_chunk, pcap, read, sack_chunk, sctp

MS = 1_000_000
Packet = tuple[int, bytes]


def handshake(rtt_ms: int = 100) -> list[Packet]:
    """The handshake as its initiator sees it."""
    packets = association()
    return [(at * MS, packet) for at, packet in zip((0, rtt_ms, rtt_ms, 2 * rtt_ms), packets, strict=True)]


def at_receiver(*packets: Packet) -> list[Packet]:
    """The handshake as the responder sees it, then these packets."""
    init, answer, echo, done = association()
    return [(0, init), (0, answer), (100 * MS, echo), (100 * MS, done), *packets]


def data(at_ms: float, *tsns: int, path: int = 1, size: int = 100, stream: int = 0, ssn: int | None = None) -> Packet:
    """One packet of DATA chunks. Without `ssn`, the SSN is the TSN."""
    chunks = [data_chunk(ISN + tsn, size, stream=stream, ssn=tsn if ssn is None else ssn) for tsn in tsns]
    return round(at_ms * MS), sctp(22, *chunks, path=path)


def sack(
    at_ms: float,
    cumulative: int,
    gaps: Sequence[tuple[int, int]] = (),
    again: Sequence[int] = (),
    path: int = 1,
    window: int = 65536,
) -> Packet:
    """A SACK; a gap is the first and last TSN that it acknowledges, `again` the TSNs that arrived twice."""
    blocks = [(first - cumulative, last - cumulative) for first, last in gaps]
    chunk = sack_chunk(ISN + cumulative, blocks, [ISN + tsn for tsn in again], window)
    return round(at_ms * MS), sctp(11, chunk, path=path, back=True)


def analyze(tmp_path: Path, packets: Sequence[Packet], **options: object) -> SctpAssociation:
    """The analysis of one capture with these packets."""
    capture = read(tmp_path, pcap([(T + at, packet) for at, packet in packets]))
    return analyze_sctp(capture, 0, **options)  # type: ignore[arg-type]
