"""What the protocol's analyser found, as a few lines: label and text. Only what is there; nothing is padded."""

from __future__ import annotations

from ..analysis.connection import Connection

Lines = list[tuple[str, str]]


def detail_lines(one: Connection) -> Lines:
    """For the terminal's block and the page's facts."""
    return []
