"""Reads capture files and finds packets, connections and noteworthy events in them. Knows nothing of cells or
experiments.

`summarise_points` summarises captures of any origin; `read_captures` gives the tables. Definitions: docs/metrics.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .capture import Capture, read_captures
from .summary import FileSummary, summarise_points

if TYPE_CHECKING:
    from .join import Join, join_captures

__all__ = [
    "Capture",
    "FileSummary",
    "Join",
    "join_captures",
    "read_captures",
    "summarise_points",
]


def __getattr__(name: str) -> Any:
    """Imports the functions that join captures when they are first used."""
    if name not in ("Join", "join_captures"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import join

    return getattr(join, name)
