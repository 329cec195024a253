"""The account of the sender's kernel: the samples of its socket, and its tracepoints.

apps/trace.bin (docs/formats.md) has the congestion state of each path at every SACK (sctp:sctp_probe_path) or segment
(tcp:tcp_probe), before the kernel processed that packet. apps/cell-init/trace_buffer.h has the same layout.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from array import array
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..captures.native import Bools, Floats, Rows
from ..core.errors import StoreError
from ..core.inside import inside
from ..core.limits import limits
from ..core.types import Cell, Check, Flow
from ..store.app_records import AppRecord, PathState, Sample
from ..store.init_records import Trace
from ..store.ndjson import of_kind

NAN = float("nan")
NUMBERS = (
    "t_s", "cwnd_bytes", "srtt_s", "ssthresh_bytes", "rto_s", "outstanding_packets", "bbr_bw_bit_s", "bbr_min_rtt_s",
    "bbr_pacing_gain", "bbr_cwnd_gain", "outstanding_chunks",
)  # fmt: skip
BBR_UNIT = 256
"""A gain of 1 (net/ipv4/tcp_bbr.c)."""


@dataclasses.dataclass(frozen=True)
class PathSamples:
    """The samples of one path: seconds from T0, bytes, seconds, counts; NaN where the kernel gave no value (SCTP
    reports no threshold; a trace does).

    outstanding: sent and not yet acknowledged: TCP's packets, or the chunks of a whole SCTP association. states: (from
    s, state) for each change of an SCTP path's state.
    """

    t_s: Floats
    cwnd_bytes: Floats
    srtt_s: Floats
    ssthresh_bytes: Floats
    rto_s: Floats
    outstanding_packets: Floats
    bbr_bw_bit_s: Floats
    bbr_min_rtt_s: Floats
    bbr_pacing_gain: Floats
    bbr_cwnd_gain: Floats
    outstanding_chunks: Floats
    states: tuple[tuple[float, str], ...] = ()


def read_samples(
    records: list[AppRecord], path_of_peer: Mapping[str, str], t0_monotonic_ns: int
) -> dict[str, PathSamples]:
    """Path name -> its samples; "" holds those of the association. path_of_peer: the receiver's address -> path; an
    address without any packet keeps the address as its name. Raises StoreError: more paths than the limit.
    """
    rows: dict[str, array[float]] = {}
    states: dict[str, list[tuple[float, str]]] = {}
    for sample in of_kind(records, Sample):
        t_s = (sample.t_ns - t0_monotonic_ns) / 1e9
        for path in sample.paths:
            name = path_of_peer.get(path.address, path.address)
            rows.setdefault(name, array("d")).extend((t_s, *_of_path(path), NAN))
            known = states.setdefault(name, [])
            if path.state is not None and (not known or known[-1][1] != path.state):
                known.append((t_s, str(path.state)))
        if sample.association is not None:
            nothing = (NAN,) * (len(NUMBERS) - 2)
            rows.setdefault("", array("d")).extend((t_s, *nothing, sample.association.unacked_chunks))
        if len(rows) > limits().paths_of_one:
            raise StoreError(f"samples of {limits().beyond('paths_of_one')}")
    samples = {}
    for name, values in rows.items():
        table = np.frombuffer(values).reshape(-1, len(NUMBERS))
        columns = {key: np.ascontiguousarray(table[:, number]) for number, key in enumerate(NUMBERS)}
        samples[name] = PathSamples(**columns, states=tuple(states.get(name, ())))
    return samples


def _of_path(path: PathState) -> tuple[float, ...]:
    """NUMBERS without the first and the last."""
    bbr = (NAN,) * 4
    if (info := path.bbr_info) is not None:
        # without a sample yet the minimum is ~0
        min_rtt_s = NAN if info.min_rtt_us == 0xFFFFFFFF else info.min_rtt_us / 1e6
        bbr = (8.0 * info.bw_byte_s, min_rtt_s, info.pacing_gain / BBR_UNIT, info.cwnd_gain / BBR_UNIT)
    return (
        _number(path.cwnd_bytes),
        _number(path.srtt_ns or None) / 1e9,  # 0: the kernel has not measured one yet
        _number(path.ssthresh_bytes),
        _number(path.rto_ns) / 1e9,
        _number(path.tcp_info.unacked_packets if path.tcp_info is not None else None),
        *bbr,
    )


def _number(value: int | None) -> float:
    return NAN if value is None else float(value)


def time_weighted_mean(t_s: Floats, values: Floats) -> float | None:
    """The mean of a step function: each value holds until the next sample, and the last one only ends the window. None
    without a value; a single value is the mean.
    """
    there = ~np.isnan(values)
    t_s, values = t_s[there], values[there]
    if not len(values):
        return None
    spans = np.diff(t_s)
    if not len(spans) or spans.sum() <= 0:
        return float(values[-1])
    return float((values[:-1] * spans).sum() / spans.sum())


SCTP_PATH, TCP = 1, 2
RECORD = np.dtype(
    [
        ("t_ns", "<i8"), ("connection", "<u8"), ("cwnd", "<u4"), ("ssthresh", "<u4"), ("flight", "<u4"),
        ("acked", "<u4"), ("mtu", "<u4"), ("state", "<u4"), ("local_port", "<u2"), ("peer_port", "<u2"), ("kind", "u1"),
        ("primary", "u1"), ("family", "u1"), ("zero", "u1"), ("address", "u1", 16),
    ]
)  # fmt: skip
"""One event: struct trace_record of apps/cell-init/trace_buffer.h."""
NO_THRESHOLD = 0x7FFFFFFF
"""TCP_INFINITE_SSTHRESH (net/tcp.h): no threshold yet."""


@dataclasses.dataclass(frozen=True)
class PathTrace:
    """The trace of one path, one row per event: seconds from T0, bytes; NaN while there is no threshold.

    partial_bytes_acked (RFC 9260 7.2.2) is SCTP's, srtt_s TCP's; the other one is NaN.
    """

    t_s: Floats
    cwnd_bytes: Floats
    ssthresh_bytes: Floats
    flight_bytes: Floats
    partial_bytes_acked: Floats
    srtt_s: Floats


def trace_check(cell: Cell, record: Trace | None) -> list[Check]:
    """Checks that no event was lost, if a flow asks for tracepoints."""
    if not any(flow.sender_options.get("tracepoints") for flow in cell.flows):
        return []
    if record is None:
        return [Check("trace", False, "init.ndjson has no record of it")]
    detail = f"{record.events} events, {record.lost} lost" + (f", errno {record.errno}" if record.errno else "")
    return [Check("trace", not record.lost and not record.errno, detail)]


def read_trace(path: Path) -> Rows:
    """Every event, sorted by time; empty if there was no trace."""
    if not path.exists():
        return np.zeros(0, dtype=RECORD)
    data = inside(path).read_bytes("file_bytes")
    return np.frombuffer(data[: len(data) // RECORD.itemsize * RECORD.itemsize], dtype=RECORD)


def path_traces(
    events: Rows, flow: Flow, path_of_peer: Mapping[str, str], mss_bytes: int | None, t0_monotonic_ns: int
) -> dict[str, PathTrace]:
    """Path name -> its trace. path_of_peer: the receiver's address -> path. mss_bytes: bytes that TCP counts as one
    packet.

    An SCTP event has only peer address and port. An association of another flow to the same address and port would be
    mixed in, but a cell with two such flows is refused (check_ports()).
    """
    mine = (events["peer_port"] == flow.port) & (events["kind"] == (SCTP_PATH if flow.protocol == "sctp" else TCP))
    traces: dict[str, PathTrace] = {}
    for address, name in path_of_peer.items():
        rows = events[mine & _to(events, address)]
        if len(rows):
            traces[name] = _trace(rows, flow.protocol == "sctp", mss_bytes, t0_monotonic_ns)
    return traces


def with_thresholds(samples: Mapping[str, PathSamples], traces: Mapping[str, PathTrace]) -> dict[str, PathSamples]:
    """The samples with ssthresh_bytes filled in from the trace where the kernel does not report it (SCTP): from the
    first event at or after the sample, which shows the state before its packet; NaN after the last event.
    """
    completed = dict(samples)
    for name, trace in traces.items():
        if name in samples and np.isnan(samples[name].ssthresh_bytes).all():
            place = np.searchsorted(trace.t_s, samples[name].t_s)
            there = np.append(trace.ssthresh_bytes, np.nan)[place]
            completed[name] = dataclasses.replace(samples[name], ssthresh_bytes=there)
    return completed


def _to(events: Rows, address: str) -> Bools:
    peer = ipaddress.ip_address(address)
    packed = np.zeros(16, dtype=np.uint8)
    packed[: len(peer.packed)] = np.frombuffer(peer.packed, dtype=np.uint8)
    same: Bools = (events["address"] == packed).all(axis=1) & (events["family"] == peer.version)
    return same


def _trace(rows: Rows, sctp: bool, mss_bytes: int | None, t0_monotonic_ns: int) -> PathTrace:
    unit = 1.0 if sctp else float("nan") if mss_bytes is None else float(mss_bytes)
    threshold = rows["ssthresh"].astype(np.float64)
    if not sctp:
        threshold[rows["ssthresh"] >= NO_THRESHOLD] = np.nan
    none = np.full(len(rows), np.nan)
    return PathTrace(
        t_s=(rows["t_ns"] - t0_monotonic_ns) / 1e9,
        cwnd_bytes=rows["cwnd"] * unit,
        ssthresh_bytes=threshold * unit,
        flight_bytes=rows["flight"].astype(np.float64),
        partial_bytes_acked=rows["acked"].astype(np.float64) if sctp else none,
        srtt_s=none if sctp else rows["state"] / 1e6,
    )
