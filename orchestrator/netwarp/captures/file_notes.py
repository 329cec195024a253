"""Sentences about what is missing, cut or unreadable in a capture file. Every report made from a capture shows them."""

from __future__ import annotations

from typing import Any

from ..core.units import counted
from .capture import Capture

# Columns of the sources table, and what is said of one record and of several
COUNTED = (
    ("truncated", "packet is truncated by the snaplen", "packets are truncated by the snaplen"),
    (
        "unseen_bytes",
        "byte of SCTP packets was not captured (snaplen): chunks in it are not counted",
        "bytes of SCTP packets were not captured (snaplen): chunks in them are not counted",
    ),
    ("malformed", "packet has an invalid length field", "packets have an invalid length field"),
    ("reassembled", "datagram was reassembled from IP fragments", "datagrams were reassembled from IP fragments"),
    (
        "untimed",
        "record has no time: the time of the previous record is used",
        "records have no time: the time of the previous record is used",
    ),
    (
        "bad_checksum",
        "packet has a wrong checksum and was ignored",
        "packets have a wrong checksum and were ignored",
    ),
    ("other", "frame is neither IP nor ARP", "frames are neither IP nor ARP"),
)
TUNNELS = {1: "IP in IP", 2: "GRE", 3: "VXLAN", 4: "Geneve", 5: "GTP-U"}  # By `kind` of the tunnels table
TUNNELS_NAMED = 3


def capture_notes(capture: Capture, source: int) -> list[str]:
    """Sentences about file `source`: what is missing, cut, unreadable or out of order in it. Empty if nothing is."""
    row = capture.sources[source]
    notes = [capture.trouble[source]] if capture.trouble[source] else []
    for column, singular, plural in COUNTED:
        if row[column]:
            notes.append(counted(int(row[column]), singular, plural))
    if row["backwards"]:
        late = counted(
            int(row["backwards"]), "record has an earlier time than the one before",
            "records have an earlier time than the one before",
        )  # fmt: skip
        done = "all are sorted by time, and frames numbered in that order" if row["sorted"] else (
            "results that depend on order are wrong (reordercap sorts)")  # fmt: skip
        notes.append(f"{late}: {done}")
    if row["copies"]:
        notes.append(_copies(capture, int(row["copies"])))
    if row["tunnelled"]:
        packets = counted(int(row["tunnelled"]), "packet is in a tunnel", "packets are in tunnels")
        notes.append(f"{packets} ({_tunnels(capture)}): connections, addresses and bytes are those within")
    if incomplete := int(row["fragments"]) - int(row["joined"]):
        notes.append(
            f"{counted(incomplete, 'IP fragment belongs to an', 'IP fragments belong to')} incomplete "
            f"{'datagram' if incomplete == 1 else 'datagrams'}, not counted in any flow"
        )
    for number, interface in enumerate(capture.interfaces):
        if interface["source"] != source:
            continue
        name = capture.interface_name(number) or f"{number}"
        if not interface["readable"]:
            notes.append(
                f"interface {name}: link type {interface['link_type']} is not supported, "
                f"so its {counted(int(interface['packets']), 'packet is', 'packets are')} only counted"
            )
        if interface["dropped"]:
            dropped = counted(int(interface["dropped"]), "packet was", "packets were")
            notes.append(f"interface {name}: {dropped} dropped while capturing")
        if interface["malformed"]:
            notes.append(f"interface {name}: its description block is invalid, so its times may be wrong")
    return notes


def _copies(capture: Capture, copies: int) -> str:
    if capture.flows["copies"].any():
        equal = counted(copies, "packet equals", "packets equal")
        return f"{equal} one just before: duplicated on the way, or captured twice; they are counted as sent again"
    twice = counted(copies, "packet was", "packets were")
    return f"{twice} captured twice (a mirror port, before and after a router): the copies are left out of connections"


def _tunnels(capture: Capture) -> str:
    """The largest tunnels, and the number of further ones."""
    rows = tunnels_of(capture)
    named = [f"{row['kind']} between {row['ends'][0]} and {row['ends'][1]}" for row in rows[:TUNNELS_NAMED]]
    more = [f"{len(rows) - TUNNELS_NAMED} more"] if len(rows) > TUNNELS_NAMED else []
    return ", ".join(named + more)


def tunnels_of(capture: Capture) -> list[dict[str, Any]]:
    """Rows of the tunnels table as dictionaries, those with the most packets first; lists are by direction of
    `ends`.
    """
    rows = sorted(capture.tunnels, key=lambda row: -int(row["packets"].sum()))
    return [
        {
            "kind": TUNNELS[int(row["kind"])],
            "ends": [capture.address(int(row["path"]), end) for end in (0, 1)],
            **{name: row[name].tolist() for name in ("packets", "outer_bytes", "inner_bytes")},
        }
        for row in rows
    ]
