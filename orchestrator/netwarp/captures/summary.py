"""The summary of one capture point: connections, facts, notes and findings (`netwarp analyze FILE...`)."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.errors import CaptureError
from ..core.limits import limits
from ..core.numbers import fixed, in_short
from ..core.units import counted
from .capture import Capture, point_names
from .connection import Connections, multipath_of
from .findings import file_findings
from .native import Rows
from .stream import PACKETS_IN_MEMORY, SERIES_FLOWS, CapturedStream, read_stream
from .viewpoint import Viewpoint, viewpoint

if TYPE_CHECKING:
    from .mptcp import MptcpConnection

# Connections per file that are analysed in detail, the largest first; of the others only counts are kept
DETAILED_FLOWS = 50
LINK_TYPES = {
    0: "BSD loopback", 1: "Ethernet", 9: "PPP", 10: "FDDI", 12: "raw IP", 14: "raw IP", 50: "PPP in HDLC", 51: "PPPoE",
    100: "LLC/SNAP", 101: "raw IP", 104: "Cisco HDLC", 105: "802.11", 108: "OpenBSD loopback", 113: "Linux cooked",
    119: "802.11 with Prism header", 127: "802.11 with radiotap", 163: "802.11 with AVS header", 192: "PPI",
    204: "PPP with direction", 228: "raw IPv4", 229: "raw IPv6", 239: "NFLOG", 258: "PKTAP", 276: "Linux cooked v2",
}  # fmt: skip
COMPRESSIONS = ("none", "gzip", "zstd", "xz", "bzip2", "lz4")
SUMS = ("packets", "frame_bytes", "file_bytes", "ipv4", "ipv6", "arp", "other", "truncated", "malformed", "fragments",
        "reassembled", "backwards", "untimed", "unseen_bytes", "copies", "tunnelled")  # fmt: skip


@dataclasses.dataclass(frozen=True)
class FileSummary:
    """The summary of one capture point. name: short, unique among the points given together; facts: about its files;
    viewpoint: where and how it was taken; notes: what could not be known, and why; findings: what stands out;
    connections: largest first; multipath: MPTCP connections, whose subflows are in `connections`; stream: the data it
    was computed from.
    """

    name: str
    files: tuple[str, ...]
    facts: dict[str, Any]
    viewpoint: Viewpoint
    notes: tuple[str, ...]
    findings: tuple[str, ...]
    connections: Connections
    multipath: tuple[MptcpConnection, ...]
    stream: CapturedStream

    @property
    def capture(self) -> Capture:
        """The tables; the row tables are empty unless the rows of every packet were in memory."""
        return self.stream.capture

    @property
    def first_ns(self) -> int:
        """The time from which the times of connections count, ns since 1970."""
        return self.stream.t0_ns

    def as_json(self, *, flows_in_parts: bool = False) -> dict[str, Any]:
        """The keys of docs/analyze.md. flows_in_parts: `flows` is an iterator, so that not all flows are in memory at
        once.
        """
        flows = self.connections.as_json()
        return {
            "name": self.name,
            "files": list(self.files),
            **self.facts,
            "viewpoint": self.viewpoint.as_json(),
            "tunnels": tunnels_of(self.capture),
            "other_traffic": other_traffic(self.capture),
            "notes": list(self.notes),
            "findings": list(self.findings),
            "flows": flows if flows_in_parts else list(flows),
            "mptcp": [connection.as_json() for connection in self.multipath],
        }


def summarise_points(
    points: Sequence[Sequence[str | os.PathLike[str]]],
    *,
    full: bool = False,
    packet_filter: str | None = None,
    flow: int | None = None,
    stop_fd: int | None = None,
    captured_at: Sequence[str] = (),
    explained: int = 0,
    refused: Callable[[CaptureError], None] | None = None,
) -> tuple[FileSummary, ...]:
    """Summarise captures of any origin. points: for each capture point the files of its interfaces, which are merged
    by time.

    Of more than a million packets only totals and binned series are kept, unless `full`, which also analyses every
    connection. packet_filter: a filter in libpcap's language; other packets are skipped. flow: analyse only the
    connection of that number, with the rows of all its packets in memory. stop_fd: reading ends when this descriptor is
    readable (for a pipe; the packets until then are summarised). captured_at: addresses of the host that captured,
    where the handshakes do not show it. explained: so many connections are for `explain`, and of more packets than its
    limit CaptureError is raised. A file that is cut off is used up to its end, and a note says so. refused: called with
    each point that cannot be read, and the others are summarised; without it the first such point raises CaptureError.
    """
    names = iter(point_names([str(file) for point in points for file in point]))
    summaries = []
    for point in points:
        name = "+".join(next(names) for _ in point)
        try:
            summaries.append(_summarise(point, name, full, packet_filter, flow, stop_fd, captured_at, explained))
        except CaptureError as error:
            if refused is None:
                raise
            refused(error)
    return tuple(summaries)


def _summarise(
    files: Sequence[str | os.PathLike[str]],
    name: str,
    full: bool,
    packet_filter: str | None,
    flow: int | None,
    stop_fd: int | None,
    captured_at: Sequence[str],
    explained: int,
) -> FileSummary:
    keep = limits().explained_packets if explained else None if full or flow else PACKETS_IN_MEMORY
    stream = read_stream(
        files, keep=keep, packet_filter=packet_filter, stop_fd=stop_fd, captured_at=captured_at, or_none=explained > 0
    )
    if explained and not stream.whole:
        raise CaptureError(
            f"{name}: has {limits().beyond('explained_packets')}; --filter 'port 5001' reads only some of them"
        )
    capture, whole = stream.capture, stream.whole
    if flow is not None and not 0 < flow <= len(capture.flows):
        raise CaptureError(f"{name}: no flow {flow} in it: it has {counted(len(capture.flows), 'connection')}")
    every = (full and not explained) or flow
    detailed = len(capture.flows) if every else min(len(capture.flows), max(DETAILED_FLOWS, explained))
    connections = Connections(stream, detailed, flow)
    multipath = multipath_of(capture, connections.numbers.tolist(), stream.t0_ns) if whole else ()
    notes = _notes(stream, detailed, packet_filter)
    if flow is not None:
        notes += (f"only flow {flow} of {len(capture.flows)} is looked at (--flow)",)
        multipath = tuple(multi for multi in multipath if flow in multi.flows)
    return FileSummary(
        name=name,
        files=capture.files,
        facts=_facts(stream),
        viewpoint=viewpoint(stream, connections),
        notes=notes,
        findings=file_findings(connections, multipath),
        connections=connections,
        multipath=multipath,
        stream=stream,
    )


def _facts(stream: CapturedStream) -> dict[str, Any]:
    capture, sources, first_ns = stream.capture, stream.capture.sources, stream.t0_ns
    link_types = sorted(set(capture.interfaces["link_type"].tolist()))
    there = sources[sources["packets"] > 0]
    span_ns = int(there["last_ns"].max() - there["first_ns"].min()) if len(there) else 0
    return {
        **{name: int(sources[name].sum()) for name in SUMS},
        "max_frame_bytes": int(sources["max_frame_bytes"].max()),
        "first_s": first_ns / 1e9,
        "bin_s": stream.bin_ns / 1e9,
        "duration_s": span_ns / 1e9,
        "link_types": [LINK_TYPES.get(link_type, f"link type {link_type}") for link_type in link_types],
        "time_resolution": "ns" if sources["nanosecond"].all() else "us",
        "compression": "+".join(
            COMPRESSIONS[compression] for compression in sorted(set(sources["compression"].tolist()))
        ),
        "cut_off": bool(sources["cut_off"].any()),
    }


def _notes(stream: CapturedStream, detailed: int, packet_filter: str | None) -> tuple[str, ...]:
    capture = stream.capture
    notes: list[str] = []
    if packet_filter is not None:
        notes.append(f"only packets that match the filter are counted: {packet_filter}")
    for source, file in enumerate(capture.files):
        of = f"{os.path.basename(file)}: " if len(capture.files) > 1 else ""
        notes += [of + note for note in capture_notes(capture, source)]
    if not stream.whole:
        notes.append(
            f"more than {fixed(PACKETS_IN_MEMORY, 0)} packets: totals and binned series only (--full: everything)"
        )
    if detailed < len(capture.flows):
        notes.append(
            f"the {detailed} largest of {len(capture.flows)} connections are looked at one by one (--full: all)"
        )
    if len(stream.flows) < len(capture.flows):
        which = "largest" if stream.whole else "first"
        notes.append(f"goodput and series by time are of the {which} {fixed(SERIES_FLOWS, 0)} connections only")
    if not capture.sources["packets"].any():
        notes.append("no packet in it" if packet_filter is None else "no packet in it matches the filter")
    elif not len(capture.flows):
        cut = int(capture.sources["truncated"].sum())
        notes.append("no TCP connection and no SCTP association in it" + (
            f", as far as its bytes go: of {cut} packets the snaplen may have cut off the transport header"
            if cut else ""))  # fmt: skip
    return tuple(notes)


# Columns of the sources table, and what is said of one record and of several
COUNTED = (
    ("truncated", "packet is truncated by the snaplen", "packets are truncated by the snaplen"),
    ("unseen_bytes", "byte of SCTP packets was not captured (snaplen): chunks in it are not counted",
     "bytes of SCTP packets were not captured (snaplen): chunks in them are not counted"),
    ("malformed", "packet has an invalid length field", "packets have an invalid length field"),
    ("reassembled", "datagram was reassembled from IP fragments", "datagrams were reassembled from IP fragments"),
    ("untimed", "record has no time: the time of the previous record is used",
     "records have no time: the time of the previous record is used"),
    ("bad_checksum", "packet has a wrong checksum and was ignored", "packets have a wrong checksum and were ignored"),
    ("other", "frame is neither IP nor ARP", "frames are neither IP nor ARP"),
)  # fmt: skip
TUNNELS = {1: "IP in IP", 2: "GRE", 3: "VXLAN", 4: "Geneve", 5: "GTP-U"}  # By `kind` of the tunnels table
TUNNELS_NAMED = 3


def capture_notes(capture: Capture, source: int) -> list[str]:
    """Sentences about file `source`: what is missing, cut, unreadable or out of order in it. Empty if nothing is."""
    row = capture.sources[source]
    notes = [capture.trouble[source]] if capture.trouble[source] else []
    notes += [counted(int(row[column]), one, several) for column, one, several in COUNTED if row[column]]
    if row["set_back_ns"]:
        notes.append(
            f"the capturing clock was set back by {in_short(int(row['set_back_ns']) / 1e9, 's')} or more: times after "
            "that are made to go on; how long the moment of the change lasted is unknown"
        )
    elif row["backwards"]:
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
    again = counted(copies, "packet is a copy", "packets are copies")
    return (
        f"{again} of one captured just before (at several interfaces, a mirror port, before and after a router): "
        "copies are left out of connections"
    )


def _tunnels(capture: Capture) -> str:
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


# IP protocol numbers (IANA); TCP and SCTP: packets whose header was not captured or contradicts itself
PROTOCOL_NAMES = {
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
                "protocol": PROTOCOL_NAMES.get(number, f"IP protocol {number}"),
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
            "protocol": PROTOCOL_NAMES.get(int(row["protocol"]), f"IP protocol {row['protocol']}"),
            "ends": ends,
            "packets": row["packets"].tolist(),
            "ip_bytes": row["ip_bytes"].tolist(),
            "first_s": int(row["first_ns"]) / 1e9,
            "duration_s": int(row["last_ns"] - row["first_ns"]) / 1e9,
        }
