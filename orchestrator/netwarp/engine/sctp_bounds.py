"""Worst cases of the settings of two SCTP ends, computed from their timers alone (`netwarp sctp advise`)."""

from __future__ import annotations

import dataclasses
import functools

from ..captures.inference import TICK_NS
from ..core.errors import SpecError
from ..core.units import Quantity, format_quantity, parse_quantity
from ..measure.models.failover_inputs import FailoverConditions, FailoverSettings
from ..measure.models.sctp_failover_model import FailoverPrediction, predict_failover
from .sctp_cells import answered_in_time, latest_ns

MS = 1_000_000
SIZE_BYTES = 200
GAP_NS = 50 * MS
"""Between two messages where a path of two fails, each way."""
UP_S = 20.0
"""The time for which an association has been up when a path fails."""
QUEUE_S = 0.0002
LENGTHS_S = (0.5, 1, 2, 5, 10, 20, 60, 300)
"""Lengths of a path's failure for which the return to it is computed."""


@dataclasses.dataclass(frozen=True)
class SctpBudget:
    """What signalling must keep. back_ns: new data flows again so soon after a repair, or with two paths after the one
    in use failed. survive_ns: an outage (of all paths) that the association must outlive. needless: share of messages
    sent twice without loss, at most. spare_ns: of two paths, from the repair of one until data is back on it.
    """

    back_ns: int
    survive_ns: int
    needless: float
    rtt_ns: int
    paths: int = 1
    spare_ns: int = 60_000 * MS

    @classmethod
    def read(
        cls, back: str, survive: str, needless: str, rtt: str, *, paths: int = 1, spare: str = "60 s"
    ) -> SctpBudget:
        """From texts with units. Raises SpecError."""
        values = []
        for name, text, kind in (
            ("--back", back, "time"), ("--survive", survive, "time"), ("--needless", needless, "ratio"),
            ("--rtt", rtt, "time"), ("--spare", spare, "time"),
        ):  # fmt: skip
            try:
                values.append(parse_quantity(text, kind).value)  # type: ignore[arg-type]
            except ValueError as error:
                raise SpecError(f"{name}: {error}") from error
        return cls(int(values[0]), int(values[1]), float(values[2]), int(values[3]), paths, int(values[4]))


@dataclasses.dataclass(frozen=True)
class Settings:
    """Settings of both ends alike, times in ns. The last three are of two paths; Linux' own with one."""

    rto_min_ns: int
    rto_max_ns: int
    association_max_retrans: int
    sack_delay_ns: int
    pf_retrans: int = 0
    path_max_retrans: int = 5
    heartbeat_interval_ns: int = 30_000 * MS

    def options(self, paths: int = 1) -> dict[str, object]:
        """As a spec says them."""
        options: dict[str, object] = {
            "rto_initial": time_text(self.rto_max_ns),
            "rto_min": time_text(self.rto_min_ns),
            "rto_max": time_text(self.rto_max_ns),
            "association_max_retrans": self.association_max_retrans,
            "sack_delay": time_text(self.sack_delay_ns),
        }
        if paths > 1:
            options |= {
                "pf_retrans": self.pf_retrans,
                "path_max_retrans": self.path_max_retrans,
                "heartbeat_interval": time_text(self.heartbeat_interval_ns),
            }
        return options

    def back_ns(self, rtt_ns: int) -> float:
        """The longest time from a repair to new data at the other end: a T3 that was set just before the repair, as
        late as timers are, and the way.
        """
        return latest_ns(self.rto_max_ns) + rtt_ns

    def survives_ns(self, paths: int = 1) -> int:
        """The shortest outage of all paths that may end the association: its timers, none of them late (RFC 9260 6.3.3,
        8.1). Each timeout counts, and so does each unanswered heartbeat: as soon as half an RTO after another while a
        path is potentially failed, then by the heartbeat interval (RFC 9260 8.3, RFC 7829 3.2). The paths are alike, so
        each is one of each. Either doubles the RTO of both; here each only its own, which is the shorter.
        """
        timer = beat = self.rto_min_ns
        data_ns, beat_ns, count = timer, beat // 2, 0
        while True:
            now = min(data_ns, beat_ns)
            count += 1
            if paths * count > self.association_max_retrans:
                return now
            if data_ns == now:
                timer = min(2 * timer, self.rto_max_ns)
                data_ns = now + timer
            else:
                beat = min(2 * beat, self.rto_max_ns)
                pause = self.heartbeat_interval_ns if count > self.path_max_retrans else 0
                beat_ns = now + pause + max(beat // 2, TICK_NS)

    def fits(self, rtt_ns: int) -> bool:
        """Whether a single message is acknowledged before its T3 expires."""
        return answered_in_time(self.rto_min_ns, self.sack_delay_ns, rtt_ns)

    def moves_ns(self, rtt_ns: int) -> float | None:
        """The longest time from the failure of one of two paths until new data is sent over the other (RFC 9260 6.3,
        8.2; RFC 7829 3.2), with a message due every GAP_NS, which SCTP_NODELAY does not send before what is sent again
        has been acknowledged. None: timeouts without a fault, or it never is.
        """
        predicted = self._failover(rtt_ns, None)
        return None if predicted is None or predicted.new_data_s is None else predicted.new_data_s.high * 1e9

    def spare_ns(self, rtt_ns: int) -> float | None:
        """The longest time from a path's repair until new data is back on it (RFC 9260 8.3)."""
        found = [self._failover(rtt_ns, length) for length in LENGTHS_S]
        back = [each.return_s.high for each in found if each is not None and each.return_s is not None]
        return max(back) * 1e9 if back else None

    def _failover(self, rtt_ns: int, length_s: float | None) -> FailoverPrediction | None:
        same = dataclasses.replace(self, association_max_retrans=0)
        return _predicted(same, rtt_ns, length_s)


@functools.lru_cache(maxsize=1 << 16)
def _predicted(settings: Settings, rtt_ns: int, length_s: float | None) -> FailoverPrediction | None:
    rtt_s = rtt_ns / 1e9
    return predict_failover(
        FailoverSettings(
            rto_initial_s=settings.rto_max_ns / 1e9,
            rto_min_s=settings.rto_min_ns / 1e9,
            rto_max_s=settings.rto_max_ns / 1e9,
            path_max_retrans=settings.path_max_retrans,
            pf_retrans=settings.pf_retrans,
            heartbeat_interval_s=settings.heartbeat_interval_ns / 1e9,
            sack_delay_s=settings.sack_delay_ns / 1e9,
            peer_rto_initial_s=settings.rto_max_ns / 1e9,
        ),
        FailoverConditions(
            rtt_s=rtt_s, rtt_other_s=rtt_s, queue_s=QUEUE_S, window_packets=1, interval_s=GAP_NS / 1e9, up_s=UP_S,
            tail="none", forward=True, alone=True, length_s=length_s, nagle=True, sizes=(SIZE_BYTES,),
        ),
    )  # fmt: skip


def time_text(value_ns: float) -> str:
    """As a spec says it."""
    return format_quantity(Quantity("time", int(value_ns)))
