"""Captures in, numbers out: the only part of netwarp that looks into packets.

`analyze_cell` turns a cell's raw files into derived/*.json; `analyze_captures` summarises any captures;
`read_captures` gives the tables themselves. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from .capture import Capture, read_captures
from .cell import analyze_cell
from .join import Join, join_captures
from .point import missing_raw
from .summary import FileSummary, analyze_captures, summarise_points

__all__ = [
    "Capture",
    "FileSummary",
    "Join",
    "analyze_captures",
    "analyze_cell",
    "join_captures",
    "missing_raw",
    "read_captures",
    "summarise_points",
]
