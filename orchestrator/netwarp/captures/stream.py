"""Reads a capture point of any size: totals and binned series always, in memory that does not grow with the number of
packets; rows of every packet only if there are few enough.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence

import numpy as np

from ..core.errors import CaptureError
from ..core.limits import limits
from ..core.wire import SCTP
from .association_tags import associations_in_two
from .capture import ROW_TABLES, TOTAL_TABLES, Capture, take_rows
from .capture_clock import was_set_back
from .native import (
    CHECKSUMS,
    GO_ON,
    LEAVE_COPIES,
    NONE,
    SORT,
    UNKNOWN,
    CoreHandle,
    Floats,
    Ints,
    Rows,
    TagPair,
    layouts,
)
from .time_spans import rate_bit_s

# A packet with its segment or chunks takes about 250 bytes as rows, and the same again while it is analysed
PACKETS_IN_MEMORY = 1_000_000
PART_PACKETS = 65536  # Rows read at a time: they fit the processor's caches
BINS = 1024
LEAST_BINS = 50
PACKETS_A_BIN = 8  # Packets per bin on average: with fewer a rate would only show single packets
FIRST_BIN_NS = 1_000_000
SERIES_FLOWS = 1000
LONGEST = 5  # Silences kept per direction
# Series: its name in FlowBins, and the column of `packets` that it sums
BINNED = (("new_bytes", "new_bytes"), ("retransmitted", "is_retransmission"))
TWICE = 0.1  # A connection with at least this share of copies was captured twice: no network duplicates so many packets
TWICE_PACKETS = 3
NEARLY_HALF = 0.45  # The share that tells by itself, of however few packets
Silence = tuple[float, float, bool]


class FlowBins:
    """One flow by direction [2] and time [1024 bins]: payload never seen before, retransmitted packets.

    first_new_ns, last_new_ns: first and last packet with new payload; UNKNOWN: none. later_bytes: new payload after the
    first one. repeats: data packets that carry anything sent before. silences: the longest pauses between data
    packets, longest first: (begin in s from the capture's first packet, length in s, whether a retransmission ended
    it).
    """

    def __init__(self) -> None:
        self.new_bytes, self.retransmitted = np.zeros((2, 2, BINS), dtype=np.int64)
        self.later_bytes, self.repeats = np.zeros((2, 2), dtype=np.int64)
        self.first_new_ns, self.last_new_ns, self.last_data_ns = np.full((3, 2), UNKNOWN)
        self.silences: tuple[list[Silence], list[Silence]] = ([], [])

    def goodput_bit_s(self, direction: int) -> float | None:
        """New payload in (first arrival, last arrival], divided by that time (docs/metrics.md); None with fewer than
        two arrivals.
        """
        return rate_bit_s(self.later_bytes[direction], int(self.last_new_ns[direction] - self.first_new_ns[direction]))


@dataclasses.dataclass(frozen=True)
class CapturedStream:
    """A capture point that was read in one pass.

    capture: its tables; the row tables (`packets`, `segments`, ...) are empty unless `whole`. t0_ns: time of the first
    packet, 0 if there is none. bin_ns: width of a bin, 1 or 2 x 10^k ms. flows: flow -> its series, for the 1000
    largest flows (if not `whole`, for the first 1000).
    """

    capture: Capture
    whole: bool
    t0_ns: int
    bin_ns: int
    flows: dict[int, FlowBins]

    @property
    def duration_s(self) -> float:
        """From the first packet to the last one of the file."""
        return (int(self.capture.sources["last_ns"].max(initial=self.t0_ns)) - self.t0_ns) / 1e9

    def times_s(self) -> Floats:
        """The begin of each bin, in seconds from t0_ns, up to the bin with the last packet."""
        last_ns = int(self.capture.sources["last_ns"].max(initial=self.t0_ns))
        bins = max(last_ns - self.t0_ns, 0) // self.bin_ns + 1
        return np.arange(bins, dtype=np.float64) * (self.bin_ns / 1e9)

    def rate_bit_s(self, amount_bytes: Ints) -> Floats:
        """Bytes per bin of a flow as rates in bit/s; as many values as `times_s`."""
        return amount_bytes[: len(self.times_s())].astype(np.float64) * (8e9 / self.bin_ns)


def read_stream(
    files: Sequence[str | os.PathLike[str]],
    *,
    checksums: bool = False,
    keep: int | None = 0,
    part_packets: int = PART_PACKETS,
    packet_filter: str | None = None,
    stop_fd: int | None = None,
    captured_at: Sequence[str] = (),
    or_none: bool = False,
) -> CapturedStream:
    """Read the captures of ONE capture point as `read_captures` does. keep: the row tables are kept if the capture has
    at most so many packets (None: always). packet_filter, stop_fd: see CoreHandle. captured_at: addresses of the host
    that captured, as written in the capture's summary. or_none: of more packets than `keep` nothing further is read.

    Memory grows with `keep`, with the number of flows and paths, and with gaps in what they sent, not with packets. A
    file is read a second time, a pipe is not: with times that go on, if its clock was set back; sorted, if its records
    are out of order (and it has at most PACKETS_IN_MEMORY packets, or keep is None); without copies, if it holds
    packets several times; with the tags that belong together, if it begins amid an SCTP association of several paths.
    Raises CaptureError naming the file.
    """
    options = CHECKSUMS if checksums else 0
    stream = _read(files, options, keep, part_packets, packet_filter, stop_fd, or_none=or_none)
    if (or_none and not stream.whole) or not all(map(os.path.isfile, files)):
        return stream
    if again := _corrections(stream.capture, sort_all=keep is None):
        options |= again
        stream = _read(files, options, keep, part_packets, packet_filter, None)
    if (stream.capture.flows["protocol"] == SCTP).any() and (pairs := associations_in_two(stream.capture)):
        stream = _read(files, options, keep, part_packets, packet_filter, None, pairs)
    return _said(stream, captured_at) if captured_at else stream


def _said(stream: CapturedStream, captured_at: Sequence[str]) -> CapturedStream:
    """The same with the addresses of the host that captured. Raises CaptureError: the capture has none of one."""
    capture = stream.capture
    known = {capture.address(path, end) for path in range(len(capture.paths)) for end in (0, 1)}
    for address in captured_at:
        if address not in known:
            raise CaptureError(f"--captured-at {address}: {', '.join(capture.files)} has no packet from or to it")
    return dataclasses.replace(stream, capture=dataclasses.replace(capture, captured_at=tuple(captured_at)))


def _corrections(capture: Capture, *, sort_all: bool) -> int:
    """The reading options that correct faults of the capture as a whole."""
    sources, flows = capture.sources, capture.flows
    options = 0
    if sources["backwards"].any() and (sort_all or sources["packets"].sum() <= PACKETS_IN_MEMORY):
        options |= GO_ON if was_set_back(capture) else SORT
    if sources["copies"].any():
        packets = np.bincount(capture.flow_paths["flow"], capture.flow_paths["packets"].sum(axis=1), len(flows))
        copies = flows["copies"].sum(axis=1)
        many = (copies >= TWICE_PACKETS) & (copies >= TWICE * packets)
        if (many | (copies >= NEARLY_HALF * packets)).any():
            options |= LEAVE_COPIES
    return options


def _read(
    files: Sequence[str | os.PathLike[str]],
    options: int,
    keep: int | None,
    part_packets: int,
    packet_filter: str | None,
    stop_fd: int | None,
    associations: Sequence[TagPair] = (),
    *,
    or_none: bool = False,
) -> CapturedStream:
    tables = ("packets",) if keep == 0 else ROW_TABLES
    handle = CoreHandle(files, tables, options, packet_filter=packet_filter, stop_fd=stop_fd, associations=associations)
    series = _Series()
    most = limits()
    more = keep == 0 or handle.read(keep or 0)
    whole = not more
    if whole:
        series.prefer(handle.rows("flow_paths"))
    packets = handle.rows("packets")
    for low in range(0, len(packets), part_packets):
        series.add(packets[low : low + part_packets])
    while more and not or_none:
        handle.clear()
        more = handle.read(part_packets)
        series.add(handle.rows("packets"))
        if more and handle.rows("sources")["packets"].sum() >= most.packets:
            raise CaptureError(f"{files[0]}: has {most.beyond('packets')}")
    kept = (*TOTAL_TABLES, *ROW_TABLES) if whole else TOTAL_TABLES
    capture = Capture(
        files=handle.files,
        trouble=tuple(handle.trouble(source) for source in range(len(handle.files))),
        captured_at=(),
        **{name: handle.rows(name) if name in kept else np.empty(0, layouts()[name]) for name in layouts()},
    )
    series.coarsen(int(capture.sources["packets"].sum()))
    return CapturedStream(capture, whole, series.t0_ns or 0, series.bin_ns, series.flows)


class _Series:
    """Bytes by flow, direction and time. When the capture becomes longer than the bins cover, the bins are made
    wider.
    """

    def __init__(self) -> None:
        self.t0_ns: int | None = None
        self.last_ns = 0
        self.bin_ns = FIRST_BIN_NS
        self.flows: dict[int, FlowBins] = {}

    def prefer(self, flow_paths: Rows) -> None:
        """If there are more than 1000 flows and all are known, keep the series of the largest and not of the first
        ones.
        """
        size = np.bincount(flow_paths["flow"], flow_paths["ip_bytes"].sum(axis=1))
        if len(size) > SERIES_FLOWS:
            self.flows = {flow: FlowBins() for flow in np.sort(np.argsort(-size)[:SERIES_FLOWS]).tolist()}

    def add(self, packets: Rows) -> None:
        if not len(packets):
            return
        time_ns = packets["time_ns"]
        if self.t0_ns is None:
            self.t0_ns = int(time_ns[0])
        self.last_ns = max(self.last_ns, int(time_ns.max()))
        while self.last_ns - self.t0_ns >= BINS * self.bin_ns:
            self._widen()
        flow = packets["flow"]
        keep = flow < NONE
        everyone = np.flatnonzero(np.bincount(flow[keep]))
        present = self._known(everyone)
        if not len(present):
            return
        index = np.full(int(everyone[-1]) + 1, -1, dtype=np.int16)
        index[present] = np.arange(len(present))
        place = index[np.minimum(flow, int(everyone[-1]))]
        keep &= place >= 0
        rows, place = (packets, place) if keep.all() else (take_rows(packets, np.flatnonzero(keep)), place[keep])
        side = place * np.int64(2) + rows["direction"]
        self._bin(rows, side, present)
        self._moments(rows, side, present)

    def _bin(self, rows: Rows, side: Ints, present: Ints) -> None:
        # what is timed before the first packet counts in the first bin: `backwards` of the sources says that it is so
        at = np.maximum(rows["time_ns"] - (self.t0_ns or 0), 0) // self.bin_ns
        low, high = int(at.min()), int(at.max()) + 1
        key = side * (high - low) + (at - low)
        for name, column in BINNED:
            amount = np.bincount(key, weights=rows[column], minlength=len(present) * 2 * (high - low))
            shaped = amount.astype(np.int64).reshape(len(present), 2, high - low)
            for number, flow in enumerate(present.tolist()):
                getattr(self.flows[flow], name)[:, low:high] += shaped[number]

    def _moments(self, rows: Rows, side: Ints, present: Ints) -> None:
        data = np.flatnonzero(rows["payload_bytes"])
        side = side[data].astype(np.uint16)  # at most 2000: NumPy sorts 16 bits by radix
        data = data[np.argsort(side, kind="stable")]
        edges = np.concatenate([[0], np.cumsum(np.bincount(side, minlength=len(present) * 2))])
        time_ns, new_bytes, again = (rows[name][data] for name in ("time_ns", "new_bytes", "is_retransmission"))
        for number in np.flatnonzero(np.diff(edges)).tolist():
            part = slice(int(edges[number]), int(edges[number + 1]))
            flow, direction = self.flows[int(present[number // 2])], number % 2
            fresh = np.flatnonzero(new_bytes[part])
            if len(fresh):
                if flow.first_new_ns[direction] == UNKNOWN:
                    flow.first_new_ns[direction] = time_ns[part][fresh[0]]
                    flow.later_bytes[direction] -= int(new_bytes[part][fresh[0]])
                flow.last_new_ns[direction] = time_ns[part][fresh[-1]]
                flow.later_bytes[direction] += int(new_bytes[part].sum())
            flow.repeats[direction] += int(np.count_nonzero(again[part]))
            self._silences(flow, direction, time_ns[part], again[part])

    def _silences(self, flow: FlowBins, direction: int, time_ns: Ints, again: Rows) -> None:
        before = int(time_ns[0] if flow.last_data_ns[direction] == UNKNOWN else flow.last_data_ns[direction])
        pause = np.diff(time_ns, prepend=before)
        longest = np.argpartition(-pause, LONGEST - 1)[:LONGEST] if len(pause) > LONGEST else np.arange(len(pause))
        kept = flow.silences[direction]
        for at in np.sort(longest).tolist():
            if pause[at] > 0:
                begun = int(time_ns[at] - pause[at]) - (self.t0_ns or 0)
                kept.append((begun / 1e9, int(pause[at]) / 1e9, bool(again[at])))
        kept.sort(key=lambda silence: -silence[1])
        del kept[LONGEST:]
        flow.last_data_ns[direction] = time_ns[-1]

    def _known(self, present: Ints) -> Ints:
        """Those of the given flows that have series; a new flow gets one while there is room."""
        old = np.array([flow in self.flows for flow in present.tolist()], dtype=np.bool_)
        new = present[~old][: SERIES_FLOWS - len(self.flows)]
        self.flows |= {flow: FlowBins() for flow in new.tolist()}
        return np.sort(np.concatenate([present[old], new])).astype(np.int64)

    def coarsen(self, packets: int) -> None:
        """Makes bins wide enough for 8 packets each on average, but keeps at least 50 bins."""
        span = self.last_ns - (self.t0_ns or 0)
        while span // self.bin_ns >= max(LEAST_BINS * self._factor(), packets // PACKETS_A_BIN):
            self._widen()

    def _factor(self) -> int:
        """1, 2, 10, 20, 100 ... ms"""
        return 2 if str(self.bin_ns)[0] == "1" else 5

    def _widen(self) -> None:
        factor = self._factor()
        self.bin_ns *= factor
        whole = BINS // factor * factor
        for flow in self.flows.values():
            for name, _ in BINNED:
                bins = getattr(flow, name)
                rest = bins[:, whole:].sum(axis=1)
                bins[:, : whole // factor] = bins[:, :whole].reshape(2, -1, factor).sum(axis=2)
                bins[:, whole // factor] = rest
                bins[:, whole // factor + 1 :] = 0
