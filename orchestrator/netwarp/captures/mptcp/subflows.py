"""The subflows of MPTCP connections: grouped by keys and tokens, and when each was opened and lost (RFC 8684 3)."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np

from ...core.wire import ACK, ADD_ADDR, DSS, FIN, MP_CAPABLE, MP_FASTCLOSE, MP_JOIN, RST, SYN
from ..capture import Capture, address_text, rows_of_flow, rows_of_flows
from ..native import Rows

ECHO = 1  # Flag of ADD_ADDR: the address is repeated back to the host that announced it (RFC 8684 3.4.1)
# A subflow counts as lost after this many unanswered retransmissions at its end: the answer to a single one may still
# be on its way
UNANSWERED = 2


@dataclasses.dataclass(frozen=True)
class SubflowGroup:
    """The subflows of one MPTCP connection. flows: rows of the flow table, the first subflow first. turned: for each
    flow, 1 if its direction 0 is the connection's direction 1 (the other host opened it). version: of MP_CAPABLE.
    complete: whether the capture holds the handshake that opened the connection.
    """

    flows: tuple[int, ...]
    turned: tuple[int, ...]
    version: int
    complete: bool


def token_of(key: int, version: int) -> int:
    """The token of a key: the first 32 bits of its SHA-256 hash (version 0, RFC 6824: SHA-1)."""
    digest = (hashlib.sha256 if version else hashlib.sha1)(key.to_bytes(8, "big")).digest()
    return int.from_bytes(digest[:4], "big")


def first_number_of(key: int) -> int:
    """The data sequence number of the first byte that the host of a key sends (RFC 8684 3.1), of version 1."""
    return (int.from_bytes(hashlib.sha256(key.to_bytes(8, "big")).digest()[-8:], "big") + 1) % (1 << 64)


def subflow_groups(capture: Capture) -> tuple[SubflowGroup, ...]:
    """Every MPTCP connection. A subflow whose connection's keys are not in the capture is a group of its own."""
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
            alone.append(SubflowGroup((flow,), (0,), 1, complete=False))
    opened = [
        SubflowGroup(
            flows=tuple(flow for flow, _ in members[first]),
            turned=tuple(turned for _, turned in members[first]),
            version=version,
            complete=all(keys),
        )
        for first, (version, keys) in begun.items()
    ]
    return tuple(sorted([*opened, *alone], key=lambda group: group.flows[0]))


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """The lifetime of one subflow; times in ns since 1970, None if the capture does not show them.

    flow: row of the flow table. asked_ns: its first SYN with MP_CAPABLE or MP_JOIN; asked: number of such SYNs.
    joined_ns: end of its handshake: the first packet of the responder after the ACK with the option. lost_ns: the
    subflow ended before the connection: its first RST or FIN, or the last packet of an end that answered nothing more
    (UNANSWERED).
    """

    flow: int
    asked_ns: int | None
    asked: int
    joined_ns: int | None
    lost_ns: int | None


def lifetimes(capture: Capture, group: SubflowGroup, end_ns: int | None = None) -> tuple[Lifetime, ...]:
    """The lifetimes of a connection's subflows, in the group's order. Packets after end_ns are ignored."""
    options = _until(rows_of_flows(capture, "mptcp_options", group.flows), end_ns)
    # every DSS option that the table holds has a DATA_FIN (3.3.3)
    closing = options["time_ns"][(options["subtype"] == DSS) | (options["subtype"] == MP_FASTCLOSE)]
    closed_ns = int(closing[0]) if len(closing) else None
    return tuple(
        _lifetime(
            flow,
            _until(rows_of_flow(capture, "mptcp_options", flow), end_ns),
            _until(rows_of_flow(capture, "segments", flow), end_ns),
            closed_ns,
        )
        for flow in group.flows
    )


def _until(rows: Rows, end_ns: int | None) -> Rows:
    return rows if end_ns is None else rows[rows["time_ns"] <= end_ns]


def _lifetime(flow: int, options: Rows, segments: Rows, closed_ns: int | None) -> Lifetime:
    shaking = options["packet"][(options["subtype"] == MP_CAPABLE) | (options["subtype"] == MP_JOIN)]
    if not len(shaking):
        return Lifetime(flow, None, 0, None, None)
    # both columns ascend; np.isin would sort them, which takes most of the time where connections are many
    place = np.searchsorted(shaking, segments["packet"])
    is_shaking = shaking[np.minimum(place, len(shaking) - 1)] == segments["packet"]
    syns = segments[(segments["flags"] & (SYN | ACK) == SYN) & is_shaking]
    if not len(syns):
        return Lifetime(flow, None, 0, None, None)
    opener = int(syns["direction"][0])
    later = segments["flags"] & (SYN | RST) == 0
    quiet = segments[later]
    third = quiet["time_ns"][(quiet["direction"] == opener) & is_shaking[later]]
    joined_ns = lost_ns = None
    if len(third):
        answers = quiet["time_ns"][(quiet["direction"] != opener) & (quiet["time_ns"] >= third[0])]
        joined_ns = int(answers[0]) if len(answers) else None
    if joined_ns is not None:
        lost_ns = _lost_ns(segments, closed_ns)
    return Lifetime(flow, int(syns["time_ns"][0]), len(syns), joined_ns, lost_ns)


def _lost_ns(segments: Rows, closed_ns: int | None) -> int | None:
    ends = segments["time_ns"][segments["flags"] & (FIN | RST) > 0]
    if len(ends):
        return int(ends[0]) if closed_ns is None or ends[0] < closed_ns else None
    for direction in (0, 1):
        mine = segments["direction"] == direction
        heard = segments["time_ns"][~mine]
        last_ns = int(heard[-1]) if len(heard) else 0
        again = segments["time_ns"][mine & (segments["is_retransmission"] > 0) & (segments["time_ns"] > last_ns)]
        if len(again) >= UNANSWERED and (closed_ns is None or last_ns < closed_ns):
            return last_ns
    return None


def addresses_announced(capture: Capture, group: SubflowGroup) -> dict[str, int]:
    """Address -> time of the first ADD_ADDR for it that is not an echo (RFC 8684 3.4.1)."""
    options = rows_of_flows(capture, "mptcp_options", group.flows)
    announced = options[(options["subtype"] == ADD_ADDR) & (options["flags"] & ECHO == 0) & (options["family"] != 0)]
    first_ns: dict[str, int] = {}
    for row in announced:  # one or two an address
        first_ns.setdefault(address_text(bytes(row["address"])), int(row["time_ns"]))
    return first_ns
