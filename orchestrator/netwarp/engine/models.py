"""Models of papers as functions: lee2008's response time of a web object, and other models to compare it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..core.errors import SpecError
from ..measure.models.latency_models import Yardsticks, yardsticks
from ..measure.models.lee2008.model import (
    HEADER_BYTES,
    INITIAL_WINDOW,
    Page,
    Values,
    check_condition,
    packets_of,
    response_time_s,
    round_trip_s,
)
from ..measure.models.lee2008.readings import BEST, PRINTED, Readings
from ..measure.models.lee2008.table3 import COLUMNS, TABLE3, Columns, Miss, miss, model_times, printed_model

NAMED_READINGS: dict[str, Readings] = {"printed": PRINTED, **BEST}
"""The readings that have a name."""

__all__ = [
    "COLUMNS", "NAMED_READINGS", "TABLE3", "Columns", "Miss", "ModelTimes", "Page", "Readings", "lee2008_model",
    "lee2008_yardsticks", "miss", "model_times", "printed_model", "read_switches",
]  # fmt: skip


@dataclass(frozen=True)
class ModelTimes:
    """E(T_tcp) and E(T_sctp) in s, with the shape to which the arguments broadcast."""

    tcp_s: Values
    sctp_s: Values


def lee2008_model(
    loss: npt.ArrayLike,
    rate_bit_s: npt.ArrayLike,
    rtt_s: npt.ArrayLike,
    *,
    reading: str = "printed",
    switches: Mapping[str, str] | None = None,
    page: Page | None = None,
) -> ModelTimes:
    """The mean response time by lee2008's model. loss: a ratio. reading: one of `printed`, `corrected`, `A`, `B`, `C`
    (the best found for that way to read Table 3's columns); switches: single steps read otherwise
    (docs/lee2008-model.md). SpecError: no such reading or switch, or a number out of range.
    """
    readings, page = read_switches(reading, switches), page or Page()
    tcp, sctp = (
        response_time_s(loss, rate_bit_s, rtt_s, protocol=protocol, readings=readings, page=page)
        for protocol in ("tcp", "sctp")
    )
    return ModelTimes(tcp, sctp)


def read_switches(reading: str, switches: Mapping[str, str] | None = None) -> Readings:
    """A named reading with some switches changed."""
    if reading not in NAMED_READINGS:
        raise SpecError(f'there is no reading "{reading}"; there are {", ".join(NAMED_READINGS)}')
    return NAMED_READINGS[reading].read(**dict(switches or {}))


def lee2008_yardsticks(
    loss: float,
    rate_bit_s: float,
    rtt_s: float,
    *,
    reading: str = "printed",
    switches: Mapping[str, str] | None = None,
    page: Page | None = None,
) -> Yardsticks:
    """Cardwell, PFTK and Mathis for the same packets: R_TO = 3/2 rtt, a window of what the path holds (at least 1).
    Arguments as lee2008_model's.
    """
    readings, page = read_switches(reading, switches), page or Page()
    check_condition(loss, rate_bit_s, rtt_s)
    packets, times = packets_of(page, "tcp", readings)
    rtt_s = round_trip_s(rtt_s, readings)
    packet_s = 8 * (page.mtu_bytes + (HEADER_BYTES["tcp"] if readings.mtu_is == "payload" else 0)) / rate_bit_s
    return yardsticks(
        packets * times, loss, rtt_s, packet_s=packet_s, timeout_s=1.5 * rtt_s,
        window_packets=float(np.ceil(rtt_s / packet_s) + 1), initial_window=INITIAL_WINDOW["tcp"],
    )  # fmt: skip
