"""A read capture point: its tables."""

from __future__ import annotations

import dataclasses
import ipaddress
import os
from collections.abc import Sequence

from .native import CHECKSUMS, Handle, Rows

TOTAL_TABLES = ("sources", "interfaces", "paths", "flows", "flow_paths")
ROW_TABLES = ("packets", "segments", "chunks", "sacks", "blocks", "inits", "addresses", "causes", "mptcp_options")
"""What is kept unless asked otherwise: all but `identities`."""


@dataclasses.dataclass(frozen=True)
class Capture:
    """The tables of one capture point; columns and units: docs/metrics.md. `trouble`: one text a file, "" = clean."""

    files: tuple[str, ...]
    trouble: tuple[str, ...]
    sources: Rows
    interfaces: Rows
    paths: Rows
    flows: Rows
    flow_paths: Rows
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

    def address(self, path: int, end: int) -> str:
        """The address at end 0 (the source of the path's first packet) or 1 of a path, as text."""
        return address_text(bytes(self.paths["b" if end else "a"][path]))

    def interface_name(self, interface: int) -> str:
        """An interface's name as the capture tells it (16 bytes of it); "" if it does not."""
        return bytes(self.interfaces["name"][interface]).rstrip(b"\0").decode(errors="replace")


def address_text(sixteen: bytes) -> str:
    """An address column's 16 bytes as text; IPv4 (::ffff:a.b.c.d) dotted."""
    address = ipaddress.IPv6Address(sixteen)
    return str(address.ipv4_mapped or address)


def read_captures(
    files: Sequence[str | os.PathLike[str]],
    tables: Sequence[str] = ROW_TABLES,
    *,
    checksums: bool = False,
) -> Capture:
    """Read the captures of ONE capture point (all interfaces of one node) in one pass, merged by time.

    files: pcap or pcapng, also gzip or zstd of them. tables: the row tables wanted (the others come back empty).
    checksums: verify TCP checksums and SCTP CRC32c and leave packets that fail uninterpreted (packets[marks] & 32).
    Raises CaptureError naming the file. A file cut off is read as far as it is whole, and `trouble` says so.
    """
    handle = Handle(files, tables, CHECKSUMS if checksums else 0)
    handle.read()
    return Capture(
        files=handle.files,
        trouble=tuple(handle.trouble(source) for source in range(len(handle.files))),
        **{name: handle.rows(name) for name in (*TOTAL_TABLES, *ROW_TABLES, "identities")},
    )
