"""Reads the kernel's cwnd and srtt from the `sample` records of the sending application."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..captures.native import Floats
from ..store.app_records import AppRecord, PathState, Sample
from ..store.ndjson import of_kind

NAN = float("nan")
NUMBERS = ("t_s", "cwnd_bytes", "srtt_s", "ssthresh_bytes", "rto_s", "outstanding_packets", "outstanding_chunks")


@dataclasses.dataclass(frozen=True)
class Samples:
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
    outstanding_chunks: Floats
    states: tuple[tuple[float, str], ...] = ()


def read_samples(records: list[AppRecord], path_of_peer: Mapping[str, str], t0_monotonic_ns: int) -> dict[str, Samples]:
    """Path name -> its samples; "" holds those of the association. path_of_peer: the receiver's address -> path; an
    address without any packet keeps the address as its name.
    """
    rows: dict[str, list[tuple[float, ...]]] = {}
    states: dict[str, list[tuple[float, str]]] = {}
    for sample in of_kind(records, Sample):
        t_s = (sample.t_ns - t0_monotonic_ns) / 1e9
        for path in sample.paths:
            name = path_of_peer.get(path.address, path.address)
            rows.setdefault(name, []).append((t_s, *_of_path(path), NAN))
            known = states.setdefault(name, [])
            if path.state is not None and (not known or known[-1][1] != path.state):
                known.append((t_s, str(path.state)))
        if sample.association is not None:
            rows.setdefault("", []).append((t_s, NAN, NAN, NAN, NAN, NAN, sample.association.unacked_chunks))
    samples = {}
    for name, values in rows.items():
        table = np.array(values, dtype=np.float64)
        columns = {key: np.ascontiguousarray(table[:, number]) for number, key in enumerate(NUMBERS)}
        samples[name] = Samples(**columns, states=tuple(states.get(name, ())))
    return samples


def _of_path(path: PathState) -> tuple[float, float, float, float, float]:
    """NUMBERS without the first and the last."""
    return (
        _number(path.cwnd_bytes),
        _number(path.srtt_ns or None) / 1e9,  # 0: the kernel has not measured one yet
        _number(path.ssthresh_bytes),
        _number(path.rto_ns) / 1e9,
        _number(path.tcp_info.unacked_packets if path.tcp_info is not None else None),
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
