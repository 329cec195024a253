"""Captures in, numbers out: the only part of netwarp that looks into packets.

`analyze_cell` turns a cell's raw files into derived/*.json; `analyze_captures` summarises any captures;
`read_captures` gives the tables themselves. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from .capture import Capture, read_captures
from .cell import analyze_cell
from .summary import Summary, analyze_captures

__all__ = ["Capture", "Summary", "analyze_captures", "analyze_cell", "read_captures"]
