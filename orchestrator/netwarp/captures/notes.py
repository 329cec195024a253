"""Sentences about what is missing, cut or unreadable in a capture file, for every report made from one."""

from __future__ import annotations

from ..core.units import counted
from .capture import Capture


def capture_notes(capture: Capture, source: int) -> list[str]:
    """Sentences about file `source`: what is missing, cut, unreadable or out of order in it. Empty: nothing."""
    row = capture.sources[source]
    notes = [capture.trouble[source]] if capture.trouble[source] else []
    stranded = int(row["fragments"]) - int(row["joined"])
    for count, singular, plural in (
        (
            row["truncated"],
            "packet was captured shorter than it was (snaplen)",
            "packets were captured shorter than they were (snaplen)",
        ),
        (
            row["unseen_bytes"],
            "byte of SCTP packets lies beyond the snaplen: chunks there are in no number",
            "bytes of SCTP packets lie beyond the snaplen: chunks there are in no number",
        ),
        (
            row["malformed"],
            "packet holds a length that cannot be right",
            "packets hold a length that cannot be right",
        ),
        (
            row["reassembled"],
            "datagram came in IP fragments and was put together",
            "datagrams came in IP fragments and were put together",
        ),
        (
            stranded,
            "IP fragment belongs to a datagram that was never whole here; it is in no flow",
            "IP fragments belong to datagrams that were never whole here; they are in no flow",
        ),
        (
            row["backwards"],
            "record goes back in time: what depends on order is wrong by as much (Wireshark's reordercap sorts)",
            "records go back in time: what depends on order is wrong by as much (Wireshark's reordercap sorts)",
        ),
        (
            row["untimed"],
            "record has no time; that of the record before stands in",
            "records have no time; that of the record before stands in",
        ),
        (
            row["bad_checksum"],
            "packet has a wrong checksum and was not interpreted",
            "packets have a wrong checksum and were not interpreted",
        ),
        (row["other"], "frame is neither IP nor ARP", "frames are neither IP nor ARP"),
    ):
        if count:
            notes.append(counted(int(count), singular, plural))
    for number, interface in enumerate(capture.interfaces):
        if interface["source"] != source:
            continue
        name = capture.interface_name(number) or f"{number}"
        if not interface["readable"]:
            notes.append(
                f"interface {name}: link type {interface['link_type']} cannot be read, "
                f"so its {counted(int(interface['packets']), 'packet is', 'packets are')} only counted"
            )
        if interface["dropped"]:
            dropped = counted(int(interface["dropped"]), "packet was", "packets were")
            notes.append(f"interface {name}: {dropped} dropped while capturing")
        if interface["malformed"]:
            notes.append(f"interface {name}: its description contradicts itself, so its times may be wrong")
    return notes
