"""derived/windows.json: numbers of flows, of links and of the whole cell by windows of time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from ..captures.native import Floats, Ints
from ..core.outputs import SERIES
from ..core.types import Cell, Measure
from ..store.derived import CellWindows, WindowSeries
from .fairness import Windows
from .observation import FlowObservation, goodput_known
from .passages import Passages, rate_bit_s, shapes_over_time

Values = list[float | None]


def cell_windows(
    cell: Cell,
    asked: Measure,
    windows: Windows,
    flows: Mapping[str, FlowObservation],
    over_paths: Mapping[str, Passages],
    over_links: Mapping[str, Passages],
) -> CellWindows:
    """All series of a cell."""
    series = [
        WindowSeries(subject, name, SERIES[name], values)
        for subject, name, values in _series(cell, asked, windows, flows, over_paths, over_links)
    ]
    return CellWindows(asked.window_ns / 1e9, series)


def _series(
    cell: Cell,
    asked: Measure,
    windows: Windows,
    flows: Mapping[str, FlowObservation],
    over_paths: Mapping[str, Passages],
    over_links: Mapping[str, Passages],
) -> Iterator[tuple[str, str, Values]]:
    bins, length_s = len(windows.from_s), asked.window_ns / 1e9
    total = sum((rate for rate in windows.rate_bit_s.values()), np.zeros(bins))
    known = goodput_known(flows.values())
    for name, flow in flows.items():
        if flow.datagrams is not None:
            got = flow.datagrams.arrived
            place, new = got.t_ns // asked.window_ns, np.where(got.first, got.payload_bytes, 0)
            yield name, "goodput_bit_s", _rounded(_sums(place, new, bins) * 8 / length_s, 3)
            yield name, "throughput_bit_s", _rounded(_sums(place, got.ip_bytes, bins) * 8 / length_s, 3)
            yield from ((name, *each) for each in _passed(over_paths[name], bins, asked.window_ns))
        if flow.receiver is None:
            continue
        data = flow.receiver.data
        if name in windows.rate_bit_s:
            rate = windows.rate_bit_s[name]
            if known:
                yield name, "goodput_bit_s", _rounded(rate, 3)
            shares = np.divide(rate, total, out=np.full(bins, np.nan), where=total > 0)
            yield name, "share_ratio", _rounded(np.where(windows.running[name], shares, np.nan), 6)
        wire = _sums(data.t_ns // asked.window_ns, data.ip_bytes, bins) * 8 / length_s
        yield name, "throughput_bit_s", _rounded(wire, 3)
        if flow.sender is not None and flow.flow.protocol != "quic":
            sent = flow.sender.data
            again = _sums(sent.t_ns // asked.window_ns, sent.retransmission.astype(np.int64), bins)
            yield name, "retransmitted_packets", _rounded(again, 0)
        yield from ((name, *each) for each in _passed(over_paths[name], bins, asked.window_ns))
    shapes = {f"{link}.{side}": changes for (link, side), changes in shapes_over_time(cell).items()}
    for name, passages in over_links.items():
        there = passages.came
        arrived = window_numbers(passages.arrived_s[there], asked.window_ns)
        wire = _sums(arrived, passages.ip_bytes[there], bins) * 8 / length_s
        yield name, "throughput_bit_s", _rounded(wire, 3)
        begins = [number * asked.window_ns for number in range(bins)]
        rates = [rate_bit_s(shapes[name], begin, begin + asked.window_ns) for begin in begins]
        if any(rates):
            yield name, "utilization_ratio", _rounded(wire / np.array(rates, dtype=np.float64), 6)  # None: NaN
        yield from ((name, *each) for each in _passed(passages, bins, asked.window_ns))
    if len(windows.running) > 1:
        yield "", "jain_index", [None if value is None else round(value, 6) for value in windows.jain()]
        yield "", "running_flows", [float(count) for count in windows.count()]


def _passed(passages: Passages, bins: int, window_ns: int) -> Iterator[tuple[str, Values]]:
    """Loss and queue delay of the packets that came before a link or path in each window."""
    place = window_numbers(passages.t_s, window_ns)
    inside = (place >= 0) & (place < bins)
    place, delay = place[inside], passages.delay_s[inside]
    lost, waiting = passages.lost[inside], passages.waiting[inside]
    through = ~np.isnan(delay)
    came, gone = (np.bincount(at, minlength=bins) for at in (place[~waiting], place[lost]))
    yield "lost_packets", _rounded(np.where(came > 0, gone.astype(np.float64), np.nan), 0)
    yield "loss_ratio", _rounded(np.divide(gone, came, out=np.full(bins, np.nan), where=came > 0), 6)
    means, late = np.full(bins, np.nan), np.full(bins, np.nan)
    order = np.argsort(place[through], kind="stable")
    edges = np.searchsorted(place[through][order], np.arange(bins + 1))
    known = delay[through][order]
    for number in range(bins):
        if edges[number] < edges[number + 1]:
            these = known[edges[number] : edges[number + 1]]
            means[number], late[number] = these.mean(), np.quantile(these, 0.95)
    yield "queue_delay_mean_s", _rounded(means, 9)
    yield "queue_delay_p95_s", _rounded(late, 9)


def window_numbers(t_s: Floats, window_ns: int) -> Ints:
    """The number of the window of each time, from whole ns: 0.3 s begins the fourth of 0.1 s."""
    windows: Ints = np.rint(t_s * 1e9).astype(np.int64) // window_ns
    return windows


def _sums(place: Ints, amounts: Ints, bins: int) -> Floats:
    inside = (place >= 0) & (place < bins)
    return np.bincount(place[inside], weights=amounts[inside], minlength=bins).astype(np.float64)


def _rounded(values: Floats, places: int) -> Values:
    return [None if value != value else value for value in np.round(values, places).tolist()]  # NaN differs from itself
