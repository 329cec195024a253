"""Table 3 of lee2008, and how far a reading of its model misses it.

Three rows (p = 1 %, mu = 40 kbit/s, rtt = 256 ms) are one condition and print different values, so the columns are
taken in three ways: A as they stand; B and C with model and testbed swapped, in the block of p or in the other two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from .model import Page, response_time_s
from .readings import PRINTED, Readings

Columns = Literal["A", "B", "C"]
COLUMNS: dict[Columns, str] = {
    "A": "columns as printed",
    "B": "model and testbed swapped in the rows of p",
    "C": "model and testbed swapped in the rows of mu and rtt",
}


@dataclass(frozen=True)
class Row:
    """A printed row: its condition, and the four times in s."""

    varied: Literal["p", "mu", "rtt"]
    loss: float
    rate_bit_s: float
    rtt_s: float
    model_tcp_s: float
    model_sctp_s: float
    testbed_tcp_s: float
    testbed_sctp_s: float


TABLE3 = (
    Row("p", 0.004, 40e3, 0.256, 20.76, 20.25, 18.19, 18.11),
    Row("p", 0.01, 40e3, 0.256, 20.33, 20.30, 18.22, 18.13),
    Row("p", 0.02, 40e3, 0.256, 21.26, 20.75, 18.49, 18.34),
    Row("mu", 0.01, 40e3, 0.256, 18.27, 18.13, 21.33, 20.82),
    Row("mu", 0.01, 400e3, 0.256, 4.91, 4.41, 5.09, 4.58),
    Row("mu", 0.01, 3000e3, 0.256, 3.69, 3.28, 3.99, 3.48),
    Row("rtt", 0.01, 40e3, 0.055, 14.78, 14.72, 13.71, 13.60),
    Row("rtt", 0.01, 40e3, 0.080, 14.86, 14.76, 14.55, 14.47),
    Row("rtt", 0.01, 40e3, 0.256, 18.22, 18.13, 21.33, 20.82),
)


def printed_model(row: Row, columns: Columns) -> tuple[float, float]:
    """The paper's model for TCP and SCTP, as its columns are read."""
    swapped = (columns == "B" and row.varied == "p") or (columns == "C" and row.varied != "p")
    return (row.testbed_tcp_s, row.testbed_sctp_s) if swapped else (row.model_tcp_s, row.model_sctp_s)


@dataclass(frozen=True)
class Miss:
    """The distance of a reading from the printed numbers: root mean square and largest of 18 relative differences."""

    rms: float
    largest: float


def model_times(readings: Readings = PRINTED) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The model in each row: columns TCP and SCTP, in s."""
    loss, rate, rtt = (np.array([getattr(row, name) for row in TABLE3]) for name in ("loss", "rate_bit_s", "rtt_s"))
    return np.column_stack(
        [
            response_time_s(loss, rate, rtt, protocol="tcp", readings=readings, page=Page()),
            response_time_s(loss, rate, rtt, protocol="sctp", readings=readings, page=Page()),
        ]
    )


def miss(readings: Readings, columns: Columns) -> Miss:
    """The distance of that reading from the table with those columns."""
    printed = np.array([printed_model(row, columns) for row in TABLE3])
    relative = np.abs(model_times(readings) / printed - 1)
    return Miss(rms=float(np.sqrt(np.mean(relative**2))), largest=float(relative.max()))
