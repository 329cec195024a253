"""The opening of an association: the end that asked, and the evidence that it was established."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.wire import (
    COOKIE_ACK,
    COOKIE_ECHO,
    DATA,
    HEARTBEAT,
    HEARTBEAT_ACK,
    I_DATA,
    INIT,
    SACK,
    SHUTDOWN,
    SHUTDOWN_ACK,
    chunk_name,
)
from ..native import Ints
from .association import Association

SHOWS = (COOKIE_ACK, SACK, DATA, I_DATA, HEARTBEAT, HEARTBEAT_ACK, SHUTDOWN, SHUTDOWN_ACK)
"""Chunks that an end sends in an association only (RFC 9260 4); the initiator's first DATA may go with its COOKIE
ECHO."""


def opening_of(association: Association, t0_ns: int) -> dict[str, Any]:
    """Totals: `inits`, `inits_back` that each end sent; `cookie_echos` of the first; `up_s`,
    `up_by`: the first chunk that shows it established.
    """
    columns = association.columns
    direction, kinds = columns["direction"], columns["type"]
    inits = [int(((kinds == INIT) & (direction == end)).sum()) for end in (0, 1)]
    shown = _shown(association)
    up = int(shown[0]) if len(shown) else None
    return {
        "inits": inits[0],
        "inits_back": inits[1],
        "cookie_echos": int(((kinds == COOKIE_ECHO) & (direction == 0)).sum()),
        "up_s": None if up is None else (int(columns["time_ns"][up]) - t0_ns) / 1e9,
        "up_by": None if up is None else chunk_name(int(kinds[up])),
    }


def _shown(association: Association) -> Ints:
    columns = association.columns
    candidates = columns.of_type(*SHOWS)
    echoes = columns["packet"][columns.of_type(COOKIE_ECHO)]
    own: Ints = candidates[~np.isin(columns["packet"][candidates], echoes)]
    return own
