"""The packets that came to a queue and those that left it: an association's end looks like drops and is none."""

from __future__ import annotations

from pathlib import Path

import msgspec
from netwarp.measure.capture_point import CapturePoint
from netwarp.measure.flow_packets import packets_at_both_ends
from netwarp.measure.groups.physics import passage_of
from support.captures import ISN, T, association, chunk, data_chunk, pcap, read, sctp
from support.specs import BASE, plan_of

MS = 10**6
ABORT = sctp(22, chunk(6, b"\0\x0c\0\4"))
ANSWER = sctp(22, chunk(6, flags=1))
"""To a packet of an association that is gone (RFC 9260 8.4): each one the same."""


def test_aborts_that_answer_late_packets_are_no_drops(tmp_path: Path) -> None:
    """Six of them leave the sender one by one, and come together behind the data: nobody can tell which is which."""
    data = [sctp(22, data_chunk(ISN + number, ssn=number)) for number in range(8)]
    start = association()
    there = [(T + number * MS, packet) for number, packet in enumerate([*start, *data, ABORT, *[ANSWER] * 6])]
    kept = [*start, *data[:3], *data[4:], ABORT, *[ANSWER] * 5]  # one packet of data was dropped
    come = [(T + 500 * MS + min(number, len(kept) - 5) * MS, packet) for number, packet in enumerate(kept)]
    (cell,) = plan_of(BASE).cells
    flow = msgspec.structs.replace(cell.flows[0], protocol="sctp", port=80)
    points = []
    for name, packets in (("a", there), ("b", come)):
        (tmp_path / name).mkdir()
        points.append(CapturePoint(name, ("p1",), read(tmp_path / name, pcap(packets))))
    sender, receiver, _ = packets_at_both_ends(flow, points[0], points[1], 0)
    assert sender is not None and receiver is not None
    through = passage_of(cell, flow, sender, receiver)
    assert through is not None
    passage, _ = through
    assert int((~passage.let_in).sum()) == 1
    assert len(passage.let_in) == 2 + 8 + 1  # INIT, COOKIE ECHO, data, ABORT
