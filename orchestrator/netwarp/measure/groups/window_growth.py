"""How a flow's window grows: from the sender's capture what it sends before and between acknowledgements, and what it
has outstanding; from the kernel's samples (its own word) the congestion window. Every definition: docs/metrics.md.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping

import numpy as np

from ...captures.native import Floats, Ints
from ...core.types import Flow
from ...core.wire import ACK
from ..flow_packets import FlowPackets
from ..metrics import Moments, Window
from ..sent_times import data_units
from ..socket_samples import Samples

WIRE = ("initial_window_packets", "slow_start_growth_ratio", "peer_window_bytes", "window_full_time_s")
KERNEL = (
    "cwnd_initial_bytes",
    "cwnd_window_time_s",
    "cwnd_growth_per_rtt_packets",
    "cwnd_at_fault_bytes",
    "cwnd_lowest_after_fault_bytes",
    "cwnd_window_time_other_path_s",
    "cwnd_end_bytes",
)
NAMES = (*WIRE, *KERNEL)


@dataclasses.dataclass(frozen=True)
class Outstanding:
    """First transmissions and acknowledgements at the sender, in the order of time (ns from T0).

    sent_bytes, acked_bytes: payload from the first byte on, up to and with this packet or acknowledgement.
    packet_bytes: payload of the largest packet. window_bytes: the largest receive window announced.
    """

    sent_ns: Ints
    sent_bytes: Ints
    acked_ns: Ints
    acked_bytes: Ints
    packet_bytes: int
    window_bytes: int

    @property
    def nearly_full_bytes(self) -> int:
        """What the announced window takes in whole packets, less one: Linux' SCTP lets cwnd grow only while as much is
        outstanding, and so stops short of it.
        """
        return (self.window_bytes // self.packet_bytes - 1) * self.packet_bytes

    def full_ns(self) -> int | None:
        """When the announced window was full for the first time, to within one packet."""
        acked = np.concatenate([[0], np.maximum.accumulate(self.acked_bytes)])
        before = acked[np.searchsorted(self.acked_ns, self.sent_ns, side="right")]
        full = np.flatnonzero(self.sent_bytes - before >= self.nearly_full_bytes)
        return int(self.sent_ns[full[0]]) if len(full) else None


def outstanding_of(flow: Flow, sender: FlowPackets) -> Outstanding | None:
    """None where no data were sent or acknowledged, or the protocol has several subflows (MPTCP)."""
    rows, column = data_units(sender, flow.protocol)
    rows = rows[~rows["is_retransmission"]]
    if flow.protocol == "mptcp" or not len(rows) or len(np.unique(rows["flow"])) > 1:
        return None
    row = int(rows["flow"][0])
    sends = sender.data_direction[row]
    capture = sender.point.capture
    if flow.protocol == "sctp":
        size = rows["user_bytes"].astype(np.int64)
        total = np.concatenate([[0], np.cumsum(size[np.argsort(rows[column], kind="stable")])])
        end = total[np.minimum(rows[column] + 1, len(total) - 1)]
        acks = capture.sacks[(capture.sacks["flow"] == row) & (capture.sacks["direction"] != sends)]
        acked = total[np.clip(acks["cumulative_tsn"] + 1, 0, len(total) - 1)]
        inits = capture.inits[(capture.inits["flow"] == row) & (capture.inits["direction"] != sends)]
        window = int(inits["a_rwnd_bytes"].max(initial=0))
    else:
        size = rows["payload_bytes"].astype(np.int64)
        end = rows[column] - 1 + size
        back = capture.segments[(capture.segments["flow"] == row) & (capture.segments["direction"] != sends)]
        acks = back[back["flags"] & ACK != 0]
        acked = np.maximum(acks["ack"] - 1, 0)
        window = int(acks["window_bytes"].max(initial=0))
    if not len(acks):
        return None
    _, first = np.unique(rows["packet"], return_index=True)
    last = np.concatenate([first[1:], [len(rows)]]) - 1
    payload = np.add.reduceat(size, first)
    return Outstanding(
        sent_ns=rows["time_ns"][first] - sender.t0_realtime_ns,
        sent_bytes=np.maximum.accumulate(end[last]),
        acked_ns=acks["time_ns"] - sender.t0_realtime_ns,
        acked_bytes=acked,
        packet_bytes=int(payload.max()),
        window_bytes=window,
    )


def rounds(flight: Outstanding, until_ns: int | None) -> Iterator[int]:
    """Packets sent first in each round trip: one ends when its first packet is acknowledged, and what the
    acknowledgements from then on let out is the next. Only rounds that were over by `until_ns`.
    """
    known = np.maximum.accumulate(flight.acked_bytes)
    begin = 0
    while begin < len(flight.sent_bytes):
        covering = int(np.searchsorted(known, flight.sent_bytes[begin], side="left"))
        if covering == len(known):
            return
        end_ns = int(flight.acked_ns[covering])
        end = int(np.searchsorted(flight.sent_ns, end_ns, side="left"))
        if end <= begin or (until_ns is not None and end_ns > until_ns):
            return
        yield end - begin
        begin = end


def wire_metrics(flow: Flow, sender: FlowPackets | None, moments: Moments) -> dict[str, float | None]:
    """Every metric of WIRE."""
    found: dict[str, float | None] = dict.fromkeys(WIRE)
    flight = outstanding_of(flow, sender) if sender is not None else None
    if sender is None or flight is None:
        return found
    first = next(rounds(flight, None), None)
    full = flight.full_ns() if flight.nearly_full_bytes > 0 else None
    again = sender.data.t_ns[sender.data.retransmission & (sender.data.payload_bytes > 0)]
    limits = [full, int(again[0]) if len(again) else None, moments.fault.from_ns if moments.fault else None]
    growing = list(rounds(flight, min((limit for limit in limits if limit is not None), default=None)))
    if first is not None:
        found["initial_window_packets"] = float(first)
    if len(growing) > 1:
        found["slow_start_growth_ratio"] = float((growing[-1] / growing[0]) ** (1 / (len(growing) - 1)))
    found["peer_window_bytes"] = float(flight.window_bytes) or None
    if full is not None:
        found["window_full_time_s"] = (full - int(flight.sent_ns[0])) / 1e9
    return found


def kernel_metrics(
    flow: Flow,
    sender: FlowPackets | None,
    samples: Mapping[str, Samples],
    window: Window,
    moments: Moments,
    hit: int | None,
) -> dict[str, float | None]:
    """Every metric of KERNEL. hit: the path in use that the fault is on."""
    found: dict[str, float | None] = dict.fromkeys(KERNEL)
    flight = outstanding_of(flow, sender) if sender is not None else None
    wanted = float(flight.nearly_full_bytes) if flight is not None and flight.window_bytes else None
    primary = samples.get(flow.paths[0].name)
    if primary is not None:
        t_s, cwnd = _there(primary, None if window.end_ns is None else window.end_ns / 1e9)
        if len(cwnd):
            found["cwnd_initial_bytes"], found["cwnd_end_bytes"] = float(cwnd[0]), float(cwnd[-1])
        found["cwnd_window_time_s"] = _reached_s(t_s, cwnd, wanted, flow.start_ns / 1e9)
    if moments.fault is None or hit is None or hit >= len(flow.paths):
        return found
    fault_s = moments.fault.from_ns / 1e9
    if (one := samples.get(flow.paths[hit].name)) is not None:
        t_s, cwnd = _there(one, None if window.end_ns is None else window.end_ns / 1e9)
        if flight is not None:
            growth = _growth(one, t_s, cwnd, (flow.start_ns / 1e9 + fault_s) / 2, fault_s)
            found["cwnd_growth_per_rtt_packets"] = None if growth is None else growth / flight.packet_bytes
        before, after = cwnd[t_s <= fault_s], cwnd[t_s > fault_s]
        found["cwnd_at_fault_bytes"] = float(before[-1]) if len(before) else None
        found["cwnd_lowest_after_fault_bytes"] = float(after.min()) if len(after) else None
    moved = [moments.first_retransmission_other_path_ns, moments.first_new_sent_other_path_ns]
    since_ns = min((at for at in moved if at is not None), default=None)
    times = []
    for number, path in enumerate(flow.paths):
        if number != hit and since_ns is not None and (other := samples.get(path.name)) is not None:
            times.append(_reached_s(*_there(other, None), wanted, since_ns / 1e9))
    found["cwnd_window_time_other_path_s"] = min((time for time in times if time is not None), default=None)
    return found


def _growth(samples: Samples, t_s: Floats, cwnd: Floats, from_s: float, to_s: float) -> float | None:
    """Bytes a smoothed round trip that cwnd grows by between two instants; None without samples on both sides."""
    inside = (samples.t_s >= from_s) & (samples.t_s <= to_s) & ~np.isnan(samples.srtt_s)
    begin, end = np.flatnonzero(t_s <= from_s), np.flatnonzero(t_s <= to_s)
    if not len(begin) or not inside.any():
        return None
    srtt_s = float(samples.srtt_s[inside].mean())
    return float(cwnd[end[-1]] - cwnd[begin[-1]]) / ((to_s - from_s) / srtt_s)


def _there(samples: Samples, end_s: float | None) -> tuple[Floats, Floats]:
    keep = ~np.isnan(samples.cwnd_bytes)
    if end_s is not None:
        keep &= samples.t_s <= end_s
    return samples.t_s[keep], samples.cwnd_bytes[keep]


def _reached_s(t_s: Floats, cwnd: Floats, wanted: float | None, since_s: float) -> float | None:
    """From an instant to the first sample after it that has as much."""
    if wanted is None:
        return None
    reached = t_s[(cwnd >= wanted) & (t_s >= since_s)]
    return float(reached[0]) - since_s if len(reached) else None
