"""Cuts time into bins of equal width."""

from __future__ import annotations

import numpy as np

from .native import Ints

BINS = 200


BIN_STEPS = (1, 2, 5)


def bin_s(duration_ns: int) -> float:
    """The shortest bin width of the form 1, 2 or 5 x 10^k s that cuts the duration into at most 200 bins."""
    exponent = -6
    while True:
        for step in BIN_STEPS:
            width = step * 10.0**exponent
            if duration_ns / 1e9 / width <= BINS + 1e-9:
                return width
        exponent += 1


def binned_bit_s(t_ns: Ints, amount_bytes: Ints, width_ns: int, duration_ns: int) -> list[float]:
    """Bytes per bin as bit/s. Bytes before T0 or after the duration are left out."""
    bins = -(-duration_ns // width_ns)
    counts = (t_ns >= 0) & (t_ns < duration_ns)
    total = np.bincount(t_ns[counts] // width_ns, weights=amount_bytes[counts], minlength=bins)
    widths = np.full(bins, width_ns, dtype=np.float64)
    if bins:
        widths[-1] = duration_ns - (bins - 1) * width_ns
    return [float(value) for value in np.round(total * 8e9 / widths, 3)]
