"""Capture files -> packets, connections and findings. Knows nothing of cells or experiments.

`analyze_captures` summarises captures of any origin; `read_captures` gives the tables. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from .capture import Capture, read_captures
from .join import Join, join_captures
from .summary import FileSummary, analyze_captures, summarise_points

__all__ = [
    "Capture",
    "FileSummary",
    "Join",
    "analyze_captures",
    "join_captures",
    "read_captures",
    "summarise_points",
]
