"""Capture files -> packets, connections and findings. Knows nothing of cells or experiments.

`summarise_points` summarises captures of any origin; `read_captures` gives the tables. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from .capture import Capture, read_captures
from .join import Join, join_captures
from .summary import FileSummary, summarise_points

__all__ = [
    "Capture",
    "FileSummary",
    "Join",
    "join_captures",
    "read_captures",
    "summarise_points",
]
