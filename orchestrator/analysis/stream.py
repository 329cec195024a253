"""Totals and series of captures of any size, in memory that does not grow with the number of packets."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from .capture import ROW_TABLES, TOTAL_TABLES, Capture
from .native import CHECKSUMS, NONE, Floats, Handle, Ints, Rows, layouts

PART_PACKETS = 65536
BINS = 1024
FIRST_BIN_NS = 1_000_000
SERIES_FLOWS = 1000


@dataclasses.dataclass(frozen=True)
class Stream:
    """A capture point read in parts.

    capture: its totals; every row table (`packets`, `segments`, ...) is empty. t0_ns: the first packet's time.
    bin_ns: 1 ms, doubled until 1024 bins hold the capture. ip_bytes, new_bytes: flow -> int64 array (2 directions,
    1024 bins) of bytes by time, new_bytes being payload never seen before; of the first 1000 flows only.
    """

    capture: Capture
    t0_ns: int
    bin_ns: int
    ip_bytes: dict[int, Ints]
    new_bytes: dict[int, Ints]

    def times_s(self) -> Floats:
        """Where each bin begins, seconds from t0_ns, up to the one that holds the last packet."""
        last_ns = int(self.capture.sources["last_ns"].max(initial=self.t0_ns))
        bins = max(last_ns - self.t0_ns, 0) // self.bin_ns + 1
        return np.arange(bins, dtype=np.float64) * (self.bin_ns / 1e9)

    def throughput_bit_s(self, flow: int, direction: int) -> Floats:
        """IP bytes of the flow on the wire at this point by time; KeyError: a flow without a series."""
        return self._rate(self.ip_bytes[flow][direction])

    def goodput_bit_s(self, flow: int, direction: int) -> Floats:
        """New payload of the flow at this point by time; KeyError: a flow without a series."""
        return self._rate(self.new_bytes[flow][direction])

    def _rate(self, amount_bytes: Ints) -> Floats:
        return amount_bytes[: len(self.times_s())].astype(np.float64) * (8e9 / self.bin_ns)


def read_stream(
    files: Sequence[str | os.PathLike[str]], *, checksums: bool = False, part_packets: int = PART_PACKETS
) -> Stream:
    """Read the captures of ONE capture point as `read_captures` does, keeping totals and series only.

    Memory grows with the number of flows and paths, and with holes in what they sent, not with packets.
    Raises CaptureError naming the file.
    """
    handle = Handle(files, ["packets"], CHECKSUMS if checksums else 0)
    series = _Series()
    more = True
    while more:
        more = handle.read(part_packets)
        series.add(handle.rows("packets"))
        handle.clear()
    capture = Capture(
        files=handle.files,
        trouble=tuple(handle.trouble(source) for source in range(len(handle.files))),
        **{name: handle.rows(name) for name in TOTAL_TABLES},
        **{name: np.empty(0, dtype=layouts()[name]) for name in (*ROW_TABLES, "identities")},
    )
    return Stream(capture, series.t0_ns or 0, series.bin_ns, series.ip_bytes, series.new_bytes)


class _Series:
    """Bytes by flow, direction and time. The bins get twice as wide whenever the capture outgrows them."""

    def __init__(self) -> None:
        self.t0_ns: int | None = None
        self.bin_ns = FIRST_BIN_NS
        self.ip_bytes: dict[int, Ints] = {}
        self.new_bytes: dict[int, Ints] = {}

    def add(self, packets: Rows) -> None:
        if not len(packets):
            return
        time_ns = packets["time_ns"]
        if self.t0_ns is None:
            self.t0_ns = int(time_ns[0])
        while int(time_ns.max()) - self.t0_ns >= BINS * self.bin_ns:
            self._widen()
        flow = packets["flow"]
        keep = flow < NONE
        present = np.unique(flow[keep])[:SERIES_FLOWS]
        present = np.array([one for one in present.tolist() if self._room(one)], dtype=np.int64)
        if not len(present):
            return
        if len(present) == 1 and keep.all() and (flow == present[0]).all():
            rows, place = packets, np.zeros(len(packets), dtype=np.int64)
        else:
            found = np.minimum(np.searchsorted(present, flow), len(present) - 1)
            keep = present[found] == flow
            rows, place = packets[keep], found[keep]
        # what is timed before the first packet counts in the first bin: `backwards` of the sources says that it is so
        at = np.maximum(rows["time_ns"] - self.t0_ns, 0) // self.bin_ns
        low, high = int(at.min()), int(at.max()) + 1
        key = (place * 2 + rows["direction"]) * (high - low) + (at - low)
        for column, into in (("ip_bytes", self.ip_bytes), ("new_bytes", self.new_bytes)):
            amount = np.bincount(key, weights=rows[column], minlength=len(present) * 2 * (high - low))
            shaped = amount.astype(np.int64).reshape(len(present), 2, high - low)
            for number, one in enumerate(present.tolist()):
                into[one][:, low:high] += shaped[number]

    def _room(self, flow: int) -> bool:
        if flow not in self.ip_bytes and len(self.ip_bytes) < SERIES_FLOWS:
            self.ip_bytes[flow], self.new_bytes[flow] = (np.zeros((2, BINS), dtype=np.int64) for _ in range(2))
        return flow in self.ip_bytes

    def _widen(self) -> None:
        self.bin_ns *= 2
        for of_flow in (self.ip_bytes, self.new_bytes):
            for bins in of_flow.values():
                bins[:, : BINS // 2] = bins[:, 0::2] + bins[:, 1::2]
                bins[:, BINS // 2 :] = 0
