"""One direction of a TCP connection: the segments of one end, and the other end's answers. Definitions:
docs/metrics.md, TCP.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from ...core.wire import ACK, CWR, ECE, FIN, RST, SYN
from ..capture import CLEAR_NS, UNSEEN
from ..native import UNKNOWN, Bools, Ints, Rows
from ..time_spans import by, kept, longest_gap
from .ack_information import Reports, Windows, probes_of, reports_of, windows_of
from .bytes_in_flight import first_flight
from .columns import TIMESTAMP, DirectionColumns, before_each
from .limits import LIMITED, Limit, Sender, echo_ns, limits_of
from .nagle import nagle_waits, with_nagle
from .retransmission import Arrivals, RetransmissionCause, Retransmissions, arrivals_of, retransmissions_of
from .rtt import CapturePosition, Samples, by_sequence, by_timestamps, reaction_ns, smallest

Total = float | int | None
BY_CAUSE = {
    "fast_retransmitted_packets": RetransmissionCause.FAST,
    "timeouts": RetransmissionCause.TIMEOUT,
    "after_timeout_retransmitted_packets": RetransmissionCause.AFTER_TIMEOUT,
    "tail_loss_probes": RetransmissionCause.TAIL_PROBE,
    "unknown_retransmitted_packets": RetransmissionCause.UNKNOWN,
}
SPURIOUS = ("spurious_retransmitted_packets", "spurious_by_dsack_packets", "spurious_by_timestamps_packets")


@dataclasses.dataclass(frozen=True)
class Direction:
    """data: segments that this end sent; acks: those of the other end; position: of the capture, relative to this end;
    sack: both permitted it (None: handshake not seen); shift: window scale of the other end (None: not known); mss: the
    smaller of both ends' (None: not known, or a subflow of MPTCP, whose window is the connection's, RFC 8684 3.3.1);
    largest: payload of one segment that the other end takes, its MSS; blocks: table of the capture; set_back_ns: when
    the capturing clock was set back.
    """

    data: DirectionColumns
    acks: DirectionColumns
    position: CapturePosition
    sack: bool | None
    shift: int | None
    mss: int | None
    largest: int | None
    blocks: Rows | None
    set_back_ns: Ints

    @functools.cached_property
    def rtt(self) -> Samples:
        """Round trips by sequence numbers."""
        return self._measured(by_sequence(self.data, self.acks))

    def _measured(self, samples: Samples) -> Samples:
        """Without those in which the capturing clock was set back."""
        keep = np.ones(len(samples.time_ns), dtype=np.bool_)
        for step_ns in self.set_back_ns.tolist():
            keep &= (samples.time_ns - samples.rtt_ns > step_ns) | (samples.time_ns < step_ns)
        return kept(samples, keep) if len(self.set_back_ns) else samples

    @functools.cached_property
    def rtt_timestamps(self) -> Samples:
        """Round trips by timestamps."""
        return self._measured(by_timestamps(self.data, self.acks))

    @functools.cached_property
    def reports(self) -> Reports:
        """Duplicate ACKs, SACK and DSACK."""
        return reports_of(self.acks, self.data, np.zeros(0) if self.blocks is None else self.blocks)

    @functools.cached_property
    def windows(self) -> Windows:
        """The receive window that the other end announced."""
        return windows_of(self.acks)

    @functools.cached_property
    def probes(self) -> tuple[Bools, Bools]:
        """Zero-window probes and keep-alives, as masks over `data`."""
        return probes_of(self.data, self.acks, self.windows.zero)

    @functools.cached_property
    def retransmissions(self) -> Retransmissions | None:
        """Of a capture behind losses those that got there, and only by timestamps: it shows neither what was lost, nor
        when acknowledgements arrived at the sender. None: at the other end without timestamps.
        """
        near_ns = self._reaction_ns
        if not len(self.acks):
            return None  # they may have come another way
        if (self.position.is_far and near_ns is None) or self.blocks is None:
            return None
        permitted = bool(self.acks.sack_blocks.any()) if self.sack is None else self.sack
        rtt_min_ns = smallest(self.rtt.rtt_ns, self.position.far_ns)
        median_s = self.rtt.quantile_s(0.5)
        return retransmissions_of(
            self.data,
            self.acks,
            self.reports,
            self.probes[0] | self.probes[1],
            rtt_min_ns=rtt_min_ns,
            rtt_ns=None if median_s is None else round(median_s * 1e9),
            near_ns=min((known for known in (near_ns, self.position.near_ns) if known is not None), default=0),
            sack=permitted,
            # the sender's own queue may drop as well, above a capture there
            unseen=self._arrived.segment[self._arrived.again & (near_ns is not None)],
        )

    @functools.cached_property
    def arrivals(self) -> Arrivals | None:
        """None in a capture at this end, where no segment has crossed the network yet."""
        return None if self.position.is_near else self._arrived

    @functools.cached_property
    def _arrived(self) -> Arrivals:
        """Sooner than a round trip is no answer: than the handshake's, or a shorter one seen since. Where that is below
        CLEAR_NS, a host's own times decide: a SYN takes longer than a segment.
        """
        told_ns = self.position.round_trip_ns
        if told_ns is not None and self._reaction_ns is not None:
            told_ns = min(told_ns, self._reaction_ns + int(self.rtt.rtt_ns.min(initial=told_ns)))
        return arrivals_of(self.data, None if told_ns is None or told_ns < CLEAR_NS else told_ns)

    @functools.cached_property
    def _reaction_ns(self) -> int | None:
        return reaction_ns(self.data, self.acks)

    @functools.cached_property
    def limits(self) -> tuple[Ints, Ints] | None:
        """Bounds (ns) and what limited this end between each two of them (a Limit). None: without the handshake it is
        not known where the capture was taken; without the data, what was outstanding.
        """
        position = self.position
        if len(self.set_back_ns) or position.near_ns is None or position.round_trip_ns is None or self.mss is None:
            return None
        if (self._unseen() or 0) > UNSEEN * int(self.data.new_bytes.sum()):
            return None
        repairs = self.data.is_retransmission & ~self.probes[0] & ~self.probes[1]
        if self.arrivals is not None:
            repairs[self.arrivals.segment[self.arrivals.repaired]] = True
        needless = np.zeros(len(repairs), dtype=np.bool_)
        if self.retransmissions is not None:
            needless[self.retransmissions.segment[self.retransmissions.spurious]] = True
        stamps = 12 if (self.data.options & TIMESTAMP).any() else 0
        base_ns = position.round_trip_ns
        if position.is_near and len(self.rtt.rtt_ns):
            base_ns = min(base_ns, int(self.rtt.rtt_ns.min()))
        echo = echo_ns(self.data, self.acks)  # the handshake's time alone may be too long
        echo = (0 if position.is_near else position.near_ns) if echo is None else echo
        near_ns = min(position.near_ns, echo)
        sender = Sender(self.shift, self.mss - stamps, near_ns, base_ns, position.is_near)
        again = np.flatnonzero(repairs & (self.data.payload_bytes > 0))
        found = limits_of(self.data, self.acks, self.rtt, again, needless, sender)
        return with_nagle(*found, nagle_waits(self))

    def _limited(self) -> dict[str, Total]:
        """The share of the time that each Limit took, and the time."""
        shares: dict[str, Total] = dict.fromkeys(("limits_s", "idle_ratio", *LIMITED.values()))
        if self.limits is None or len(self.limits[0]) < 2:
            return shares
        bounds, limit = self.limits
        took = np.bincount(limit, np.diff(bounds), len(Limit)) / (bounds[-1] - bounds[0])
        shares |= {name: float(took[limit]) for limit, name in LIMITED.items()}
        shares["application_limited_ratio"] = float(took[Limit.IDLE] + took[Limit.APPLICATION])
        return shares | {"limits_s": int(bounds[-1] - bounds[0]) / 1e9, "idle_ratio": float(took[Limit.IDLE])}

    def totals(self, t0_ns: int) -> dict[str, Total]:
        """Every total of docs/metrics.md, TCP; None: the capture cannot tell. t0_ns: what instants count from."""
        data = self.data
        carries = data.payload_bytes > 0
        moments = data.time_ns[data.new_bytes > 0]
        probe, alive = self.probes
        return {
            "packets": len(data),
            "ip_bytes": int(data.ip_bytes.sum()),
            "payload_bytes": int(data.payload_bytes.sum()),
            "new_bytes": int(data.new_bytes.sum()),
            "acknowledged_unseen_bytes": self._unseen(),
            "data_packets": int(carries.sum()),
            "offloaded_packets": None if self.largest is None else int((data.payload_bytes > self.largest).sum()),
            "pure_ack_packets": _pure_acks(data),
            "pure_acks_back": _pure_acks(self.acks),
            "first_data_s": None if not len(moments) else (int(moments[0]) - t0_ns) / 1e9,
            "last_new_data_s": None if not len(moments) else (int(moments[-1]) - t0_ns) / 1e9,
            "longest_data_gap_s": None if (gap := longest_gap(moments)) is None else (gap[1] - gap[0]) / 1e9,
            "capture_point_ratio": self.position.share,
            **self.rtt.quantiles_s("rtt"),
            **self.rtt_timestamps.quantiles_s("rtt_timestamps"),
            **self.repeated(),
            **self.disordered(),
            **self._reported(),
            **self._sender(),
            **self.zero_windows(),
            "window_updates": int(self.windows.update.sum()),
            "zero_window_probes": int(probe.sum()),
            "keep_alives": int(alive.sum()),
            "max_window_bytes": self._max_window(),
            **self._limited(),
            **self._ecn(),
        }

    def zero_windows(self, until_ns: int | None = None) -> dict[str, float]:
        """The other end's segments that announce a window of 0, spells of them, and their time."""
        windows = self.windows
        last_ns = max((int(side.time_ns[-1]) for side in (self.data, self.acks) if len(side)), default=0)
        last_ns = last_ns if until_ns is None else min(last_ns, until_ns)
        begun = by(windows.span_begin_ns, until_ns)
        end_ns = np.where(windows.span_end_ns < 0, last_ns, np.minimum(windows.span_end_ns, last_ns))
        return {
            "zero_window_packets": int((windows.zero & by(self.acks.time_ns, until_ns)).sum()),
            "zero_windows": int(begun.sum()),
            "zero_window_s": int((end_ns - windows.span_begin_ns)[begun].sum()) / 1e9,
        }

    def _unseen(self) -> int | None:
        """Payload that the other end acknowledged and that is not in this capture."""
        data = self.data
        known = data.flags & RST == 0
        if not known.any() or not len(self.acks) or self.acks.highest_ack[-1] < 0:
            return None
        begin = 1 if len(data.syns) else _first_number(data, self.acks, known)
        end = min(int(self.acks.highest_ack[-1]), data.data_end)
        beyond = np.clip(data.end - (data.flags & FIN != 0) - end, 0, data.new_bytes)
        seen = int((data.new_bytes - beyond)[known].sum())
        return max(0, end - begin - seen)

    def repeated(self, until_ns: int | None = None) -> dict[str, Total]:
        """What this end sent again, by its cause; None: this capture cannot show it."""
        data, classified = self.data, self.retransmissions
        again = data.is_retransmission & by(data.time_ns, until_ns)
        names: dict[str, Total] = {
            "retransmitted_packets": int(again.sum()),
            "retransmitted_bytes": int((data.payload_bytes[again] - data.new_bytes[again]).sum()),
            "syn_retransmitted_packets": int(again[data.syns].sum()),
        }
        if classified is None:
            return names | dict.fromkeys(
                ("inferred_retransmitted_packets", *BY_CAUSE, "longest_timeout_series", *SPURIOUS)
            )
        classified = kept(classified, by(data.time_ns[classified.segment], until_ns))
        has_stamps = self.blocks is not None and bool((data.options & TIMESTAMP).any())
        dsack_known = bool(self.sack) or bool(self.acks.sack_blocks.any())
        spurious = (
            (classified.spurious, has_stamps or dsack_known),
            (classified.by_dsack, dsack_known),
            (classified.by_timestamps, has_stamps),
        )
        return names | {
            "inferred_retransmitted_packets": int((~again[classified.segment]).sum()),
            **{name: int((classified.cause == cause).sum()) for name, cause in BY_CAUSE.items()},
            "longest_timeout_series": int(classified.series.max(initial=0)),
            **{name: int(of.sum()) if known else None for name, (of, known) in zip(SPURIOUS, spurious, strict=True)},
        }

    def disordered(self, until_ns: int | None = None) -> dict[str, Total]:
        """Segments that came behind others of higher numbers, and why; None at this end."""
        arrived = self.arrivals
        if arrived is None:
            return dict.fromkeys(("out_of_order_packets", "reordered_packets", "repaired_packets"))
        counts = by(self.data.time_ns[arrived.segment], until_ns)
        return {
            "out_of_order_packets": int(counts.sum()),
            "reordered_packets": int(arrived.reordered[counts].sum()),
            "repaired_packets": int(arrived.repaired[counts].sum()),
        }

    def _reported(self) -> dict[str, Total]:
        reports, seen = self.reports, self.blocks is not None
        return {
            "duplicate_acks": int(reports.duplicate.sum()),
            "sack_blocks": int(self.acks.sack_blocks.sum()),
            "dsacks": len(reports.dsack[0]) if seen else None,
        }

    def _sender(self) -> dict[str, Total]:
        if self.position.is_far or not len(self.acks):
            return dict.fromkeys(("initial_window_packets", "initial_window_bytes", "max_flight_bytes"))
        first = first_flight(self.data, self.acks) if len(self.data.syns) else None
        una = np.maximum(1, before_each(self.acks.highest_ack, self.data, 1))
        sent = np.minimum(self.data.highest_end, self.data.data_end)
        return {
            "initial_window_packets": None if first is None else first[0],
            "initial_window_bytes": None if first is None else first[1],
            "max_flight_bytes": int((sent - una).max(initial=0)),
        }

    def _max_window(self) -> int | None:
        counts = self.acks.flags & SYN == 0
        if self.shift is None or not counts.any():
            return None
        return int(self.acks.window[counts].max()) << self.shift

    def _ecn(self) -> dict[str, Total]:
        marks = np.bincount(self.data.tos & 3, minlength=4)
        plain = self.data.flags & SYN == 0
        return {
            "ect_packets": int(marks[1] + marks[2]),
            "ce_packets": int(marks[3]),
            "ece_packets": int(((self.data.flags & ECE != 0) & plain).sum()),
            "cwr_packets": int(((self.data.flags & CWR != 0) & plain).sum()),
        }


def _first_number(data: DirectionColumns, acks: DirectionColumns, known: Bools) -> int:
    """The lowest number of a capture that begins in the middle. An empty segment there whose number the other end had
    acknowledged all along is a keep-alive, whose byte went before.
    """
    lowest = int(data.seq[known].min())
    carried = bool((data.end[known & (data.seq == lowest)] > lowest).any())
    acked = acks.ack[acks.ack != UNKNOWN]
    return lowest if carried or not len(acked) or int(acked.min()) != lowest + 1 else lowest + 1


def _pure_acks(sent: DirectionColumns) -> int:
    """ACK flag, no payload, none of SYN, FIN, RST."""
    return int(((sent.payload_bytes == 0) & (sent.flags & (SYN | FIN | RST | ACK) == ACK)).sum())
