"""Captures that begin amid SCTP associations of several paths: each association is one connection, whatever comes
first. Associations are drawn from a model: every packet carries its receiver's tag, as RFC 9260 8.5 says.
"""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest
from netwarp.captures import FileSummary
from support.captures import T, Timed, chunk, data_chunk, sack_chunk, sctp, summary

MS = 1_000_000


class Association:
    """One of several paths: 10.<path>.0.1 and 10.<path>.0.2."""

    def __init__(self, draw: random.Random, paths: list[int], ports: tuple[int, int]) -> None:
        self.draw, self.paths, self.ports = draw, paths, ports
        self.tags = [draw.randrange(1, 2**32) for _ in range(2)]
        self.tsns = [draw.randrange(2**32) for _ in range(2)]
        self.packets: list[Timed] = []
        self.sent = [0, 0]

    def add(self, at_ms: float, end: int, path: int, *chunks: bytes) -> None:
        packet = sctp(self.tags[1 - end], *chunks, path=path, back=bool(end), ports=self.ports)
        self.packets.append((T + round(at_ms * MS), packet))

    def heartbeat(self, at_ms: float, end: int, path: int) -> None:
        what = struct.pack("!II", int(at_ms), self.draw.randrange(2**32))
        self.add(at_ms, end, path, chunk(4, what))
        self.add(at_ms + 0.1, 1 - end, path, chunk(5, what))

    def data(self, at_ms: float, end: int, path: int, back: int) -> None:
        """A message, and its SACK by a path that may be another."""
        tsn = self.tsns[end] + self.sent[end]
        self.sent[end] += 1
        self.add(at_ms, end, path, data_chunk(tsn, 60, ssn=self.sent[end]))
        self.add(at_ms + 0.2, 1 - end, back, sack_chunk(tsn))

    def life(self, seconds: int, *, both_ways: bool = True) -> None:
        for second in range(seconds):
            at = 1000.0 * second + self.draw.randrange(200)
            for number, path in enumerate(self.paths):
                if number and both_ways:
                    self.heartbeat(at + number, self.draw.randrange(2), path)
            end = self.draw.randrange(2)
            self.data(at + 400, end, self.paths[0], self.paths[0 if both_ways else 1])
            if both_ways:
                self.data(at + 500, 1 - end, self.draw.choice(self.paths), self.paths[-1])


def cut(packets: list[Timed], draw: random.Random) -> list[Timed]:
    packets = sorted(packets)
    return packets[draw.randrange(len(packets) // 2) :]


def healthy(found: FileSummary) -> None:
    for connection in found.connections:
        assert not connection.totals["heartbeats_unanswered"]
        assert not connection.totals.get("acknowledged_unseen_chunks")
        assert connection.directions[0]["packets"] and connection.directions[1]["packets"]
    assert not [text for text in found.findings if "no answer" in text or "not hold" in text]


@pytest.mark.parametrize("seed", range(30))
def test_one_association_is_one_connection(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    paths = draw.sample(range(1, 50), draw.randrange(2, 6))
    association = Association(draw, paths, draw.choice([(3868, 40759), (2905, 2905)]))
    association.life(8)
    found = summary(tmp_path, cut(association.packets, draw))
    assert len(found.connections) == 1
    healthy(found)


@pytest.mark.parametrize("seed", range(10))
def test_data_on_one_path_and_sacks_on_another(tmp_path: Path, seed: int) -> None:
    """The directions share no pair of addresses: the SACKed TSNs join them."""
    draw = random.Random(seed)
    association = Association(draw, [1, 2], (3868, 40759))
    association.sent = [0, 0]
    for second in range(6):
        association.data(1000 * second, 0, 1, 2)
    found = summary(tmp_path, cut(association.packets, draw))
    assert len(found.connections) == 1
    healthy(found)


@pytest.mark.parametrize("seed", range(10))
def test_several_associations_of_the_same_ports(tmp_path: Path, seed: int) -> None:
    """Of other hosts: none is joined with another."""
    draw = random.Random(seed)
    associations = [Association(draw, [1 + 3 * n, 2 + 3 * n, 3 + 3 * n], (2905, 2905)) for n in range(3)]
    packets: list[Timed] = []
    for association in associations:
        association.life(6)
        packets += association.packets
    found = summary(tmp_path, cut(packets, draw))
    assert len(found.connections) == 3
    healthy(found)
