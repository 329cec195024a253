"""Pages of programs that say nothing: connections that are open together, by the client's capture."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.types import Program
from netwarp.measure.delivery import NEVER
from netwarp.measure.page_objects import AskedPage, asked_pages
from scapy.layers.inet import IP, TCP
from support.captures import T, ether
from support.observed import at_end, flow_of

MS = 1_000_000
Timed = tuple[int, bytes]


def connection(port: int, at: int, pieces: list[tuple[int, int, int]], *, closed: int | None) -> list[Timed]:
    """SYN at `at` ms, request 10 ms later, pieces (ms, first byte, bytes) from the server, the client's FIN."""

    def client(seq: int, flags: str, payload: int = 0, ack: int = 1) -> bytes:
        tcp = TCP(sport=port, dport=80, seq=1000 + seq, ack=0 if flags == "S" else 7000 + ack, flags=flags)
        return ether(IP(src="10.0.0.1", dst="10.0.0.2") / tcp / (b"x" * payload))

    def server(seq: int, flags: str, payload: int = 0) -> bytes:
        tcp = TCP(sport=80, dport=port, seq=7000 + seq, ack=1001, flags=flags)
        return ether(IP(src="10.0.0.2", dst="10.0.0.1") / tcp / (b"x" * payload))

    packets = [(at, client(0, "S")), (at + 5, server(0, "SA")), (at + 10, client(1, "PA", 80))]
    packets += [(time, server(first, "A", size)) for time, first, size in pieces]
    if closed is None:
        return packets
    there, whole = 1, sorted((first, size) for time, first, size in pieces if time < closed)
    for first, size in whole:
        there += size if first == there else 0
    return [*packets, (closed, client(81, "FA", ack=there))]


def pages_of(place: Path, packets: list[Timed]) -> list[AskedPage]:
    """The client is host b."""
    flow = flow_of("tcp", program=Program(("nginx",), ("curl",), listens="sender"))
    timed = [(T + time * MS, data) for time, data in sorted(packets, key=lambda each: each[0])]
    return asked_pages(at_end(flow, place, timed, "b"))


def test_a_page_is_the_connections_that_are_open_together(tmp_path: Path) -> None:
    one = connection(1000, 100, [(130, 1, 500), (150, 501, 500)], closed=160)
    two = connection(1001, 101, [(140, 1, 700)], closed=161)
    later = connection(1002, 300, [(340, 1, 10)], closed=350)
    first, second = pages_of(tmp_path, [*one, *two, *later])
    assert (first.opened_ns, first.requested_ns, first.delivered_ns) == (100 * MS, 110 * MS, 150 * MS)
    assert (first.closed_ns, first.connections, second.connections) == (161 * MS, 2, 1)
    assert (second.opened_ns, second.delivered_ns, second.complete) == (300 * MS, 340 * MS, True)


@pytest.mark.parametrize(
    ("pieces", "closed", "delivered_ms"),
    [
        ([(50, 1, 500), (60, 1001, 500), (90, 501, 500)], 91, 90),
        ([(50, 1, 500), (70, 501, 17)], 60, 50),
        ([(50, 1, 500)], None, None),
        ([(50, 501, 500)], 60, None),
    ],
    ids=["a byte counts when all before it is there", "not after the client closed", "not closed", "a hole stays"],
)
def test_what_of_a_page_counts(
    pieces: list[tuple[int, int, int]], closed: int | None, delivered_ms: int | None, tmp_path: Path
) -> None:
    """None: such a page is not complete."""
    (page,) = pages_of(tmp_path, connection(1000, 0, pieces, closed=closed))
    assert page.complete == (delivered_ms is not None)
    assert delivered_ms is None or page.delivered_ns == delivered_ms * MS
    assert (page.closed_ns == NEVER) == (closed is None)
