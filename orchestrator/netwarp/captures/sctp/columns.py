"""The chunks of an association as columns."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...core.wire import DATA, I_DATA
from ..native import Bools, Ints, Rows

# Columns that any question needs most of: taken together
USUAL = (
    *("time_ns", "tsn", "path", "packet", "user_bytes"),
    *("type", "flags", "direction", "is_retransmission", "on_other_path"),
)
BLOCK = 8192


class ChunkColumns:
    """Rows of the chunk table as columns. Each column is copied when it is first accessed; later queries on a
    contiguous column are several times faster than on rows of 56 bytes.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._taken: dict[str, Rows] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> Rows:
        if name not in self._taken:
            self._take(USUAL if name in USUAL else (name,))
        return self._taken[name]

    def _take(self, names: Sequence[str]) -> None:
        """Copies columns block by block, so that all columns but the first are read from the processor's cache."""
        taken = {name: np.empty(len(self), dtype=self.rows.dtype[name]) for name in names}
        for begin in range(0, len(self), BLOCK):
            rows = self.rows[begin : begin + BLOCK]
            for name, values in taken.items():
                values[begin : begin + BLOCK] = rows[name]
        self._taken |= taken

    @functools.cached_property
    def is_data(self) -> Bools:
        """Of each chunk, whether it is DATA or I-DATA."""
        is_data: Bools = (self["type"] == DATA) | (self["type"] == I_DATA)
        return is_data

    def of_type(self, *kinds: int) -> Ints:
        """Indices of the chunks of these types."""
        chosen = self["type"] == kinds[0]
        for kind in kinds[1:]:
            chosen |= self["type"] == kind
        return np.flatnonzero(chosen)


def columns(chunks: Rows | ChunkColumns) -> ChunkColumns:
    """The chunks as Columns, whether they are given as rows or as Columns."""
    return chunks if isinstance(chunks, ChunkColumns) else ChunkColumns(chunks)
