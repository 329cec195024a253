"""SCTP associations of which a capture lacks the handshake. Packets carry their receiver's verification tag, so each
direction is a connection of its own until something shows that two belong together (RFC 9260 8.5).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ..core.wire import DATA, I_DATA, SCTP
from .capture import Capture
from .native import UNKNOWN, Ints, TagPair

NEAR_TSNS = 1 << 16
"""A SACK of a TSN further away from those sent is of another association."""


def associations_in_two(capture: Capture) -> list[TagPair]:
    """Port and tag of both ends of each association whose directions the capture has as two connections: they went
    between the same addresses and ports in opposite directions, or the one acknowledges the other's TSNs. Where several
    fit, none is taken.
    """
    flows = capture.flows
    rows = np.flatnonzero((flows["protocol"] == SCTP) & (flows["tag_known"].sum(axis=1) == 1))
    by_ports: dict[tuple[int, int], list[int]] = {}
    for row in rows.tolist():
        by_ports.setdefault(_ports(capture, row), []).append(row)
    used = _used_ways(capture, rows)
    found: dict[int, set[int]] = {}
    for row in rows.tolist():
        to, from_ = _ports(capture, row)
        for other in by_ports.get((from_, to), ()):
            if other != row and (used[row] & {(path, 1 - way) for path, way in used[other]}):
                found.setdefault(row, set()).add(other)
    for row, other in _acknowledged(capture, [row for row in rows.tolist() if row not in found], by_ports):
        found.setdefault(row, set()).add(other)
        found.setdefault(other, set()).add(row)
    pairs = []
    for row, others in found.items():
        (other, *more) = others
        if not more and found.get(other) == {row} and row < other:
            pairs.append((_end(capture, row), _end(capture, other)))
    return pairs


def _receiver(capture: Capture, row: int) -> int:
    return int(capture.flows["tag_known"][row, 1])


def _ports(capture: Capture, row: int) -> tuple[int, int]:
    """Of the end whose tag is known, and of the other."""
    end, port = _receiver(capture, row), capture.flows["port"][row].tolist()
    return port[end], port[1 - end]


def _end(capture: Capture, row: int) -> tuple[int, int]:
    end = _receiver(capture, row)
    return int(capture.flows["port"][row, end]), int(capture.flows["tag"][row, end])


def _used_ways(capture: Capture, rows: Ints) -> dict[int, set[tuple[int, int]]]:
    """By connection the paths and directions on them in which its packets went."""
    used: dict[int, set[tuple[int, int]]] = {row: set() for row in rows.tolist()}
    table = capture.flow_paths
    for place in np.flatnonzero(np.isin(table["flow"], rows)).tolist():
        for direction in (0, 1):
            if table["packets"][place, direction]:
                way = int(table["path_direction"][place]) ^ direction
                used[int(table["flow"][place])].add((int(table["path"][place]), way))
    return used


def _acknowledged(
    capture: Capture, rows: list[int], by_ports: dict[tuple[int, int], list[int]]
) -> Iterator[tuple[int, int]]:
    """Connections of which the one's SACKs name TSNs that the other sent, by raw numbers."""
    if not len(capture.chunks):
        return
    for row in rows:
        to, from_ = _ports(capture, row)
        sacks = capture.sacks[capture.sacks["flow"] == row]
        if not len(sacks):
            continue
        base = int(capture.flows["base"][row, _receiver(capture, row)])
        named = (sacks["cumulative_tsn"] + base) % 2**32
        for other in by_ports.get((from_, to), ()):
            chunks = capture.chunks[capture.chunks["flow"] == other]
            tsns = chunks["tsn"][np.isin(chunks["type"], (DATA, I_DATA)) & (chunks["tsn"] != UNKNOWN)]
            if other == row or not len(tsns):
                continue
            raw = (tsns + int(capture.flows["base"][other, 1 - _receiver(capture, other)])) % 2**32
            apart = (named - raw[0] + 2**31) % 2**32 - 2**31
            if (np.abs(apart) < NEAR_TSNS).all():
                yield row, other
