"""Spans of time: what was captured in one, the rate and the longest gap in it, bins of equal width.

`netwarp analyze` computes a number over a whole capture, a cell over the window of its flow, both by the same function:
`until_ns` is the end of the window, the last instant that counts, ns as captured (None: the end of the capture).
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any, TypeVar

import numpy as np

from .native import Bools, Ints

Columns = TypeVar("Columns")
BINS = 200
BIN_STEPS = (1, 2, 5)


def by(time_ns: Ints, until_ns: int | None) -> Bools:
    """True for the instants that count."""
    return np.ones(len(time_ns), dtype=np.bool_) if until_ns is None else time_ns <= until_ns


def kept(columns: Columns, keep: Bools) -> Columns:
    """The same columns with some of their rows. columns: a dataclass that has arrays of one length and nothing else."""
    fields: Any = dataclasses.fields(columns)  # type: ignore[arg-type]
    return type(columns)(**{field.name: getattr(columns, field.name)[keep] for field in fields})


def rate_bit_s(amount_bytes: float, span_ns: int | None) -> float | None:
    """Bytes over the time in which they came, (first arrival, end]; None without a time."""
    return float(amount_bytes) * 8 / (span_ns / 1e9) if span_ns is not None and span_ns > 0 else None


def bytes_in(time_ns: Ints, amount_bytes: Ints, after_ns: int, until_ns: int) -> float:
    """The bytes that came in (after, until]."""
    return float(amount_bytes[(time_ns > after_ns) & (time_ns <= until_ns)].sum())


def longest_gap(time_ns: Ints, from_ns: int | None = None, to_ns: int | None = None) -> tuple[int, int] | None:
    """Begin and end of the longest time between two neighbours that touches [from, to]; None if there is none."""
    touching = np.ones(max(len(time_ns) - 1, 0), dtype=np.bool_)
    if from_ns is not None:
        touching &= time_ns[1:] >= from_ns
    if to_ns is not None:
        touching &= time_ns[:-1] <= to_ns
    places = np.flatnonzero(touching)
    if not len(places):
        return None
    at = places[np.argmax(np.diff(time_ns)[places])]
    return int(time_ns[at]), int(time_ns[at + 1])


def bin_s(duration_ns: int) -> float:
    """The shortest bin width of the form 1, 2 or 5 x 10^k s that cuts the duration into at most 200 bins."""
    widths = (step * 10.0**exponent for exponent in itertools.count(-6) for step in BIN_STEPS)
    return next(width for width in widths if duration_ns / 1e9 / width <= BINS + 1e-9)


def binned_bit_s(t_ns: Ints, amount_bytes: Ints, width_ns: int, duration_ns: int) -> list[float]:
    """Bytes per bin as bit/s. Bytes before T0 or after the duration are left out."""
    bins = -(-duration_ns // width_ns)
    counts = (t_ns >= 0) & (t_ns < duration_ns)
    total = np.bincount(t_ns[counts] // width_ns, weights=amount_bytes[counts], minlength=bins)
    widths = np.full(bins, width_ns, dtype=np.float64)
    if bins:
        widths[-1] = duration_ns - (bins - 1) * width_ns
    return [float(value) for value in np.round(total * 8e9 / widths, 3)]
