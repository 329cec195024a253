"""Sentences about what is missing, cut or unreadable in a capture file, for every report made from one."""

from __future__ import annotations

from ..core.units import counted
from .capture import Capture

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
        "backwards",
        "record has an earlier time than the one before: results that depend on order are wrong (reordercap sorts)",
        "records have an earlier time than the one before: results that depend on order are wrong (reordercap sorts)",
    ),
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
"""Columns of the sources table, and what is said of one record and of several."""


def capture_notes(capture: Capture, source: int) -> list[str]:
    """Sentences about file `source`: what is missing, cut, unreadable or out of order in it. Empty: nothing."""
    row = capture.sources[source]
    notes = [capture.trouble[source]] if capture.trouble[source] else []
    for column, singular, plural in COUNTED:
        if row[column]:
            notes.append(counted(int(row[column]), singular, plural))
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
