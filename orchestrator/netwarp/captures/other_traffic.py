"""The packets of a capture that are in no TCP connection and no SCTP association, by protocol and conversation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .capture import Capture
from .native import Rows

# IP protocol numbers (IANA); TCP and SCTP: packets whose header was not captured or contradicts itself
NAMES = {
    1: "ICMP", 2: "IGMP", 6: "TCP without a connection", 17: "UDP", 33: "DCCP", 47: "GRE", 50: "ESP", 51: "AH",
    58: "ICMPv6", 89: "OSPF", 103: "PIM", 112: "VRRP", 132: "SCTP without an association", 136: "UDP-Lite",
}  # fmt: skip
LARGEST = 10


def other_traffic(capture: Capture) -> list[dict[str, Any]]:
    """One row a protocol, the most packets first: its packets, bytes, number of conversations, and the LARGEST of
    them.
    """
    rows = capture.conversations
    found = []
    for number in sorted(set(rows["protocol"].tolist())):
        mine = rows[rows["protocol"] == number]
        largest = mine[np.argsort(-mine["ip_bytes"].sum(axis=1).astype(np.int64), kind="stable")[:LARGEST]]
        found.append(
            {
                "protocol": NAMES.get(number, f"IP protocol {number}"),
                "packets": int(mine["packets"].sum()),
                "ip_bytes": int(mine["ip_bytes"].sum()),
                "conversations": len(mine),
                "largest": list(conversations_of(capture, largest)),
            }
        )
    if arp := int(capture.sources["arp"].sum()):
        found.append({"protocol": "ARP", "packets": arp, "ip_bytes": 0, "conversations": 0, "largest": []})
    return sorted(found, key=lambda row: -row["packets"])


def conversations_of(capture: Capture, rows: Rows) -> Iterator[dict[str, Any]]:
    """Rows of the conversations table as dictionaries; lists are by direction, from the first packet's source on."""
    for row in rows:
        ends = [capture.address(int(row["path"]), end) for end in (0, 1)]
        ports = row["port"].tolist()
        if any(ports):
            ends = [f"[{end}]:{port}" if ":" in end else f"{end}:{port}" for end, port in zip(ends, ports, strict=True)]
        yield {
            "protocol": NAMES.get(int(row["protocol"]), f"IP protocol {row['protocol']}"),
            "ends": ends,
            "packets": row["packets"].tolist(),
            "ip_bytes": row["ip_bytes"].tolist(),
            "first_s": int(row["first_ns"]) / 1e9,
            "duration_s": int(row["last_ns"] - row["first_ns"]) / 1e9,
        }
