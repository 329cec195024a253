"""The kernel's own word on cwnd and srtt, from the sender's NDJSON `sample` records."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from ..records import Record
from .native import Floats


@dataclasses.dataclass(frozen=True)
class Samples:
    """One path's samples: seconds from T0, bytes, seconds; NaN where the kernel gave none (SCTP tells no threshold: a
    trace does).
    """

    t_s: Floats
    cwnd_bytes: Floats
    srtt_s: Floats
    rto_s: Floats
    ssthresh_bytes: Floats


def read_samples(records: list[Record], path_of_peer: Mapping[str, str], t0_monotonic_ns: int) -> dict[str, Samples]:
    """Path name -> its samples. path_of_peer: the receiver's address -> path; an address no packet went to keeps its
    own name.
    """
    rows: dict[str, list[tuple[float, ...]]] = {}
    for record in records:
        if record.get("record") != "sample":
            continue
        t_s = (record["t_ns"] - t0_monotonic_ns) / 1e9
        for path in record.get("paths", ()):
            name = path_of_peer.get(path["address"], path["address"])
            srtt_ns = _number(path.get("srtt_ns") or None)  # 0: the kernel has not measured one yet
            kernel = (_number(path.get("cwnd_bytes")), srtt_ns / 1e9, _number(path.get("rto_ns")) / 1e9)
            rows.setdefault(name, []).append((t_s, *kernel, _number(path.get("ssthresh_bytes"))))
    found = {}
    for name, values in rows.items():
        found[name] = Samples(*np.array(values, dtype=np.float64).T)
    return found


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def time_weighted_mean(t_s: Floats, values: Floats) -> float | None:
    """The mean of a step function: each value holds until the next sample; the last one only ends the window.

    None without a value. One value alone is the mean.
    """
    there = ~np.isnan(values)
    t_s, values = t_s[there], values[there]
    if not len(values):
        return None
    spans = np.diff(t_s)
    if not len(spans) or spans.sum() <= 0:
        return float(values[-1])
    return float((values[:-1] * spans).sum() / spans.sum())
