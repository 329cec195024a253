"""A capture point of a cell: all captured interfaces of one node, read as one."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from pathlib import Path

from ..errors import CaptureError
from .capture import Capture, read_captures

HOST_TABLES = ("packets", "segments", "chunks", "sacks", "blocks", "inits", "mptcp_options")


@dataclasses.dataclass(frozen=True)
class Point:
    """What one node's captures hold. `links[i]` is the link of source i."""

    node: str
    links: tuple[str, ...]
    capture: Capture

    @functools.cached_property
    def addresses(self) -> tuple[tuple[str, str], ...]:
        """Both addresses of every path row, as text."""
        return tuple(
            (self.capture.address(path, 0), self.capture.address(path, 1)) for path in range(len(self.capture.paths))
        )


def capture_file(cell_dir: Path, node: str, link: str) -> Path | None:
    """capture/<node>-<link>.pcap, plain or compressed; None if there is neither."""
    for suffix in (".pcap.zst", ".pcap", ".pcap.gz"):
        path = cell_dir / "capture" / f"{node}-{link}{suffix}"
        if path.exists():
            return path
    return None


def read_point(cell_dir: Path, node: str, links: Sequence[str], *, host: bool) -> Point:
    """Read all captures of a node. `host`: with the tables flows are measured by; a router's sees packets twice,
    so only its totals are kept. Raises CaptureError: one is missing, or cannot be read.
    """
    files = []
    for link in links:
        path = capture_file(cell_dir, node, link)
        if path is None:
            raise CaptureError(f"capture/{node}-{link}.pcap is missing")
        files.append(path)
    return Point(node, tuple(links), read_captures(files, HOST_TABLES if host else (), checksums=True))
