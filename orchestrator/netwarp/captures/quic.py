"""QUIC's packets as everybody sees them, without keys: kinds, connection ids, the spin bit's round trips.

The rows are the table `quic` of the analyser (apps/analyzer/quic.h).
"""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

from .native import Floats, Rows

CID_UNKNOWN = 255
"""dcid_bytes of a short header: how long its connection id is, only its ends know (RFC 8999 5.2)."""
CID_HEAD, CID_MAX = 16, 20
SHORTEST_SHARE = 0.1
"""Of the round trips that the spin bit shows; if more are impossibly short, the bit does not spin."""


class Kind(enum.IntEnum):
    """Column `kind`. The first four have version 1's numbers (RFC 9000 17.2)."""

    INITIAL = 0
    ZERO_RTT = 1
    HANDSHAKE = 2
    RETRY = 3
    VERSION_NEGOTIATION = 4
    OTHER_VERSION = 5
    SHORT = 6
    """1-RTT."""


def connection_id(row: Any, column: str) -> bytes:
    """The connection id of a row, its `dcid` or `scid`; of a short header the 20 bytes behind its first. Of an id that
    is longer than 20 bytes (only other versions have any) the first 20.
    """
    size = int(row[f"{column}_bytes"])
    whole = bytes(row[column]) + int(row[f"{column}_rest"]).to_bytes(CID_MAX - CID_HEAD)
    return whole if size == CID_UNKNOWN else whole[:size]


def spin_round_trips_s(rows: Rows, base_rtt_s: float) -> Floats:
    """The times between the edges of the spin bit among the short headers of one direction, in the order of the capture
    (RFC 9000 17.4, RFC 9312 3.8.2); empty if the bit does not spin.

    An end that does not take part sends the bit as it likes: always the same, or random by packet. A round trip cannot
    be shorter than half of base_rtt_s, that of the links alone: more than one in ten such is a random bit.
    """
    spins = rows[rows["kind"] == Kind.SHORT]
    edges = np.flatnonzero(spins["spin"][1:] != spins["spin"][:-1]) + 1
    trips: Floats = np.diff(spins["time_ns"][edges].astype(np.int64)) / 1e9
    if len(trips) and (trips < base_rtt_s / 2).mean() > SHORTEST_SHARE:
        return trips[:0]
    return trips
