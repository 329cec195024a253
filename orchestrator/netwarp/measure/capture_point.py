"""A capture point of a cell: all captured interfaces of one node, read as one."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ..captures.capture import Capture, read_captures
from ..captures.native import Bools, Rows
from ..core.errors import CaptureError
from ..core.types import Cell
from ..store import compressed
from ..store.run_dir import CellDir

CAPTURE_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
"""The name of a capture without its suffix."""
HOST_TABLES = ("packets", "segments", "chunks", "sacks", "blocks", "inits", "mptcp_options", "datagrams", "quic")


@dataclasses.dataclass(frozen=True)
class CapturePoint:
    """The tables of one node's captures. `links[i]`: the link that source i captured."""

    node: str
    links: tuple[str, ...]
    capture: Capture

    @functools.cached_property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Both addresses of every path row, as text."""
        return tuple(
            (self.capture.address(path, 0), self.capture.address(path, 1)) for path in range(len(self.capture.paths))
        )

    def between(self, rows: Rows, source: str, destination: str) -> Bools:
        """Which rows of a table of packets are of those from one address to the other."""
        mine = np.zeros(len(rows), dtype=np.bool_)
        for number, ends in enumerate(self.addresses):
            if set(ends) == {source, destination}:  # path direction 0 is from its first address
                mine |= (rows["path"] == number) & (rows["path_direction"] == ends.index(source))
        return mine


def captured_links(cell: Cell, node: str) -> list[str]:
    """The links of a node that are captured, in the order in which packets of equal times are read: on the virtual
    clock a host answers in no time, so a link by which a flow comes in stands before one by which only answers leave.
    """
    links = [capture.link for capture in cell.captures if capture.node == node]
    for flow in cell.flows:
        for path in flow.paths:
            come, leave = path.receiver_link, path.back_link
            if flow.receiver == node and leave in links and come in links and links.index(come) > links.index(leave):
                links.remove(come)
                links.insert(links.index(leave), come)
    return links


def capture_file(cell_dir: Path, node: str, link: str) -> Path | None:
    """The path of capture/<node>-<link>.pcap, plain or compressed; None if neither exists."""
    return capture_named(cell_dir, f"{node}-{link}")


def capture_named(cell_dir: Path, name: str) -> Path | None:
    """The same by the whole name, which a file from elsewhere may have said."""
    if not CAPTURE_NAME.fullmatch(name):
        return None
    for suffix in (".pcap.zst", ".pcap", ".pcap.gz"):
        path = cell_dir / "capture" / f"{name}{suffix}"
        if path.exists():
            return path
    return None


def missing_raw(cell: Cell, directory: CellDir) -> list[str]:
    """Names (in the cell's directory) of raw files that the analysis of a finished cell needs and that do not exist."""
    needed = [directory.init_log]
    needed += [
        directory.apps / f"{flow.name}.{role}.ndjson"
        for flow in cell.flows
        if flow.program is None
        for role in ("sender", "receiver")
    ]
    missing = [str(path.relative_to(directory.root)) for path in needed if not compressed.exists(path)]
    return missing + [
        f"capture/{capture.node}-{capture.link}.pcap"
        for capture in cell.captures
        if capture_file(directory.root, capture.node, capture.link) is None
    ]


def read_point(
    cell_dir: Path, node: str, links: Sequence[str], *, host: bool, unfinished: bool = False, more: Sequence[str] = ()
) -> CapturePoint:
    """Read all captures of a node. `host`: fill the tables that flows are measured from; a router sees packets twice,
    so only its totals are kept. unfinished: TCP checksums may be left to a network card. more: tables to fill, too.
    Raises CaptureError if a capture is missing or cannot be read.
    """
    files = []
    for link in links:
        path = capture_file(cell_dir, node, link)
        if path is None:
            raise CaptureError(f"capture/{node}-{link}.pcap is missing")
        files.append(path)
    tables = tuple(dict.fromkeys((*(HOST_TABLES if host else ()), *more)))
    return CapturePoint(node, tuple(links), read_captures(files, tables, checksums=True, unfinished=unfinished))
