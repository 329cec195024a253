"""Which TCP connections of a capture are subflows of one MPTCP connection: by keys and tokens (RFC 8684 3.1, 3.2)."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

from ...core.wire import MP_CAPABLE, MP_JOIN
from ..capture import Capture


@dataclasses.dataclass(frozen=True)
class Group:
    """flows: rows of the flow table, the first one's first. turned: by flow, 1 if its direction 0 is the connection's
    direction 1 (the other host opened it). version: of MP_CAPABLE. keys: of both hosts, 0 where not seen. complete:
    whether the handshake that began it is in the capture.
    """

    flows: tuple[int, ...]
    turned: tuple[int, ...]
    version: int
    keys: tuple[int, int]
    complete: bool


def token_of(key: int, version: int) -> int:
    """The token that a key gives: the first 32 bits of its SHA-256 (version 0, RFC 6824: SHA-1)."""
    digest = (hashlib.sha256 if version else hashlib.sha1)(key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big")


def groups(capture: Capture) -> tuple[Group, ...]:
    """Every MPTCP connection. A subflow whose connection's keys are not in the capture is one by itself."""
    table = capture.mptcp_options
    begun: dict[int, tuple[int, list[int]]] = {}
    asked: dict[int, tuple[int, int]] = {}
    for row in table[np.isin(table["subtype"], (MP_CAPABLE, MP_JOIN))]:  # a handful a subflow
        flow, direction = int(row["flow"]), int(row["direction"])
        if row["subtype"] == MP_CAPABLE:
            version, keys = begun.setdefault(flow, (int(row["version"]), [0, 0]))
            keys[direction] = keys[direction] or int(row["key"])
            keys[1 - direction] = keys[1 - direction] or int(row["peer_key"])
        elif row["token"]:
            asked.setdefault(flow, (int(row["token"]), direction))
    owners: dict[int, tuple[int, int]] = {}
    members: dict[int, list[tuple[int, int]]] = {flow: [(flow, 0)] for flow in begun}
    for flow, (version, keys) in begun.items():
        owners |= {token_of(key, version): (flow, host) for host, key in enumerate(keys) if key}
    alone = []
    for flow in np.flatnonzero(capture.flows["mptcp"]).tolist():
        if flow in begun:
            continue
        token, direction = asked.get(flow, (0, 0))
        if token in owners:
            connection, host = owners[token]
            # who is asked has the token: the SYN's direction is the connection's towards that host
            members[connection].append((flow, int(direction == host)))
        else:
            alone.append(Group((flow,), (0,), 1, (0, 0), complete=False))
    found = [
        Group(
            flows=tuple(flow for flow, _ in members[first]),
            turned=tuple(turned for _, turned in members[first]),
            version=version,
            keys=(keys[0], keys[1]),
            complete=all(keys),
        )
        for first, (version, keys) in begun.items()
    ]
    return tuple(sorted([*found, *alone], key=lambda group: group.flows[0]))
