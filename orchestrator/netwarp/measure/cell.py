"""Analyses a cell: from its raw files to derived/{measurements,series,exchange,pages,packets,checks}.json."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import numpy as np

from ..captures.time_spans import bin_s
from ..core.errors import CaptureError, StoreError
from ..core.metrics.catalogue import CELL_METRICS, METRICS, unit_of
from ..core.metrics.expressions import evaluate, fill_in
from ..core.metrics.packet_names import Packets
from ..core.types import BACK, Cell, Check, Flow, Measurement, reversed_flow
from ..store import compressed
from ..store.app_records import AppRecord, InForce, Summary, read_app_log
from ..store.derived import CellEvent, CellSeries, CellWindows, FlowSeries, NearPacket
from ..store.digests import file_digest
from ..store.ndjson import last
from ..store.run_dir import CellDir, write_json, write_packed_json
from ..testbed.layout import make_layout
from . import make_series
from .capacity import Arrivals, CellCapacity
from .capture_point import CapturePoint, captured_links, read_point
from .cell_records import CellRecords, kernel_counters, read_cell_records
from .checks import (
    capture_checks,
    datagrams_check,
    memory_check,
    missing_check,
    payload_check,
    program_check,
    relative,
    sent_check,
    within_clocks,
)
from .datagram_flows import datagram_flow_of, token_of
from .event_rows import flow_events, timeline_events
from .fairness import convergence_times, courses, windows_of
from .flow_over_time import asked_of
from .flow_packets import check_ports, packets_at_both_ends
from .groups import flow_metrics, without_values
from .groups.counters import (
    agent_metrics,
    aqm_metrics,
    counted_at_end,
    cpu_metrics,
    held_packets,
    mark_checks,
    policer_metrics,
)
from .groups.datagrams import datagram_flow_metrics, datagram_window
from .groups.flow_groups import group_metrics
from .groups.flow_sharing import flow_sharing_metrics, jain_index, span_metrics
from .groups.messages import message_metrics
from .groups.physics import lone_queue
from .groups.quic import quic_metrics
from .groups.traffic import datagram_metrics, datagrams_at
from .kernel_samples import path_traces, read_samples, read_trace, trace_check, with_thresholds
from .observation import (
    FlowObservation,
    Window,
    broke_ns,
    goodput_known,
    moments_of,
    program_end,
    program_window,
    window_of,
)
from .packets_around_fault import packets_around_fault
from .page_objects import pages_check
from .passages import PassageReader, link_metrics
from .planned_paths import address_removed, killed_ns, unheard_ns
from .quic_packets import quic_packets, quic_window
from .window_series import cell_windows

READ_ALONE_BYTES = 2_000_000
"""Of a cell's compressed captures: larger ones are read at once, each node's by a thread of its own."""


@dataclasses.dataclass(frozen=True)
class _FlowResult:
    observation: FlowObservation
    metrics: dict[str, float | None]
    series: FlowSeries
    events: list[CellEvent]
    packets_around_fault: list[NearPacket]
    checks: list[Check]
    arrivals: Arrivals | None = None


def analyze_cell(cell: Cell, cell_dir: Path) -> None:
    """Analyse one cell and write its derived files; each is written whole or not at all, checks.json last.

    A missing or unreadable file (a capture, an app's output), or a metric of the spec that cannot be computed, becomes
    a failed check, and the metrics that need it have no value. Raises CaptureError: init.ndjson cannot be used, or two
    flows share a port; StoreError: the results cannot be written.
    """
    directory = CellDir(cell_dir)
    records = read_cell_records(directory.init_log)
    check_ports(cell.flows)
    points, checks = _read_points(cell, cell_dir, records.checksums_left)
    checks += capture_checks(cell, list(points.values()), records.captures)
    checks += trace_check(cell, records.trace)
    layout = make_layout(cell)
    counters = kernel_counters(records.proc, layout.namespaces)
    checks.append(memory_check(counters))
    counted = counted_at_end(cell, layout, records.qdiscs, records.addresses)
    checks += mark_checks(cell, layout, counted, points)
    capacity = CellCapacity(cell, records.late_ns)
    span_ns = make_series.span_ns(cell, points.values(), records.ready.t0_realtime_ns)
    backs = {flow.name: reversed_flow(flow) for flow in cell.flows if flow.reverse is not msgspec.UNSET}
    results = {
        flow.name: _flow(cell, flow, directory, points, records, span_ns, backs.get(flow.name)) for flow in cell.flows
    }
    shared, of_the_cell = flow_sharing_metrics({name: result.observation for name, result in results.items()})
    rate = "goodput_bit_s" if goodput_known(result.observation for result in results.values()) else "throughput_bit_s"
    of_the_cell["jain_index"] = jain_index([result.metrics[rate] for result in results.values()])
    of_the_cell |= aqm_metrics(cell, counted) | agent_metrics(cell, directory, records.rules)
    of_the_cell |= policer_metrics(cell, records.policers)
    passed = cell.measure or any(flow.protocol == "quic" for flow in cell.flows)
    held = held_packets(cell, layout, records.qdiscs, records.addresses) if passed else {}
    reader = PassageReader(cell, cell_dir, layout, records.ready.t0_realtime_ns, held)
    for flow in cell.flows:  # losses and queues, which no packet of QUIC tells: without [measure], too
        if flow.protocol == "quic":
            shared[flow.name] = shared[flow.name] | reader.of_flow(flow).metrics()
    asked = _asked(cell, reader, {name: each.observation for name, each in results.items()})
    if asked is not None:
        shared = {name: metrics | asked.flows[name] for name, metrics in shared.items()}
        of_the_cell |= asked.of_the_cell
    measurements: list[Measurement] = []
    of_flows: dict[str, dict[str, float | None]] = {}
    without: dict[str, list[str]] = {}
    for flow in cell.flows:
        every = results[flow.name].metrics | shared[flow.name]
        metrics, without[flow.name], clocks = within_clocks(flow.name, flow.paths, every, records.ready)
        checks += clocks
        of_flows[flow.name] = metrics
        of_host = counters.get(flow.sender, {})
        own, failed = _own_metrics(cell, flow, metrics, asked_of(results[flow.name].observation, of_host))
        measurements += _measurements(cell, flow, metrics | own)
        checks += results[flow.name].checks + failed
        if (arrivals := results[flow.name].arrivals) is not None:
            checks += capacity.checks(flow, arrivals)
        if flow.program is not None and flow.protocol != "icmp":
            passages = reader.of_flow(reversed_flow(flow)).metrics() if flow.protocol == "quic" else {}
            measurements += _other_direction(cell, flow, directory, points, records, passages)
        elif (back := backs.get(flow.name)) is not None:
            found = _flow(cell, back, directory, points, records, span_ns, flow)
            metrics, without[back.name], clocks = within_clocks(back.name, back.paths, found.metrics, records.ready)
            own, failed = _own_metrics(cell, back, metrics, asked_of(found.observation, counters.get(back.sender, {})))
            measurements += _measurements(cell, back, metrics | own)
            checks += clocks + found.checks + failed
    others = group_metrics(cell, of_flows)
    for name, every in {} if asked is None else asked.links.items():
        others[name], without[name], clocks = within_clocks(name, (), every, records.ready)
        checks += clocks
    for name, metrics in others.items():
        measurements += [
            Measurement(cell.id, name, metric, value, unit_of(metric)) for metric, value in metrics.items()
        ]
    measurements += [
        Measurement(cell.id, "", name, of_the_cell[name], METRICS[name].unit)
        for name in sorted(CELL_METRICS)
        if name in of_the_cell
    ]
    events = timeline_events(cell) + [event for result in results.values() for event in result.events]
    write_json(directory.measurements, measurements)
    curves = CellSeries(
        bin_s=bin_s(span_ns),
        duration_s=cell.duration_ns / 1e9,
        flows={name: result.series for name, result in results.items()},
        faults=make_series.fault_spans(cell),
        events=sorted(events, key=lambda event: event.t_s),
    )
    write_packed_json(directory.series, curves)
    write_packed_json(directory.exchange, {name: result.packets_around_fault for name, result in results.items()})
    pages = {flow.name: results[flow.name].observation.page_objects for flow in cell.flows if flow.is_page}
    if pages:
        write_packed_json(directory.pages, pages)
    if asked is not None:
        write_packed_json(directory.windows, asked.windows)
    if any(without.values()):
        write_json(directory.clock_limits, without)
    write_json(directory.packets, capture_digests(directory.capture))
    write_json(directory.checks, checks)


@dataclasses.dataclass(frozen=True)
class _Asked:
    """What [measure] asks for: metrics of flows, of directions of links and of the cell, and its windows of time."""

    flows: dict[str, dict[str, float | None]]
    links: dict[str, dict[str, float | None]]
    of_the_cell: dict[str, float | None]
    windows: CellWindows


def _asked(cell: Cell, reader: PassageReader, flows: Mapping[str, FlowObservation]) -> _Asked | None:
    asked = cell.measure
    if not asked:
        return None
    over_paths = {flow.name: reader.of_flow(flow) for flow in cell.flows}
    over_links = {name: reader.of_link(name) for name in asked.links}
    runs = courses(flows)
    windows = windows_of(runs, asked.window_ns, cell.duration_ns)
    converged = convergence_times(runs, asked)
    indices = [value for value in windows.jain() if value is not None]
    of_flows = {
        name: {**passages.metrics(), "convergence_time_s": converged.get(name)} for name, passages in over_paths.items()
    }
    of_links = {name: {**each.metrics(), **link_metrics(cell, name, each)} for name, each in over_links.items()}
    of_the_cell = {
        "jain_windows_mean_index": sum(indices) / len(indices) if indices else None,
        "jain_windows_least_index": min(indices, default=None),
    }
    if not isinstance(asked.span_ns, msgspec.UnsetType):
        shares, of_all = span_metrics(flows, *asked.span_ns)
        of_flows = {
            name: metrics | shares[name] | over_paths[name].span_metrics(*asked.span_ns)
            for name, metrics in of_flows.items()
        }
        of_links = {name: metrics | over_links[name].span_metrics(*asked.span_ns) for name, metrics in of_links.items()}
        of_the_cell |= of_all
    return _Asked(
        flows=of_flows,
        links=of_links,
        of_the_cell=of_the_cell,
        windows=cell_windows(cell, asked, windows, flows, over_paths, over_links),
    )


def capture_digests(captures: Path) -> dict[str, str]:
    """Capture -> SHA-256 of its file. A file holds only packets and their times, so equal cells can be recognised by
    these even after the captures are deleted. Raises StoreError: two files are one capture, or one is larger than the
    limit.
    """
    files: dict[str, Path] = {}
    for path in sorted(captures.glob("*.pcap*")):
        name = path.name.split(".pcap")[0]
        if name in files:
            raise StoreError(f"{path}: the same capture is there in another form too: remove one of them")
        files[name] = path
    return {name: file_digest(path, "capture_bytes") for name, path in files.items()}


def _read_points(cell: Cell, cell_dir: Path, unfinished: bool) -> tuple[dict[str, CapturePoint], list[Check]]:
    hosts = {flow.sender for flow in cell.flows} | {flow.receiver for flow in cell.flows}
    links = {node: captured_links(cell, node) for node in dict.fromkeys(capture.node for capture in cell.captures)}
    lone = any(lone_queue(cell, flow) for flow in cell.flows)

    marked = {end for link in cell.links if link.forward.aqm or link.backward.aqm for end in (link.a, link.b)}

    def read(node: str) -> CapturePoint | Check:
        host = node in hosts
        more = (*(("identities",) if host and lone else ()), *(("packets",) if node in marked else ()))
        try:
            return read_point(cell_dir, node, links[node], host=host, unfinished=unfinished, more=more)
        except CaptureError as error:
            return missing_check(node, relative(str(error), cell_dir))

    if sum(path.stat().st_size for path in (cell_dir / "capture").glob("*.pcap*")) > READ_ALONE_BYTES:
        with ThreadPoolExecutor() as readers:
            found = dict(zip(links, readers.map(read, links), strict=True))
    else:
        found = {node: read(node) for node in links}
    checks = [
        missing_check(node, "it sends or receives, and none of its interfaces is captured")
        for node in sorted(hosts - set(links))
    ]
    checks += [point for point in found.values() if isinstance(point, Check)]
    return {node: point for node, point in found.items() if isinstance(point, CapturePoint)}, checks


def _app_records(directory: CellDir, flow: Flow, role: str) -> tuple[list[AppRecord], list[Check]]:
    """The records of an application; none if the file is missing. Of a flow's other direction the receiver sends."""
    name = flow.name
    if flow.is_back:
        name, role = flow.name.removesuffix(BACK), "receiver" if role == "sender" else "sender"
    path = directory.apps / f"{name}.{role}.ndjson"
    try:
        return (read_app_log(path) if compressed.exists(path) else []), []
    except StoreError as error:
        return [], [Check(f"output of {name}.{role}", False, relative(str(error), directory.root))]


def _peer(
    cell: Cell, flow: Flow, directory: CellDir, points: dict[str, CapturePoint], records: CellRecords
) -> FlowObservation:
    """The other direction of a flow, as far as its messages need it."""
    t0_ns = records.ready.t0_realtime_ns
    sender, receiver, _ = packets_at_both_ends(flow, points.get(flow.sender), points.get(flow.receiver), t0_ns)
    sender_records, _ = _app_records(directory, flow, "sender")
    return FlowObservation(
        cell,
        flow,
        sender,
        receiver,
        sender_records=sender_records,
        t0_monotonic_ns=records.ready.t0_monotonic_ns,
    )


def _flow(
    cell: Cell,
    flow: Flow,
    directory: CellDir,
    points: dict[str, CapturePoint],
    records: CellRecords,
    span_ns: int,
    other: Flow | None = None,
) -> _FlowResult:
    """other: the flow's other direction, where its messages may answer those of that."""
    ready = records.ready
    if flow.protocol == "quic":
        return _quic(cell, flow, points, records)
    sender, receiver, path_names = packets_at_both_ends(
        flow, points.get(flow.sender), points.get(flow.receiver), ready.t0_realtime_ns, killed_ns(cell, flow.receiver)
    )
    if flow.is_datagrams and flow.program is not None:
        return _datagrams(cell, flow, points.get(flow.receiver), records)
    sender_records, checks = _app_records(directory, flow, "sender")
    receiver_records, more = _app_records(directory, flow, "receiver")
    checks += more
    if flow.is_datagrams:
        ends = (points.get(flow.sender), points.get(flow.receiver))
        found = _own_datagrams(cell, flow, ends, records, sender_records, receiver_records)
        return dataclasses.replace(found, checks=checks + found.checks)
    end = sender or receiver
    peers = {address: path_names[index] for address, index in (end.peers if end else {}).items()}
    traces = path_traces(read_trace(directory.trace), flow, peers, _mss(sender_records), ready.t0_monotonic_ns)
    broke = broke_ns(flow, sender_records, ready.t0_monotonic_ns)
    gone_ns = cell.duration_ns if broke is None else broke
    window = window_of(flow, receiver, program_end(flow, records.exits), gone_ns=gone_ns)
    observation = FlowObservation(
        cell=cell,
        flow=flow,
        sender=sender,
        receiver=receiver,
        path_names=path_names,
        window=window,
        moments=moments_of(cell, flow, sender, receiver, window),
        samples=with_thresholds(read_samples(sender_records, peers, ready.t0_monotonic_ns), traces),
        sender_records=sender_records,
        receiver_records=receiver_records,
        t0_monotonic_ns=ready.t0_monotonic_ns,
        peer=None if other is None else _peer(cell, other, directory, points, records),
    )
    metrics = flow_metrics(observation)
    new_bytes = 0 if receiver is None else int(receiver.data.new_bytes.sum())
    metrics |= cpu_metrics(flow, records.exits, None if receiver is None else new_bytes)
    if flow.program is None:
        unheard = unheard_ns(cell, flow)
        checks += payload_check(flow, observation.delivery, new_bytes, receiver_records, ready.t0_monotonic_ns, unheard)
        removed = address_removed(cell, flow.sender)
        checks += sent_check(flow, sender, sender_records, removed=removed)
        if flow.is_page:
            checks += pages_check(flow, observation.page_objects, receiver_records)
    else:
        checks += program_check(flow)
    return _FlowResult(
        observation=observation,
        metrics=metrics,
        series=make_series.flow_series(receiver, path_names, observation.samples, traces, span_ns),
        events=flow_events(observation),
        packets_around_fault=packets_around_fault(observation),
        checks=checks,
        arrivals=Arrivals.of_flow(observation),
    )


def _other_direction(
    cell: Cell,
    flow: Flow,
    directory: CellDir,
    points: dict[str, CapturePoint],
    records: CellRecords,
    more: Mapping[str, float | None],
) -> list[Measurement]:
    """The measurements of what a program's receiver sent to its sender, with `more`; none if that was no payload."""
    back, other = reversed_flow(flow), {"sender": "receiver", "receiver": "sender"}
    exits = {
        f"{back.name}.{there}": records.exits[f"{flow.name}.{here}"]
        for here, there in other.items()
        if f"{flow.name}.{here}" in records.exits
    }
    found = _flow(cell, back, directory, points, dataclasses.replace(records, exits=exits), 0)
    metrics, _, _ = within_clocks(back.name, back.paths, {**found.metrics, **more}, records.ready)
    carried = metrics["packets" if back.is_datagrams else "payload_bytes"]
    return _measurements(cell, back, metrics) if carried else []


def _datagrams(cell: Cell, flow: Flow, receiver: CapturePoint | None, records: CellRecords) -> _FlowResult:
    """A flow of UDP or ICMP: packets and bytes by its addresses. Metrics that need sequence numbers have no value."""
    metrics, window = without_values(flow), Window(None, flow.stop_ns)
    t_ns, ip_bytes = datagrams_at(cell, flow, receiver, records.ready.t0_realtime_ns)
    if receiver is not None:
        window = program_window(flow, t_ns, program_end(flow, records.exits))
        metrics |= datagram_metrics(cell, flow, t_ns, ip_bytes, window)
    curves = make_series.datagram_series(flow, t_ns, ip_bytes, cell)
    arrivals = Arrivals.of_datagrams(t_ns, ip_bytes, window)
    return _FlowResult(FlowObservation(cell, flow), metrics, curves, [], [], program_check(flow), arrivals)


def _quic(cell: Cell, flow: Flow, points: dict[str, CapturePoint], records: CellRecords) -> _FlowResult:
    """A flow of QUIC: what headers, sizes and times show without keys."""
    t0_ns = records.ready.t0_realtime_ns
    sender, receiver = (quic_packets(cell, flow, points.get(node), t0_ns) for node in (flow.sender, flow.receiver))
    metrics = without_values(flow)
    nothing = np.zeros(0, dtype=np.int64)
    t_ns, ip_bytes = nothing, nothing
    window = Window(None, flow.stop_ns)
    if receiver is not None:
        arrived = receiver.datagrams.data
        t_ns, ip_bytes = arrived.t_ns, arrived.ip_bytes
        window = quic_window(flow, t_ns, program_end(flow, records.exits))
        metrics |= datagram_metrics(cell, flow, t_ns, ip_bytes, window)
    metrics |= quic_metrics(flow, sender, receiver, window)
    observation = FlowObservation(
        cell,
        flow,
        None if sender is None else sender.datagrams,
        None if receiver is None else receiver.datagrams,
        window=window,
    )
    curves = make_series.datagram_series(flow, t_ns, ip_bytes, cell)
    arrivals = Arrivals.of_datagrams(t_ns, ip_bytes, window)
    return _FlowResult(observation, metrics, curves, [], [], program_check(flow), arrivals)


def _own_datagrams(
    cell: Cell,
    flow: Flow,
    points: tuple[CapturePoint | None, CapturePoint | None],
    records: CellRecords,
    sender_records: list[AppRecord],
    receiver_records: list[AppRecord],
) -> _FlowResult:
    """A flow of netwarp's own UDP: what became of each datagram, by its number."""
    metrics, (sender, receiver), token = without_values(flow), points, token_of(sender_records)
    observation = FlowObservation(cell, flow, sender_records=sender_records)
    nothing = np.zeros(0, dtype=np.int64)
    if sender is None or receiver is None or token is None:
        metrics |= message_metrics(observation)
        curves = make_series.datagram_series(flow, nothing, nothing, cell)
        return _FlowResult(observation, metrics, curves, [], [], payload_check(flow, None, 0, receiver_records, 0))
    datagrams = datagram_flow_of(cell, flow, sender, receiver, token, records.ready.t0_realtime_ns)
    window = datagram_window(flow, datagrams)
    observation = dataclasses.replace(
        observation, datagrams=datagrams, window=window, t0_monotonic_ns=records.ready.t0_monotonic_ns
    )
    t_ns, ip_bytes = datagrams.arrived.t_ns, datagrams.arrived.ip_bytes
    metrics |= datagram_metrics(cell, flow, t_ns, ip_bytes, window) | datagram_flow_metrics(flow, datagrams, window)
    metrics |= message_metrics(observation)
    checks = datagrams_check(flow, datagrams, sender_records, receiver_records, unheard_ns(cell, flow))
    curves = make_series.datagram_series(flow, t_ns, ip_bytes, cell)
    arrivals = Arrivals.of_datagrams(t_ns, ip_bytes, window)
    return _FlowResult(observation, metrics, curves, [], [], checks, arrivals)


def _mss(records: list[AppRecord]) -> int | None:
    """The bytes that the kernel's TCP counts as one packet, as the sender read it back; for MPTCP that of the first
    subflow.
    """
    in_force, summary = last(records, InForce), last(records, Summary)
    value = in_force.mss_bytes if in_force else None
    if value is None and summary is not None and summary.kernel.paths and summary.kernel.paths[0].tcp_info is not None:
        value = summary.kernel.paths[0].tcp_info.snd_mss_bytes
    return value or None


def _own_metrics(
    cell: Cell, flow: Flow, metrics: dict[str, float | None], packets: Packets | None
) -> tuple[dict[str, float | None], list[Check]]:
    """The metrics that the spec defines: expressions of this flow's metrics, its packets, its times and rate, and the
    spec's metrics before them. One that cannot be computed has no value and gives a failed check.
    """
    names: dict[str, float | None] = {
        **dict.fromkeys((*METRICS, *cell.metric_units)),  # what this flow or cell does not have has no value
        **metrics,
        "duration_s": cell.duration_ns / 1e9,
        "start_s": flow.start_ns / 1e9,
        "stop_s": None if flow.stop_ns is None else flow.stop_ns / 1e9,
        "rate_bit_s": flow.paths[0].bottleneck_bit_s,
    }
    own: dict[str, float | None] = {}
    failed: list[Check] = []
    for name, expression in cell.metrics.items():
        try:
            own[name] = evaluate(name, expression, names, packets)
        except CaptureError as error:
            own[name] = None
            failed.append(Check(f"metric {name} {flow.name}", False, str(error)))
        names[name] = own[name]
    return own, failed


def _measurements(cell: Cell, flow: Flow, metrics: dict[str, float | None]) -> list[Measurement]:
    cell_id = cell.id  # a hash of the whole cell: made once
    return [Measurement(cell_id, flow.name, name, value, unit_of(name)) for name, value in metrics.items()]


def with_expressions(
    cell: Cell, measurements: Sequence[Measurement], expressions: Mapping[str, str]
) -> list[Measurement]:
    """A cell's measurements, plus the metrics of another spec computed from them. Raises CaptureError if one cannot be
    computed.
    """
    changed: dict[str, str] = {}
    for name, text in expressions.items():
        now = fill_in(text, cell.parameters, cell.duration_ns)
        if cell.metrics.get(name) != now:
            changed[name] = now
    kept = [measurement for measurement in measurements if measurement.metric not in changed]
    asked = msgspec.structs.replace(cell, metrics=changed)
    for flow in cell.flows if changed else ():
        own, wrong = _own_metrics(
            asked,
            flow,
            {measurement.metric: measurement.value for measurement in kept if measurement.flow == flow.name},
            None,
        )
        if wrong:
            raise CaptureError(f"{cell.id}: {wrong[0].check}: {wrong[0].detail}")
        kept += _measurements(cell, flow, own)
    return kept
