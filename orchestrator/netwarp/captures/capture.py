"""Reads the tables of one capture point from its files, selects rows by flow, and gives capture points short names."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core.errors import CaptureError
from ..core.limits import limits
from .arrays import spread
from .native import CHECKSUMS, UNFINISHED, Bools, CoreHandle, Ints, Rows

TOTAL_TABLES = ("sources", "interfaces", "paths", "flows", "flow_paths", "tunnels", "conversations")
# The tables kept unless others are asked for: all but `identities`, `datagrams` and `quic`
ROW_TABLES = ("packets", "segments", "chunks", "sacks", "blocks", "inits", "addresses", "causes", "mptcp_options",
              "icmp_errors")  # fmt: skip
CLEAR_NS = 1_000_000  # Of a shorter round trip a host's own times are as large a part as the way
NEAR = 0.25  # A capture point nearer than this share of the round trip to one end counts as at that end
# Nothing outstanding for so long (TCP: and two round trips): neither pacing nor an own queue holds data back so
AT_REST_NS = 200_000_000
UNSEEN = 0.01  # With a larger share of the data missing from the capture it is not known what was outstanding
BLOCK = 8192  # Rows of which columns are copied together
IPV4_MAPPED = bytes(10) + b"\xff\xff"  # RFC 4291 2.5.5.2


@dataclasses.dataclass(frozen=True)
class Capture:
    """The tables of one capture point; columns and units: docs/metrics.md. `trouble`: one text per file, why it was not
    read to a clean end; "" if it was. captured_at: addresses of the host that captured, as somebody said.
    """

    files: tuple[str, ...]
    trouble: tuple[str, ...]
    sources: Rows
    interfaces: Rows
    paths: Rows
    flows: Rows
    flow_paths: Rows
    tunnels: Rows
    conversations: Rows
    packets: Rows
    segments: Rows
    chunks: Rows
    sacks: Rows
    blocks: Rows
    inits: Rows
    addresses: Rows
    identities: Rows
    causes: Rows
    mptcp_options: Rows
    datagrams: Rows
    quic: Rows
    icmp_errors: Rows
    captured_at: tuple[str, ...] = ()

    def captured_end(self, flow: int) -> int | None:
        """The end of a connection that has one of the addresses in `captured_at`; None: neither, or both."""
        if not self.captured_at:
            return None
        table = self.flow_paths[self.flow_paths["flow"] == flow]
        ends = {
            end
            for path, turned in zip(table["path"].tolist(), table["path_direction"].tolist(), strict=True)
            for end in (0, 1)
            if self.address(path, turned ^ end) in self.captured_at
        }
        return ends.pop() if len(ends) == 1 else None

    @property
    def first_ns(self) -> int:
        """The time of the first packet; 0 if there is none."""
        there = self.sources["packets"] > 0
        return int(self.sources["first_ns"][there].min()) if there.any() else 0

    def address(self, path: int, end: int) -> str:
        """The address of a path at end 0 (the source of its first packet) or 1, as text."""
        return address_text(bytes(self.paths["b" if end else "a"][path]))

    def interface_name(self, interface: int) -> str:
        """The name of an interface as the capture has it (its first 16 bytes); "" if it has none."""
        return bytes(self.interfaces["name"][interface]).rstrip(b"\0").decode(errors="replace")


def address_text(sixteen: bytes) -> str:
    """The 16 bytes of an address column as text; an IPv4 address (stored as ::ffff:a.b.c.d) with dots."""
    if sixteen.startswith(IPV4_MAPPED):
        return "%d.%d.%d.%d" % tuple(sixteen[12:])  # noqa: UP031  twice as fast as any other way
    import ipaddress  # here: few captures have any

    return str(ipaddress.IPv6Address(sixteen))


def read_captures(
    files: Sequence[str | os.PathLike[str]],
    tables: Sequence[str] = ROW_TABLES,
    *,
    checksums: bool = False,
    unfinished: bool = False,
    packet_filter: str | None = None,
) -> Capture:
    """Read the captures of ONE capture point (all interfaces of one node) in one pass, merged by time.

    files: pcap or pcapng, also compressed (gzip, zstd, xz, bzip2, lz4). tables: the row tables to fill (the others come
    back empty). checksums: verify TCP checksums and SCTP CRC32c, and leave packets that fail undecoded (packets[marks]
    & 32). unfinished: a TCP checksum that is the sum of its pseudo header counts as right: the kernel leaves the rest
    to a network card. packet_filter: a filter in libpcap's language; packets that do not match are skipped as if the
    files lacked them.

    Raises CaptureError naming the file. Of a file that is cut off all whole records are read, and `trouble` says so.
    """
    options = (CHECKSUMS if checksums else 0) | (UNFINISHED if unfinished else 0)
    handle = CoreHandle(files, tables, options, packet_filter=packet_filter)
    if handle.read(limits().cell_packets):
        raise CaptureError(f"{handle.files[0]}: has {limits().beyond('cell_packets')}")
    return Capture(
        files=handle.files,
        trouble=tuple(handle.trouble(source) for source in range(len(handle.files))),
        captured_at=(),
        **{name: handle.rows(name) for name in (*TOTAL_TABLES, *ROW_TABLES, "identities", "datagrams", "quic")},
    )


def rows_of_flow(capture: Capture, table: str, flow: int) -> Rows:
    """The rows of a table that belong to a flow, in the order of the capture. The table needs a column `flow`.

    If all rows are of that flow the result is the table itself, not a copy. The sorted order is kept with the capture,
    so that calls for many flows sort once.
    """
    rows: Rows = getattr(capture, table)
    if len(capture.flows) == 1 and (not len(rows) or table != "packets"):
        return rows if flow == 0 else rows[:0]
    return take_rows(rows, _flow_order(capture, table).places(flow))


def rows_of_flows(capture: Capture, table: str, flows: Sequence[int]) -> Rows:
    """The rows of several flows together, in the order of the capture."""
    rows: Rows = getattr(capture, table)
    if not flows:
        return rows[:0]
    if len(flows) == 1:
        return rows_of_flow(capture, table, flows[0])
    order = _flow_order(capture, table)
    return take_rows(rows, np.sort(np.concatenate([order.places(flow) for flow in flows])))


def _flow_order(capture: Capture, table: str) -> FlowOrder:
    known: dict[str, FlowOrder] = vars(capture).setdefault("rows_by_flow", {})
    if table not in known:
        known[table] = FlowOrder(getattr(capture, table)["flow"], len(capture.flows))
    return known[table]


class FlowOrder:
    """Indices of a table's rows sorted by flow, computed once; rows of a flow keep the order of the table."""

    def __init__(self, flow: Ints, flows: int) -> None:
        self.order = stable_order(np.minimum(flow, flows))
        self.edges = np.concatenate([[0], np.cumsum(np.bincount(flow[flow < flows], minlength=flows))])

    def places(self, flow: int) -> Ints:
        """Row indices of one flow."""
        return self.order[self.edges[flow] : self.edges[flow + 1]]

    def places_of(self, flows: Ints) -> tuple[Ints, list[int]]:
        """Row indices of several flows, flow by flow, and the offsets at which each flow's indices begin (with the end
        of the last).
        """
        count = self.edges[flows + 1] - self.edges[flows]
        _, places = spread(self.edges[flows], count)
        return self.order[places], [0, *np.cumsum(count).tolist()]


def stable_order(numbers: Ints) -> Ints:
    """Indices that sort 32-bit numbers stably. It sorts the lower and then the upper 16 bits, for which NumPy uses a
    radix sort.
    """
    order = np.argsort((numbers & 0xFFFF).astype(np.uint16), kind="stable")
    high = (numbers >> 16).astype(np.uint16)
    return order[np.argsort(high[order], kind="stable")] if high.any() else order


def take_rows(rows: Rows, places: Ints) -> Rows:
    """The rows of a table at these indices. It copies them as words, several times faster than NumPy copies
    structures.
    """
    if rows.itemsize % 8 or not rows.flags.c_contiguous:
        return rows[places]
    words = rows.view(np.uint64).reshape(len(rows), rows.itemsize // 8)
    return words.take(places, axis=0).view(rows.dtype).reshape(len(places))


def rows_where(rows: Rows, mask: Bools) -> Rows:
    """The rows of a table where the mask is true; a view of the table if they follow each other there."""
    places = np.flatnonzero(mask)
    if not len(places):
        return rows[:0]
    first, end = int(places[0]), int(places[-1]) + 1
    return rows[first:end] if len(places) == end - first else take_rows(rows, places)


def columns_of(rows: Rows, kinds: Mapping[str, Any], places: Ints | None = None) -> dict[str, Rows]:
    """Columns of a table (of its rows at these places) as arrays of these types, several times faster than rows. They
    are copied block by block: all columns of a block but the first are read from the processor's cache.
    """
    count = len(rows if places is None else places)
    taken = {name: np.empty(count, dtype=kind) for name, kind in kinds.items()}
    for begin in range(0, count, BLOCK):
        end = begin + BLOCK
        part = rows[begin:end] if places is None else take_rows(rows, places[begin:end])
        for name, values in taken.items():
            values[begin:end] = part[name]
    return taken


def point_names(paths: Sequence[str]) -> list[str]:
    """Short unique names for capture points: the file names without suffixes, with as many parent folders as uniqueness
    needs.
    """
    parts = [[*Path(path).parts[:-1], _stem(Path(path).name)] for path in paths]
    for depth in range(1, max(len(path) for path in parts) + 1):
        names = ["/".join(path[-depth:]) for path in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _stem(name: str) -> str:
    for suffix in (".zst", ".gz", ".xz", ".bz2", ".lz4", ".pcapng", ".pcap", ".cap"):
        name = name.removesuffix(suffix) or name
    return name
