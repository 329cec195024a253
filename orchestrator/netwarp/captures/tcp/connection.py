"""`analyze_tcp`: the complete analysis of one TCP connection. Definitions: docs/metrics.md, TCP."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.wire import ACK, CWR, ECE, FIN, RST, SYN, TCP
from ..arrays import before
from ..capture import Capture, rows_of_flow
from ..native import Floats, Ints, Rows
from ..time_spans import bin_s, binned_bit_s
from .bytes_in_flight import idle_gaps, in_flight, rounds
from .columns import SACK_PERMITTED, TIMESTAMP, DirectionColumns, direction_columns
from .direction import Direction, Total
from .nagle import nagle_waits
from .retransmission import RetransmissionCause
from .rtt import capture_positions, handshake_ns
from .waits import large_segments_lost, pauses, unanswered_keep_alives

NO_SHIFT = 255
TRUNCATED = 1  # Bit of packets[marks]


@dataclasses.dataclass(frozen=True)
class TcpConnection:
    """One connection at one capture point. Times count from t0_ns (ns, as captured).

    options_cut: TCP options were cut off by the snaplen. directions[0]: what the initiator sent (if unknown, the first
    sender); data_direction: the one with more new payload. Everything is computed when it is first accessed.
    """

    t0_ns: int
    directions: tuple[Direction, Direction]
    row: Rows
    options_cut: bool
    stray: Rows

    @property
    def unseen_end(self) -> int | None:
        """The end of which the capture has no packet though the other end's show that it sent some; None: neither."""
        return next((end for end in (0, 1) if self.row["heard"][end] and not len(self.directions[end].data)), None)

    @functools.cached_property
    def data_direction(self) -> int:
        """The direction with more new payload (equal: 0)."""
        return int(self.directions[1].data.new_bytes.sum() > self.directions[0].data.new_bytes.sum())

    @functools.cached_property
    def totals(self) -> dict[str, Total]:
        """Totals of the handshake, of the data direction, and, if the other direction carries payload too, of that one
        as `reverse_...`; names and units: docs/metrics.md, TCP. None: this capture cannot show it.
        """
        totals = self._handshake()
        d = self.data_direction
        totals |= self.directions[d].totals(self.t0_ns)
        if self.directions[1 - d].data.new_bytes.any():
            totals |= {f"reverse_{name}": value for name, value in self.directions[1 - d].totals(self.t0_ns).items()}
        return totals

    def _handshake(self) -> dict[str, Total]:
        first, second = self.directions[0].data, self.directions[1].data
        answers = second.syns[second.flags[second.syns] & ACK != 0]
        times = [
            int(side.time_ns[syns[0]]) if len(syns) else None for side, syns in ((first, first.syns), (second, answers))
        ]
        seen = handshake_ns(first, second)
        syns = [_syn(side) for side in (first, second)]
        asked = int((first.flags[first.syns] & ACK == 0).sum())
        _, silent = idle_gaps(first, second)
        return {
            "data_direction": self.data_direction,
            "stray_packets": len(self.stray),
            "stray_answers": self._stray_answers(times[1]),
            "syn_packets": asked,
            "syn_ack_packets": len(answers),
            "simultaneous_open": int(asked > 0 and len(answers) < len(second.syns)),
            "syn_s": None if times[0] is None else (times[0] - self.t0_ns) / 1e9,
            "syn_ack_after_s": None if times[0] is None or times[1] is None else (times[1] - times[0]) / 1e9,
            "response_after_s": self._response_after_s() if self.row["initiator_known"] else None,
            "handshake_rtt_s": None if seen is None else sum(seen) / 1e9,
            "mss_initiator_bytes": int(self.row["mss"][0]) or None,
            "mss_responder_bytes": int(self.row["mss"][1]) or None,
            "window_shift_initiator": self.directions[1].shift,
            "window_shift_responder": self.directions[0].shift,
            "sack_permitted": None if (sack := self.directions[0].sack) is None else int(sack),
            "timestamps": None if self.options_cut else _both(syns, TIMESTAMP),
            "ecn": _ecn(syns),
            **self._waits(),
            "idle_gaps": len(silent),
            "idle_s": int(silent.sum()) / 1e9,
        }

    def _waits(self) -> dict[str, Total]:
        """What the data's sender waited for that is no loss, and full segments that no acknowledgement covers."""
        direction = self.directions[self.data_direction]
        nagle, lost = nagle_waits(direction), large_segments_lost(direction)
        silent = [unanswered_keep_alives(each) for each in self.directions]
        most = max((0, 1), key=lambda end: silent[end][0])
        first_ns = silent[most][1]
        return {
            "nagle_waits": None if nagle is None else len(nagle.time_ns),
            "nagle_wait_s": None if nagle is None else int(nagle.delay_ns.sum()) / 1e9,
            "nagle_ack_delay_s": None
            if not nagle or not len(nagle.time_ns)
            else float(np.median(nagle.delay_ns)) / 1e9,
            "unanswered_keep_alives": 0 if self.unseen_end is not None else silent[most][0],
            "unanswered_keep_alives_by": most if first_ns is not None else None,
            "unanswered_keep_alives_s": None if first_ns is None else (first_ns - self.t0_ns) / 1e9,
            "large_lost_packets": 0 if lost is None else lost.packets,
            "large_lost_least_bytes": None if lost is None else lost.least_bytes,
            "large_lost_passed_bytes": None if lost is None else lost.passed_bytes,
            "large_lost_s": None if lost is None else (lost.from_ns - self.t0_ns) / 1e9,
            "large_lost_until_s": None if lost is None else (lost.to_ns - self.t0_ns) / 1e9,
        }

    def _stray_answers(self, answered_ns: int | None) -> int:
        """Stray segments with ACK of the responder up to the SYN+ACK that counts."""
        if answered_ns is None:
            return 0
        answers = (self.stray["direction"] == 1) & (self.stray["flags"] & ACK != 0)
        return int((answers & (self.stray["time_ns"] <= answered_ns)).sum())

    def _response_after_s(self) -> float | None:
        """Time from the initiator's last payload before the responder's first payload to that payload; None if there is
        none.
        """
        asked, answered = (side.data.time_ns[side.data.new_bytes > 0] for side in self.directions)
        if not len(answered) or not len(asked) or asked[0] > answered[0]:
            return None
        return int(answered[0] - asked[asked <= answered[0]][-1]) / 1e9

    @functools.cached_property
    def series(self) -> dict[str, tuple[Floats, Floats]]:
        """Series of the data direction: name -> (times in s, values). Rates are per bin (time: the begin of the
        bin).
        """
        direction = self.directions[self.data_direction]
        series = self._rates(direction.data)
        for name, samples in (("rtt_s", direction.rtt), ("rtt_timestamps_s", direction.rtt_timestamps)):
            series[name] = (self._times(samples.time_ns), samples.rtt_ns / 1e9)
        if direction.shift is not None:
            counts = direction.acks.flags & SYN == 0
            series["receive_window_bytes"] = (
                self._times(direction.acks.time_ns[counts]),
                (direction.acks.window[counts].astype(np.int64) << direction.shift).astype(np.float64),
            )
        if not direction.position.is_far:
            for name, (time_ns, values) in (
                ("flight_bytes", in_flight(direction.data, direction.acks)),
                ("round_packets", rounds(direction.data, direction.acks)[:2]),
            ):
                series[name] = (self._times(time_ns), values.astype(np.float64))
        return series

    def _times(self, time_ns: Ints) -> Floats:
        return (time_ns - self.t0_ns) / 1e9

    def _rates(self, data: DirectionColumns) -> dict[str, tuple[Floats, Floats]]:
        if not len(data):
            return {}
        begin = int(data.time_ns[0])
        span = int(data.time_ns.max()) - begin + 1
        width = round(bin_s(span) * 1e9)
        span = -(-span // width) * width  # the last packet ends the data: in a bin cut there its rate is of any size
        series = {}
        for name, amount in (("goodput_bit_s", data.new_bytes), ("throughput_bit_s", data.ip_bytes)):
            rates = np.array(binned_bit_s(data.time_ns - begin, amount.astype(np.int64), width, span))
            series[name] = (self._times(begin + width * np.arange(len(rates))), rates)
        return series

    @functools.cached_property
    def events(self) -> list[dict[str, Any]]:
        """{t_s, what, direction, ...} in the order of time."""
        return tcp_events(self.directions, self.t0_ns)


def _syn(side: DirectionColumns) -> tuple[int, int] | None:
    syns = side.syns
    return (int(side.options[syns[0]]), int(side.flags[syns[0]])) if len(syns) else None


def _both(syns: Sequence[tuple[int, int] | None], option: int) -> int | None:
    first, second = syns
    return None if first is None or second is None else int(bool(first[0] & second[0] & option))


def _ecn(syns: Sequence[tuple[int, int] | None]) -> int | None:
    """ECN negotiation by RFC 3168 6.1.1: requested with ECE and CWR, granted with ECE alone."""
    first, second = syns
    if first is None or second is None:
        return None
    return int(first[1] & (ECE | CWR) == ECE | CWR and second[1] & (ECE | CWR) == ECE)


def _options_cut(capture: Capture, segments: Rows) -> bool:
    """True if options are missing: if any segment without payload was captured truncated; without the table of
    packets, whether any packet was.
    """
    if not capture.sources["truncated"].any():
        return False
    if not len(capture.packets):
        return True
    bare = segments["packet"][segments["payload_bytes"] == 0]
    return bool((capture.packets["marks"][bare] & TRUNCATED).any())


def analyze_tcp(capture: Capture, flow: int, *, at: int | None = None, t0_ns: int | None = None) -> TcpConnection:
    """Analyse one TCP connection of a capture. flow: its row in capture.flows.

    at: the direction (0 initiator, 1 responder) at whose sender the capture was taken; None: derived from the
    handshake, otherwise not known. t0_ns: origin of times (None: the capture's first packet). The capture needs the
    table `segments` and, for SACK, DSACK and the classes of retransmissions, `blocks`. Raises ValueError if the flow is
    not TCP.
    """
    row = capture.flows[flow]
    if row["protocol"] != TCP:
        raise ValueError(f"flow {flow} is no TCP connection")
    segments = rows_of_flow(capture, "segments", flow)
    columns = direction_columns(segments)
    positions = capture_positions(handshake_ns(*columns), capture.captured_end(flow) if at is None else at)
    cut = _options_cut(capture, segments)
    sack = None if cut else _both([_syn(side) for side in columns], SACK_PERMITTED)
    blocks = capture.blocks
    sack_blocks = int(columns[0].sack_blocks.sum() + columns[1].sack_blocks.sum())
    back_ns = capture.sources["set_back_at_ns"]
    shifts = [NO_SHIFT if cut else int(shift) for shift in row["window_shift"]]
    directions = [
        Direction(
            data=columns[d],
            acks=columns[1 - d],
            position=positions[d],
            sack=None if sack is None else bool(sack),
            shift=None if shifts[1 - d] == NO_SHIFT else shifts[1 - d],
            mss=None if row["mptcp"] else int(row["mss"].min()) or None,
            set_back_ns=back_ns[back_ns != 0],
            largest=None if row["mptcp"] else int(row["mss"][1 - d]) or None,
            blocks=blocks if (len(blocks) or not sack_blocks) and not cut else None,
        )
        for d in (0, 1)
    ]
    origin_ns = capture.first_ns if t0_ns is None else t0_ns
    return TcpConnection(origin_ns, (directions[0], directions[1]), row, cut, segments[segments["stray"]])


MOST = 200  # Events per kind and direction; of further ones only the number is given
EVENT_NAMES = {
    RetransmissionCause.FAST: "fast_retransmission",
    RetransmissionCause.TIMEOUT: "timeout",
    RetransmissionCause.TAIL_PROBE: "tail_loss_probe",
    RetransmissionCause.UNKNOWN: "retransmission",
}


def tcp_events(directions: tuple[Direction, Direction], t0_ns: int) -> list[dict[str, Any]]:
    """Handshake, ends, the first retransmission of each recovery, zero windows; sorted by time, at most 200 of a kind
    and direction.
    """
    events: list[dict[str, Any]] = []
    for d, direction in enumerate(directions):
        events += _control(direction, d, t0_ns) + _retransmissions(direction, d, t0_ns) + _windows(direction, d, t0_ns)
    for begin, length in zip(*idle_gaps(directions[0].data, directions[1].data), strict=True):
        events.append(
            {"t_s": (int(begin) - t0_ns) / 1e9, "what": "idle", "direction": None, "for_s": int(length) / 1e9}
        )
    for begin_ns, length_ns, end in sorted(pauses(directions), key=lambda pause: -pause[1])[:MOST]:
        events.append({"t_s": (begin_ns - t0_ns) / 1e9, "what": "pause", "direction": end, "for_s": length_ns / 1e9})
    return sorted(events, key=lambda event: float(event["t_s"]))


def _control(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    flags = direction.data.flags
    events = []
    for bit, name in ((SYN, "syn"), (FIN, "fin"), (RST, "rst")):
        for place in np.flatnonzero(flags & bit)[:MOST].tolist():
            t_s = (int(direction.data.time_ns[place]) - t0_ns) / 1e9
            again = bool(direction.data.is_retransmission[place])
            event: dict[str, Any] = {"t_s": t_s, "what": name, "direction": d, "again": again}
            if bit == RST:
                row, sides = int(direction.data.row[place]), (direction.data, direction.acks)
                event["unacknowledged_bytes"] = [_outstanding(*ends, row) for ends in (sides, sides[::-1])]
            events.append(event)
    return events


def _outstanding(sent: DirectionColumns, heard: DirectionColumns, row: int) -> int | None:
    """Payload in bytes that one end had sent before a segment and the other had not acknowledged; None: the capture has
    nothing of one of them.
    """
    if not len(sent) or not len(heard):
        return None
    since, until = np.searchsorted(heard.row, row), np.searchsorted(sent.row, row)
    una = max(1, int(heard.highest_ack[since - 1])) if since else 1
    return max(0, min(int(sent.highest_end[until - 1]), sent.data_end) - una) if until else 0


def _retransmissions(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    all_of = direction.retransmissions
    if all_of is None:
        return []
    events = []
    beyond = direction.data.highest_end[all_of.segment]
    una = direction.data.seq[all_of.segment]
    # a fast recovery begins where nothing sent before the last one is still missing
    reach = before(np.maximum.accumulate(np.where(all_of.cause == RetransmissionCause.FAST, beyond, 0)), 0)
    for cause, name in EVENT_NAMES.items():
        chosen = all_of.cause == cause
        if cause == RetransmissionCause.FAST:
            chosen &= una >= reach
        for row in np.flatnonzero(chosen)[:MOST].tolist():
            event = {
                "t_s": (int(direction.data.time_ns[all_of.segment[row]]) - t0_ns) / 1e9,
                "what": name,
                "direction": d,
                "seq": int(direction.data.seq[all_of.segment[row]]),
                "waited_s": int(all_of.waited_ns[row]) / 1e9,
                "spurious": bool(all_of.spurious[row]),
            }
            if cause == RetransmissionCause.TIMEOUT:
                event["series"] = int(all_of.series[row])
            events.append(event)
    return events


def _windows(direction: Direction, d: int, t0_ns: int) -> list[dict[str, Any]]:
    windows = direction.windows
    return [
        {
            "t_s": (begin - t0_ns) / 1e9,
            "what": "zero_window",
            "direction": 1 - d,
            "for_s": None if end < 0 else (end - begin) / 1e9,
        }
        for begin, end in zip(windows.span_begin_ns[:MOST].tolist(), windows.span_end_ns[:MOST].tolist(), strict=True)
    ]
