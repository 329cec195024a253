"""derived/series.json: what the report draws. Bins count from T0; the last one may be shorter than the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ..model import Cell, Flow
from .faults import faults_of
from .native import Floats, Ints
from .point import Point
from .samples import NUMBERS, Samples
from .trace import PathTrace
from .view import PathNames, View

BINS = 200
BIN_STEPS = (1, 2, 5)
TRACE_POINTS = 4000
TRACE_COLUMNS = ("t_s", "cwnd_bytes", "ssthresh_bytes", "flight_bytes")


def bin_s(duration_ns: int) -> float:
    """The shortest of 1, 2, 5 x 10^k s that cuts the duration into at most 200 bins."""
    exponent = -6
    while True:
        for step in BIN_STEPS:
            width = step * 10.0**exponent
            if duration_ns / 1e9 / width <= BINS + 1e-9:
                return width
        exponent += 1


def binned_bit_s(t_ns: Ints, amount_bytes: Ints, width_ns: int, duration_ns: int) -> list[float]:
    """Bytes per bin as bit/s; what came before T0 or after the duration is left out."""
    bins = -(-duration_ns // width_ns)
    counts = (t_ns >= 0) & (t_ns < duration_ns)
    total = np.bincount(t_ns[counts] // width_ns, weights=amount_bytes[counts], minlength=bins)
    widths = np.full(bins, width_ns, dtype=np.float64)
    if bins:
        widths[-1] = duration_ns - (bins - 1) * width_ns
    return [float(value) for value in np.round(total * 8e9 / widths, 3)]


def span_ns(cell: Cell, points: Iterable[Point], t0_realtime_ns: int) -> int:
    """What the bins cover: the duration, or to the last packet of any capture where all flows end by bytes before."""
    lasts = [int(point.capture.packets["time_ns"][-1]) for point in points if len(point.capture.packets)]
    if not lasts or any(flow.total_bytes is None for flow in cell.flows):
        return cell.duration_ns
    return min(cell.duration_ns, max(1, max(lasts) - t0_realtime_ns + 1))


def packet_series(receiver: View, width_ns: int, span_ns: int) -> dict[str, list[float]]:
    """Packets a second at the receiver, of both directions: all, those with data, and the others."""
    t_ns = np.concatenate([receiver.data.t_ns, receiver.back.t_ns])
    loaded = np.concatenate([receiver.data.payload_bytes, receiver.back.payload_bytes]) > 0
    every = np.ones(len(t_ns), dtype=np.int64)
    return {
        name: [round(value / 8, 3) for value in binned_bit_s(t_ns, every * counts, width_ns, span_ns)]
        for name, counts in (("packets_s", every), ("data_packets_s", loaded), ("control_packets_s", ~loaded))
    }


def flow_series(receiver: View | None, names: PathNames, samples: dict[str, Samples], span_ns: int) -> dict[str, Any]:
    """One flow: goodput, throughput by path (both at the receiver, data direction), packets a second of both
    directions, the kernel's samples by path.
    """
    width_ns = round(bin_s(span_ns) * 1e9)
    found: dict[str, Any] = {"samples": {name: _columns(one) for name, one in samples.items()}}
    found["states"] = {name: [list(change) for change in one.states] for name, one in samples.items() if one.states}
    if receiver is None:
        return found | {"goodput_bit_s": [], "paths": {}}
    data = receiver.data
    found["goodput_bit_s"] = binned_bit_s(data.t_ns, data.new_bytes, width_ns, span_ns)
    found |= packet_series(receiver, width_ns, span_ns)
    found["paths"] = {}
    for index, name in enumerate(names.names):
        mine = data.path == index
        found["paths"][name] = {
            "throughput_bit_s": binned_bit_s(data.t_ns[mine], data.ip_bytes[mine], width_ns, span_ns)
        }
    return found


def datagram_series(flow: Flow, t_ns: Ints, ip_bytes: Ints, cell: Cell) -> dict[str, Any]:
    """The same of a flow of which only arriving packets are known: throughput alone."""
    width_ns = round(bin_s(cell.duration_ns) * 1e9)
    rates = binned_bit_s(t_ns, ip_bytes, width_ns, cell.duration_ns) if len(t_ns) else []
    paths = {flow.paths[0].name: {"throughput_bit_s": rates}} if rates else {}
    return {"samples": {}, "states": {}, "goodput_bit_s": [], "paths": paths}


def _columns(samples: Samples) -> dict[str, list[float | None]]:
    """What the kernel gave of one path; cwnd and srtt together, even where one of them is not known yet."""
    there = {name for name in NUMBERS if not np.isnan(getattr(samples, name)).all()}
    there |= {"cwnd_bytes", "srtt_s"} if "cwnd_bytes" in there else set()
    return {name: _plain(getattr(samples, name)) for name in NUMBERS if name in there}


def trace_series(traces: dict[str, PathTrace]) -> dict[str, Any]:
    """`trace`: path -> its trace, for drawing: at most TRACE_POINTS events of it, evenly chosen, the last one among
    them; nothing where nothing was traced.
    """
    found = {}
    for name, trace in traces.items():
        count = len(trace.t_s)
        chosen = np.unique(np.linspace(0, count - 1, min(count, TRACE_POINTS)).round().astype(np.int64))
        drawn = {column: _plain(getattr(trace, column)[chosen]) for column in TRACE_COLUMNS}
        found[name] = {column: values for column, values in drawn.items() if any(value is not None for value in values)}
    return {"trace": found} if found else {}


def _plain(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def fault_spans(cell: Cell) -> list[dict[str, Any]]:
    """The faults as the report shades them; one that is never repaired lasts to the end."""
    return [
        {
            "name": fault.name,
            "action": fault.action,
            "link": fault.link,
            "from_s": fault.from_ns / 1e9,
            "to_s": (cell.duration_ns if fault.to_ns is None else fault.to_ns) / 1e9,
        }
        for fault in faults_of(cell.timeline)
    ]
