"""What a capture could not tell: for every report that is made from one."""

from __future__ import annotations

from .capture import Capture


def capture_notes(capture: Capture, source: int) -> list[str]:
    """Sentences about file `source`: what is missing, cut, unreadable or out of order in it. Empty: nothing."""
    row = capture.sources[source]
    notes = [capture.trouble[source]] if capture.trouble[source] else []
    stranded = int(row["fragments"]) - int(row["joined"])
    for count, text in (
        (row["truncated"], "packets were captured shorter than they were (snaplen)"),
        (
            row["unseen_bytes"],
            "bytes of SCTP packets lie beyond the snaplen: chunks there are in no number",
        ),
        (row["malformed"], "packets hold a length that cannot be right"),
        (row["reassembled"], "datagrams came in IP fragments and were put together"),
        (stranded, "IP fragments belong to datagrams that were never whole here; they are in no flow"),
        (
            row["backwards"],
            "records go back in time: what depends on order is wrong by as much (Wireshark's reordercap sorts)",
        ),
        (row["untimed"], "records have no time; that of the record before stands in"),
        (row["bad_checksum"], "packets have a wrong checksum and were not interpreted"),
        (row["other"], "frames are neither IP nor ARP"),
    ):
        if count:
            notes.append(f"{count} {text}")
    for number, one in enumerate(capture.interfaces):
        if one["source"] != source:
            continue
        name = capture.interface_name(number) or f"{number}"
        if not one["readable"]:
            notes.append(
                f"interface {name}: link type {one['link_type']} cannot be read, "
                f"so its {one['packets']} packets are only counted"
            )
        if one["dropped"]:
            notes.append(f"interface {name}: {one['dropped']} packets were dropped while capturing")
        if one["malformed"]:
            notes.append(f"interface {name}: its description contradicts itself, so its times may be wrong")
    return notes
