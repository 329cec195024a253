"""The timers of two SCTP ends, and the measurements of cells in which these ran: what `netwarp sctp check` and `netwarp
sctp advise` judge by.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..captures.inference import LATE, TICK_NS
from .run_directory import Run

Values = Mapping[tuple[str, str], float | None]
"""(flow, metric) -> value, of a cell."""


def latest_ns(timer_ns: float) -> float:
    """The longest that a timer of this length runs, as late as a kernel's may be."""
    return timer_ns * LATE + TICK_NS


def answered_in_time(rto_min_ns: float, sack_delay_ns: float, rtt_ns: float) -> bool:
    """Whether a single message is acknowledged before its T3 expires."""
    return rto_min_ns > latest_ns(sack_delay_ns) + rtt_ns


def values_by_cell(done: Run) -> dict[str, dict[tuple[str, str], float | None]]:
    """The measurements of a run, by the cells' ids."""
    values: dict[str, dict[tuple[str, str], float | None]] = {str(row["cell_id"]): {} for row in done.table("cells")}
    for row in done.table("measurements"):
        value = row["value"]
        assert value is None or isinstance(value, float)
        values[str(row["cell_id"])][str(row["flow"]), str(row["metric"])] = value
    return values


def needless_share(values: Values, flow: str) -> float | None:
    """Needless retransmissions a message."""
    again, sent = (values.get((flow, name)) for name in ("spurious_retransmissions", "messages"))
    return None if again is None or not sent else again / sent
