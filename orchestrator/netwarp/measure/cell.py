"""A cell's raw files in, derived/{measurements,series,exchange,packets,checks}.json out, whichever back end ran it."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

from ..captures.binning import bin_s
from ..core.errors import CaptureError, StoreError
from ..core.metrics.catalogue import CELL_METRICS, METRICS, unit_of
from ..core.metrics.expressions import evaluate, parameter_numbers
from ..core.types import Cell, Check, Flow, Measurement
from ..store.ndjson import Record, last, read_ndjson
from ..store.run_dir import CellDir, write_json
from ..testbed.layout import make_layout
from . import events, series
from .capture_point import CapturePoint, read_point
from .cell_records import CellRecords, read_cell_records
from .checks import (
    capture_checks,
    memory_check,
    missing_check,
    payload_check,
    program_check,
    relative,
    sent_check,
    utilization_check,
)
from .delivery import delivered
from .flow_packets import check_ports, make_views
from .groups import recovery
from .groups import window_growth as growth
from .groups.datagrams import datagram_metrics, datagrams_at
from .groups.failover import failover_metrics
from .groups.flow_sharing import Transfer, together
from .groups.head_of_line import waiting_metrics
from .groups.mptcp import subflows_of
from .groups.sctp import sctp_metrics
from .groups.tcp import tcp_metrics
from .groups.transfer import transfer_metrics
from .kernel_counters import kernel_counters
from .kernel_trace import path_traces, read_trace, trace_check, with_thresholds
from .metrics import FLOW_METRICS, Window, flow_metrics, jain_index, longest_gap, moments_of, window_of
from .packets_around_fault import packets_around_fault
from .physics import physics_metrics
from .socket_samples import read_samples, time_weighted_mean

NO_TRANSFER = Transfer(None, Window(None, None, complete=False))


@dataclasses.dataclass(frozen=True)
class _FlowResult:
    metrics: dict[str, float | None]
    series: dict[str, Any]
    events: list[events.Happening]
    packets_around_fault: list[dict[str, Any]]
    checks: list[Check]
    transfer: Transfer


def analyze_cell(cell: Cell, cell_dir: Path) -> None:
    """Derive one cell; each file is written whole or not at all, checks last.

    What is missing or cannot be read (a capture, an app's output), and a metric of the spec's own that cannot be
    computed, is a failed check, and what hangs on it has no value. Raises CaptureError: init.ndjson cannot be used, or
    two flows share a port; StoreError: the results cannot be written.
    """
    directory = CellDir(cell_dir)
    records = read_cell_records(directory.init_log)
    check_ports(cell.flows)
    points, checks = _read_points(cell, cell_dir)
    checks += capture_checks(cell, list(points.values()), records.captures)
    checks += trace_check(cell, records.trace)
    checks.append(memory_check(kernel_counters(records.proc, make_layout(cell).namespaces)))
    span_ns = series.span_ns(cell, points.values(), records.t0_realtime_ns)
    results = {flow.name: _flow(cell, flow, directory, points, records, span_ns) for flow in cell.flows}
    shared, of_the_cell = together({name: result.transfer for name, result in results.items()})
    of_the_cell["jain_index"] = jain_index([result.metrics["goodput_bit_s"] for result in results.values()])
    measurements: list[Measurement] = []
    for flow in cell.flows:
        metrics = results[flow.name].metrics | shared[flow.name]
        own, wrong = _own_metrics(cell, flow, metrics)
        measurements += _measurements(cell, flow, metrics | own)
        checks += results[flow.name].checks + wrong
    measurements += [
        Measurement(cell.id, "", name, of_the_cell[name], METRICS[name].unit)
        for name in sorted(CELL_METRICS)
        if name in of_the_cell
    ]
    happened = events.timeline_events(cell)
    for result in results.values():
        happened += result.events
    write_json(directory.measurements, measurements)
    write_json(
        directory.series,
        {
            "bin_s": bin_s(span_ns),
            "duration_s": cell.duration_ns / 1e9,
            "flows": {name: result.series for name, result in results.items()},
            "faults": series.fault_spans(cell),
            "events": sorted(happened, key=lambda event: event["t_s"]),
        },
    )
    write_json(directory.exchange, {name: result.packets_around_fault for name, result in results.items()})
    write_json(directory.packets, _digests(directory.capture))
    write_json(directory.checks, checks)


def _digests(captures: Path) -> dict[str, str]:
    """Capture -> SHA-256 of its file, which says nothing but packets and their times: cells can be told equal by it
    even where the captures are gone.
    """
    found = {}
    for path in sorted(captures.glob("*.pcap*")):
        with open(path, "rb") as file:
            found[path.name.split(".pcap")[0]] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def _read_points(cell: Cell, cell_dir: Path) -> tuple[dict[str, CapturePoint], list[Check]]:
    hosts = {flow.sender for flow in cell.flows} | {flow.receiver for flow in cell.flows}
    links: dict[str, list[str]] = {}
    for capture in cell.captures:
        links.setdefault(capture.node, []).append(capture.link)
    points: dict[str, CapturePoint] = {}
    checks: list[Check] = []
    for node in sorted(hosts - set(links)):
        checks.append(missing_check(node, "it sends or receives, and none of its interfaces is captured"))
    for node, captured in links.items():
        try:
            points[node] = read_point(cell_dir, node, captured, host=node in hosts)
        except CaptureError as error:
            checks.append(missing_check(node, relative(str(error), cell_dir)))
    return points, checks


def _app_records(directory: CellDir, flow: Flow, role: str) -> tuple[list[Record], list[Check]]:
    """What an app said; a missing file is one without records."""
    path = directory.apps / f"{flow.name}.{role}.ndjson"
    try:
        return (read_ndjson(path) if path.exists() else []), []
    except StoreError as error:
        return [], [Check(f"output of {flow.name}.{role}", False, relative(str(error), directory.root))]


def _flow(
    cell: Cell, flow: Flow, directory: CellDir, points: dict[str, CapturePoint], records: CellRecords, span_ns: int
) -> _FlowResult:
    sender, receiver, names = make_views(
        flow, points.get(flow.sender), points.get(flow.receiver), records.t0_realtime_ns
    )
    if flow.is_datagrams:
        return _datagrams(cell, flow, points.get(flow.receiver), records)
    told, checks = _app_records(directory, flow, "sender")
    heard, more = _app_records(directory, flow, "receiver")
    checks += more
    window = window_of(flow, receiver)
    moments = moments_of(cell, flow, sender, receiver, window)
    # which bytes of a connection belong together is known of netwarp's own messages only
    delivery = None if receiver is None or flow.program else delivered(receiver, flow.protocol)
    metrics = flow_metrics(cell, flow, sender, receiver, delivery, window, moments)
    seen = sender or receiver
    peers = {address: names.names[index] for address, index in (seen.peers if seen else {}).items()}
    samples = read_samples(told, peers, records.t0_monotonic_ns)
    hit = recovery.hit_path(cell, flow, moments)
    metrics |= recovery.recovery_metrics(cell, flow, sender, receiver, window, moments)
    metrics |= growth.wire_metrics(flow, sender, moments)
    metrics |= growth.kernel_metrics(flow, sender, samples, window, moments, hit)
    metrics |= tcp_metrics(flow, sender, receiver, window)
    metrics["gave_up_s"] = events.gave_up_s(flow, told, records.t0_monotonic_ns)
    if (primary := samples.get(flow.paths[0].name)) is not None:
        metrics["cwnd_bytes"] = time_weighted_mean(primary.t_s, primary.cwnd_bytes)
        metrics["srtt_s"] = time_weighted_mean(primary.t_s, primary.srtt_s)
    traces = path_traces(read_trace(directory.trace), flow, peers, _mss(told), records.t0_monotonic_ns)
    samples = with_thresholds(samples, traces)
    metrics |= failover_metrics(cell, flow, sender, receiver, window, moments, told, records.t0_monotonic_ns, metrics)
    metrics |= sctp_metrics(flow, sender, receiver, window)
    metrics |= waiting_metrics(flow, receiver, delivery, window)
    metrics |= transfer_metrics(cell, flow, receiver, window, metrics)
    metrics |= physics_metrics(cell, flow, sender, receiver, window, moments, metrics)
    happened = events.moment_events(flow, moments, names)
    if (subflows := subflows_of(flow, sender, receiver, window, names.names)) is not None:
        metrics |= subflows.metrics
        happened += subflows.events
    if receiver is not None:
        happened += events.outage_event(flow, longest_gap(cell, flow, receiver, window))
    if sender is not None:
        happened += events.heartbeat_events(flow, sender, moments, names)
    happened += events.socket_events(flow, told, records.t0_monotonic_ns)
    new_bytes = 0 if receiver is None else int(receiver.data.new_bytes.sum())
    if flow.program is None:
        checks += payload_check(flow, delivery, new_bytes, heard)
        checks += sent_check(flow, sender, told)
    else:
        checks += program_check(flow)
    checks += utilization_check(flow, metrics["utilization_ratio"])
    return _FlowResult(
        metrics=metrics,
        series=series.flow_series(receiver, names, samples, span_ns) | series.trace_series(traces),
        events=happened,
        packets_around_fault=packets_around_fault(cell, flow, sender, receiver, names.names, moments),
        checks=checks,
        transfer=Transfer(receiver, window),
    )


def _datagrams(cell: Cell, flow: Flow, receiver: CapturePoint | None, records: CellRecords) -> _FlowResult:
    """A flow of UDP or ICMP: packets and bytes by its addresses; all that needs numbers in the packets has no value."""
    metrics: dict[str, float | None] = dict.fromkeys(FLOW_METRICS)
    t_ns, ip_bytes = datagrams_at(cell, flow, receiver, records.t0_realtime_ns)
    if receiver is not None:
        metrics |= datagram_metrics(flow, t_ns, ip_bytes)
    checks = program_check(flow) + utilization_check(flow, metrics["utilization_ratio"])
    return _FlowResult(metrics, series.datagram_series(flow, t_ns, ip_bytes, cell), [], [], checks, NO_TRANSFER)


def _mss(told: list[Record]) -> int | None:
    """What the kernel's TCP counts as a packet, as the sender read it back; of MPTCP its first subflow."""
    value = (last(told, "in_force") or {}).get("mss_bytes")
    if value is None:
        paths = ((last(told, "summary") or {}).get("kernel") or {}).get("paths") or [{}]
        value = (paths[0].get("tcp_info") or {}).get("snd_mss_bytes")
    return value if isinstance(value, int) and value > 0 else None


def _own_metrics(
    cell: Cell, flow: Flow, metrics: dict[str, float | None]
) -> tuple[dict[str, float | None], list[Check]]:
    """The spec's own metrics: over this flow's, its times and rate, the cell's parameters, and those listed before.

    One that cannot be computed has no value and is a failed check.
    """
    names: dict[str, float | None] = {
        **dict.fromkeys(METRICS),  # what this protocol does not have has no value
        **metrics,
        "duration_s": cell.duration_ns / 1e9,
        "start_s": flow.start_ns / 1e9,
        "stop_s": None if flow.stop_ns is None else flow.stop_ns / 1e9,
        "rate_bit_s": flow.paths[0].bottleneck_bit_s,
    }
    names |= {name: float(number) for name, number in parameter_numbers(cell.parameters).items()}
    found: dict[str, float | None] = {}
    wrong: list[Check] = []
    for name, expression in cell.metrics.items():
        try:
            found[name] = evaluate(name, expression, names)
        except CaptureError as error:
            found[name] = None
            wrong.append(Check(f"metric {name} {flow.name}", False, str(error)))
        names[name] = found[name]
    return found, wrong


def _measurements(cell: Cell, flow: Flow, metrics: dict[str, float | None]) -> list[Measurement]:
    return [Measurement(cell.id, flow.name, name, value, unit_of(name)) for name, value in metrics.items()]
