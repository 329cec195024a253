"""Functions of time of a flow (core/metrics/flow_functions.py): what its sender sent, what arrived, what was
outstanding, and what its kernel told and counted.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping

import numpy as np

from ..captures.native import Bools, Floats, Ints
from ..core.metrics.flow_functions import COUNTER
from ..core.metrics.packet_names import NoPackets, Packets
from .flow_packets import PacketColumns
from .named_packets import NamedPackets
from .observation import FlowObservation
from .sent_data import round_ends

BURST_NS = 10_000
"""Packets no further apart than this are one burst."""


def asked_of(observation: FlowObservation, counters: Mapping[str, int]) -> Packets:
    """What expressions may ask of a flow: its packets by name, at its sender if that is captured, and functions of
    time. Of a flow of datagrams nothing. counters: of its sender's host (kernel_counters()).
    """
    packets = observation.sender or observation.receiver
    if packets is None or observation.flow.is_datagrams:
        return NoPackets()
    named = NamedPackets(observation.flow.protocol, packets, observation.path_names)
    return _Flow(named, FlowOverTime(observation, counters))


@dataclasses.dataclass(frozen=True)
class _Flow:
    named: NamedPackets
    times: FlowOverTime

    def at(self, name: str) -> float | None:
        return self.named.at(name)

    def count(self, kind: str, after: str | None = None, before: str | None = None) -> float | None:
        return self.named.count(kind, after, before)

    def over_time(self, function: str, numbers: list[float], text: str) -> float | None:
        return self.times.value(function, numbers, text)


class FlowOverTime:
    """The functions of one flow."""

    def __init__(self, observation: FlowObservation, counters: Mapping[str, int]) -> None:
        self._observation = observation
        self._counters = counters

    def value(self, function: str, numbers: list[float], text: str = "") -> float | None:
        """The value of a function; None: nothing of it was captured, sampled or counted, or it never happened."""
        if function == COUNTER:
            return self._counters.get(text)
        if text:
            return self._told(text, numbers[0])
        functions: dict[str, Callable[..., float | None]] = {
            "sent_bit_s": functools.partial(_mean_bit_s, self._observation.sent),
            "arrived_bit_s": functools.partial(_mean_bit_s, self._observation.arrived),
            "pace_bit_s": self._pace,
            "rounds": self._rounds,
            "outstanding_most": functools.partial(self._outstanding_within, np.max),
            "outstanding_least": functools.partial(self._outstanding_within, np.min),
            "doubling_until": self._doubling_until,
            "when_outstanding_above": functools.partial(self._when_outstanding, np.greater),
            "when_outstanding_below": functools.partial(self._when_outstanding, np.less),
            "when_sending_above": functools.partial(_when, self._observation.sent, above=True),
            "when_sending_below": functools.partial(_when, self._observation.sent, above=False),
            "when_arriving_above": functools.partial(_when, self._observation.arrived, above=True),
        }
        return functions[function](*numbers)

    def _told(self, series: str, t_s: float) -> float | None:
        """The last sample of the kernel's up to a time."""
        samples = self._observation.samples.get(self._observation.flow.paths[0].name)
        if samples is None:
            return None
        values = getattr(samples, series)[samples.t_s <= t_s]
        values = values[~np.isnan(values)]
        return float(values[-1]) if len(values) else None

    def _pace(self, from_s: float, to_s: float) -> float | None:
        """The IP bytes sent in [from, to] before the last burst, over the time from the first packet to that burst."""
        data = self._observation.sent
        if data is None:
            return None
        within = (data.t_ns >= from_s * 1e9) & (data.t_ns <= to_s * 1e9) & (data.payload_bytes > 0)
        t_ns, sizes = data.t_ns[within], data.ip_bytes[within]
        begins = np.flatnonzero(np.diff(t_ns, prepend=-BURST_NS - 1) > BURST_NS)
        if len(begins) < 2:
            return None
        return float(8e9 * sizes[: begins[-1]].sum() / (t_ns[begins[-1]] - t_ns[begins[0]]))

    def _rounds(self, from_s: float, to_s: float) -> float | None:
        """How many round trips of the data ended in (from, to]."""
        if self._observation.outstanding is None:
            return None
        ends = self._round_ends
        return float(np.count_nonzero((ends > from_s) & (ends <= to_s)))

    @functools.cached_property
    def _round_ends(self) -> Floats:
        assert self._observation.outstanding is not None
        return np.array([end_ns / 1e9 for _, end_ns in round_ends(self._observation.outstanding)])

    @functools.cached_property
    def _outstanding(self) -> tuple[Floats, Floats]:
        """Times, and the payload that was sent and not acknowledged (cumulatively) from then on: of equal times after
        all that passed then, an acknowledgement and what it let out.
        """
        data = self._observation.outstanding
        if data is None:
            return np.zeros(0), np.zeros(0)
        times = np.unique(np.concatenate([data.sent_ns, data.acked_ns]))
        sent, acked = (
            np.concatenate([[0], np.maximum.accumulate(amounts)])[np.searchsorted(at_ns, times, side="right")]
            for at_ns, amounts in ((data.sent_ns, data.sent_bytes), (data.acked_ns, data.acked_bytes))
        )
        return times / 1e9, np.maximum(sent - acked, 0).astype(np.float64)

    def _outstanding_within(self, extreme: Callable[[Floats], float], from_s: float, to_s: float) -> float | None:
        times, left = self._outstanding
        within = left[(times >= from_s) & (times <= to_s)]
        return float(extreme(within)) if len(within) else None

    def _doubling_until(self) -> float | None:
        """When the last packet was sent that doubling explains: all data up to it are the initial window and twice
        what was acknowledged by then, to within a packet. Before the first retransmission.
        """
        data, sent = self._observation.outstanding, self._observation.sent
        if data is None or sent is None or not data.initial_packets:
            return None
        acked = np.concatenate([[0], np.maximum.accumulate(data.acked_bytes)])
        known = acked[np.searchsorted(data.acked_ns, data.sent_ns, side="right")]
        explained = data.sent_bytes[data.initial_packets - 1] + 2 * known
        again = sent.t_ns[sent.retransmission & (sent.payload_bytes > 0)]
        before = data.sent_ns < again[0] if len(again) else np.full(len(data.sent_ns), True)
        places = np.flatnonzero((data.sent_bytes + data.packet_bytes > explained) & before)
        return float(data.sent_ns[places[-1]]) / 1e9 if len(places) else None

    def _when_outstanding(
        self, compare: Callable[[Floats, float], Bools], bytes_: float, after_s: float
    ) -> float | None:
        times, left = self._outstanding
        places = np.flatnonzero(compare(left, bytes_) & (times >= after_s))
        return float(times[places[0]]) if len(places) else None


def _when(data: PacketColumns | None, bit_s: float, over_s: float, after_s: float, *, above: bool) -> float | None:
    """The first time from `after` on when more (less) than a rate had passed over the last `over`."""
    if data is None or not len(data.t_ns) or over_s <= 0:
        return None
    over_ns, after_ns = round(over_s * 1e9), round(after_s * 1e9)
    # such a sum changes when a packet enters that time, and when one leaves it
    times = np.unique(np.concatenate([data.t_ns, data.t_ns + over_ns, [after_ns]]))
    times = times[times >= after_ns]
    passed = _within(data.t_ns, _sums(data), times - over_ns, times)
    amount = bit_s * over_s / 8
    places = np.flatnonzero(passed > amount if above else passed < amount)
    return float(times[places[0]]) / 1e9 if len(places) else None


def _mean_bit_s(data: PacketColumns | None, from_s: float, to_s: float) -> float | None:
    """The IP bytes that passed in (from, to], over that time."""
    if data is None or to_s <= from_s:
        return None
    edges = np.array([round(from_s * 1e9)]), np.array([round(to_s * 1e9)])
    return float(8 * _within(data.t_ns, _sums(data), *edges)[0] / (to_s - from_s))


def _sums(data: PacketColumns) -> Ints:
    """IP bytes before each packet, and of all; packets without payload do not count."""
    sizes = np.where(data.payload_bytes > 0, data.ip_bytes, 0)
    return np.concatenate([[0], np.cumsum(sizes)])


def _within(t_ns: Ints, sums: Ints, from_ns: Ints, to_ns: Ints) -> Ints:
    """The bytes that passed in each (from, to]."""
    return sums[np.searchsorted(t_ns, to_ns, side="right")] - sums[np.searchsorted(t_ns, from_ns, side="right")]
