"""ICMP errors about a connection's packets: who sent them, and what they say."""

from __future__ import annotations

from typing import Any

from .capture import Capture, address_text, rows_of_flow

NAMES = {
    4: {
        (3, 0): "network unreachable", (3, 1): "host unreachable", (3, 2): "protocol unreachable",
        (3, 3): "port unreachable", (3, 4): "fragmentation needed", (3, 5): "source route failed",
        (3, 6): "network unknown", (3, 7): "host unknown", (3, 9): "network administratively prohibited",
        (3, 10): "host administratively prohibited", (3, 13): "administratively prohibited",
        (11, 0): "time exceeded in transit", (11, 1): "reassembly time exceeded",
    },
    6: {
        (1, 0): "no route to destination", (1, 1): "administratively prohibited", (1, 2): "beyond scope of source",
        (1, 3): "address unreachable", (1, 4): "port unreachable", (1, 5): "source address failed policy",
        (1, 6): "reject route", (2, 0): "packet too big", (3, 0): "time exceeded in transit",
        (3, 1): "reassembly time exceeded", (4, 1): "next header unknown",
    },
}  # fmt: skip
TOO_BIG = ("fragmentation needed", "packet too big")
COPY_NS = 5_000_000
"""Equal errors about the same packet so close to each other are one, captured several times."""
MOST = 500


def icmp_events(capture: Capture, flow: int, t0_ns: int) -> list[dict[str, Any]]:
    """One event for each error: `what` icmp, `error` in words, `from` the host that sent it, `direction` of the packet
    that it quotes, `mtu_bytes` where it tells one. At most MOST.
    """
    events: list[dict[str, Any]] = []
    last_ns: dict[tuple[Any, ...], int] = {}
    for row in rows_of_flow(capture, "icmp_errors", flow):
        kind = (bytes(row["source"]), int(row["type"]), int(row["code"]), int(row["number"]), int(row["path"]))
        time_ns = int(row["time_ns"])
        if 0 <= time_ns - last_ns.get(kind, -COPY_NS) < COPY_NS:
            continue
        last_ns[kind] = time_ns
        names = NAMES[int(row["family"])]
        error = names.get(kind[1:3], f"type {kind[1]} code {kind[2]}")
        event = {
            "t_s": (time_ns - t0_ns) / 1e9,
            "what": "icmp",
            "direction": int(row["direction"]),
            "error": error,
            "from": address_text(kind[0]),
        }
        events.append(event | ({"mtu_bytes": int(row["mtu"])} if row["mtu"] else {}))
        if len(events) == MOST:
            break
    return events
