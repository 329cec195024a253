"""derived/series.json: the curves of the report. Bins count from T0; the last one may be shorter than the others."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from ..captures.native import Floats, Ints
from ..captures.time_spans import bin_s, binned_bit_s
from ..core.types import Cell, Flow
from ..store.derived import FaultSpan, FlowSeries, Sampled
from .capture_point import CapturePoint
from .flow_packets import FlowPackets
from .kernel_samples import NUMBERS, PathSamples, PathTrace
from .planned_paths import faults_of

TRACE_POINTS = 4000
TRACE_COLUMNS = ("t_s", "cwnd_bytes", "ssthresh_bytes", "flight_bytes")


def span_ns(cell: Cell, points: Iterable[CapturePoint], t0_realtime_ns: int) -> int:
    """The time that the bins cover: the cell's duration, or, if all flows are limited by bytes and end earlier, up to
    the last packet of any capture.
    """
    lasts = [int(point.capture.packets["time_ns"][-1]) for point in points if len(point.capture.packets)]
    if not lasts or any(flow.total_bytes is None for flow in cell.flows):
        return cell.duration_ns
    return min(cell.duration_ns, max(1, max(lasts) - t0_realtime_ns + 1))


def packet_series(receiver: FlowPackets, width_ns: int, span_ns: int) -> dict[str, tuple[float, ...]]:
    """Packets per second at the receiver, of both directions: all packets, those with data, and the others."""
    t_ns = np.concatenate([receiver.data.t_ns, receiver.back.t_ns])
    loaded = np.concatenate([receiver.data.payload_bytes, receiver.back.payload_bytes]) > 0
    every = np.ones(len(t_ns), dtype=np.int64)
    return {
        name: tuple(round(value / 8, 3) for value in binned_bit_s(t_ns, every * counts, width_ns, span_ns))
        for name, counts in (("packets_s", every), ("data_packets_s", loaded), ("control_packets_s", ~loaded))
    }


def flow_series(
    receiver: FlowPackets | None,
    path_names: Sequence[str],
    samples: Mapping[str, PathSamples],
    traces: Mapping[str, PathTrace],
    span_ns: int,
) -> FlowSeries:
    """The series of one flow: goodput and throughput by path (both at the receiver, data direction), packets per second
    of both directions, the kernel's samples and traces by path.
    """
    width_ns = round(bin_s(span_ns) * 1e9)
    kernel = FlowSeries(
        goodput_bit_s=(),
        paths={},
        samples={name: _columns(path) for name, path in samples.items()},
        states={name: list(path.states) for name, path in samples.items() if path.states},
        trace=trace_series(traces),
    )
    if receiver is None:
        return kernel
    data = receiver.data
    throughput = {}
    for index, name in enumerate(path_names):
        mine = data.path == index
        throughput[name] = binned_bit_s(data.t_ns[mine], data.ip_bytes[mine], width_ns, span_ns)
    return msgspec.structs.replace(
        kernel,
        goodput_bit_s=tuple(binned_bit_s(data.t_ns, data.new_bytes, width_ns, span_ns)),
        paths={name: {"throughput_bit_s": rates} for name, rates in throughput.items()},
        **packet_series(receiver, width_ns, span_ns),
    )


def datagram_series(flow: Flow, t_ns: Ints, ip_bytes: Ints, cell: Cell) -> FlowSeries:
    """The series of a flow of which only arriving packets are known: throughput alone."""
    width_ns = round(bin_s(cell.duration_ns) * 1e9)
    rates = binned_bit_s(t_ns, ip_bytes, width_ns, cell.duration_ns) if len(t_ns) else []
    paths = {flow.paths[0].name: {"throughput_bit_s": rates}} if rates else {}
    return FlowSeries(goodput_bit_s=(), paths=paths, samples={}, states={})


def _columns(samples: PathSamples) -> Sampled:
    """The kernel's values of one path; cwnd and srtt together, even if one of them is not known yet."""
    there = {name for name in NUMBERS if not np.isnan(getattr(samples, name)).all()}
    there |= {"cwnd_bytes", "srtt_s"} if "cwnd_bytes" in there else set()
    return {name: _plain(getattr(samples, name)) for name in NUMBERS if name in there}


def trace_series(traces: Mapping[str, PathTrace]) -> dict[str, Sampled]:
    """Path -> its trace for drawing: at most TRACE_POINTS events, evenly chosen, with the last one."""
    series = {}
    for name, trace in traces.items():
        count = len(trace.t_s)
        chosen = np.unique(np.linspace(0, count - 1, min(count, TRACE_POINTS)).round().astype(np.int64))
        drawn = {column: _plain(getattr(trace, column)[chosen]) for column in TRACE_COLUMNS}
        series[name] = {
            column: values for column, values in drawn.items() if any(value is not None for value in values)
        }
    return series


def _plain(values: Floats) -> list[float | None]:
    return [None if value != value else value for value in values.tolist()]  # NaN differs from itself


def fault_spans(cell: Cell) -> list[FaultSpan]:
    """The faults of a cell."""
    return [
        FaultSpan(
            fault.name, fault.action, fault.link, fault.from_ns / 1e9,
            (cell.duration_ns if fault.to_ns is None else fault.to_ns) / 1e9,
        )
        for fault in faults_of(cell.timeline)
    ]  # fmt: skip
