"""One TCP connection's segments as NumPy columns, one set per direction."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import numpy.typing as npt

from ...core.wire import FIN, RST, SYN
from ..arrays import before
from ..capture import columns_of, rows_where
from ..native import UNKNOWN, Bools, Ints, Rows

SACK_PERMITTED, SACK, TIMESTAMP = 4, 8, 16  # Bits of segments[options]
NUMBERED = 10  # So many random identifications rise one after the other once in a thousand connections
_COLUMNS = {
    "time_ns": np.int64,
    "seq": np.int64,
    "ack": np.int64,
    "payload_bytes": np.int32,
    "new_bytes": np.int32,
    "ip_bytes": np.int32,
    "window": np.int32,
    "flags": np.int16,
    "options": np.uint8,
    "ts_val": np.uint32,
    "ts_ecr": np.uint32,
    "ip_id": np.uint16,
    "first_block": np.uint32,
    "sack_blocks": np.uint8,
    "tos": np.uint8,
    "is_retransmission": np.bool_,
    "probe": np.bool_,
}


@dataclasses.dataclass(frozen=True)
class DirectionColumns:
    """The segments that one end sent, in the order of the capture; every column has one value per segment.

    row: index among the segments of both ends. seq: number of the first byte; end: of the byte after the last one, SYN
    and FIN counted. ack: UNKNOWN without the flag. window: as on the wire.
    """

    row: Ints
    time_ns: Ints
    seq: Ints
    end: Ints
    ack: Ints
    payload_bytes: npt.NDArray[np.int32]
    new_bytes: npt.NDArray[np.int32]
    ip_bytes: npt.NDArray[np.int32]
    window: npt.NDArray[np.int32]
    flags: npt.NDArray[np.int16]
    options: npt.NDArray[np.uint8]
    ts_val: npt.NDArray[np.uint32]
    ts_ecr: npt.NDArray[np.uint32]
    ip_id: npt.NDArray[np.uint16]
    first_block: npt.NDArray[np.uint32]
    sack_blocks: npt.NDArray[np.uint8]
    tos: npt.NDArray[np.uint8]
    is_retransmission: Bools
    probe: Bools

    def __len__(self) -> int:
        return len(self.row)

    @functools.cached_property
    def before(self) -> Ints:
        """Number of segments of the other end before each of these."""
        return self.row - np.arange(len(self.row))

    @functools.cached_property
    def highest_end(self) -> Ints:
        """The largest SND.NXT after each segment (RFC 9293 3.3.1). Resets are ignored."""
        return np.maximum.accumulate(np.where(self.flags & RST != 0, UNKNOWN, self.end))

    @functools.cached_property
    def highest_sent(self) -> Ints:
        """The same without what probes of a closed window carried."""
        return np.maximum.accumulate(np.where((self.flags & RST != 0) | self.probe, UNKNOWN, self.end))

    @functools.cached_property
    def data_end(self) -> int:
        """The first number that no payload can have: the FIN's (RFC 9293 3.4); without a FIN the largest possible."""
        last = np.flatnonzero(self.flags & FIN)
        return int(self.end[last].min()) - 1 if len(last) else np.iinfo(np.int64).max

    @functools.cached_property
    def highest_ack(self) -> Ints:
        """Highest acknowledgement after each segment; UNKNOWN before the first. Resets are ignored."""
        return np.maximum.accumulate(np.where(self.flags & RST != 0, UNKNOWN, self.ack))

    @functools.cached_property
    def syns(self) -> Ints:
        """Indices of the segments with SYN."""
        return np.flatnonzero(self.flags & SYN != 0)

    @functools.cached_property
    def carries(self) -> Ints:
        """Indices of the segments with payload, but of SYNs and resets."""
        return np.flatnonzero((self.payload_bytes > 0) & (self.flags & (SYN | RST) == 0))

    @functools.cached_property
    def numbered(self) -> bool:
        """Does the IPv4 identification count the packets of this connection, as Linux does it? New data are sent in the
        order of their numbers, so it rises with them; that of hosts which draw it at random does not.
        """
        fresh = self.carries[self.end[self.carries] > before(self.highest_end, UNKNOWN)[self.carries]]
        steps = np.diff(self.ip_id[fresh]).view(np.int16)
        return len(steps) >= NUMBERED and bool((steps > 0).all())

    @functools.cached_property
    def stamped(self) -> Ints:
        """Indices of the segments with a timestamp (RFC 7323 3), but of resets."""
        return np.flatnonzero((self.options & TIMESTAMP != 0) & (self.flags & RST == 0))

    @functools.cached_property
    def advances(self) -> Bools:
        """For each segment: does it acknowledge more than all before it?"""
        return self.highest_ack > before(self.highest_ack, UNKNOWN)


def before_each(values: npt.NDArray[Any], of: DirectionColumns, initial: int) -> npt.NDArray[Any]:
    """For each segment of `of`, the last of the other end's values before it; `initial` if there is none."""
    return np.concatenate([np.array([initial], dtype=values.dtype), values])[of.before]


def direction_columns(rows: Rows) -> tuple[DirectionColumns, DirectionColumns]:
    """Both directions of a TCP connection, of its segments but stray ones; index = the flow's direction."""
    if rows["stray"].any():
        rows = rows_where(rows, ~rows["stray"])
    sent_back = rows["direction"] != 0
    return _side(rows, np.flatnonzero(~sent_back)), _side(rows, np.flatnonzero(sent_back))


def _side(rows: Rows, row: Ints) -> DirectionColumns:
    columns = columns_of(rows, _COLUMNS, row)
    flags = columns["flags"]
    end = columns["seq"] + columns["payload_bytes"]
    if np.bitwise_or.reduce(flags) & (SYN | FIN):
        end += (flags & SYN != 0).astype(np.int64) + (flags & FIN != 0)
    return DirectionColumns(row=row, end=end, **columns)
