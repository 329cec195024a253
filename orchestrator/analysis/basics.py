"""What of every connection can be told from packets alone, whatever the transport: series, goodput, silences.

Read once, in parts if need be, so that a file of any size has them.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from .capture import Capture
from .native import NONE, Floats, Ints, Rows
from .parts import packets_in_parts

MOST_BINS = 1000
LEAST_BINS = 50
PACKETS_A_BIN = 8
"""On average, so that a rate by bin is one, and no drawing of single packets."""
STEPS = (1, 2, 5)
LONG_GAP = 5
"""Silences kept a direction: the longest ones."""


@dataclasses.dataclass
class Basics:
    """Of one connection, by direction [2]. bins: of `bin_s` from the file's first packet on, first one `first_bin`.

    goodput_bit_s, retransmitted: by bin. first_new_ns, last_new_ns: arrival of new payload (0: none); later_bytes:
    new payload after the first packet of it. silences: longest pauses in data packets: (from_s, length_s, whether the
    packet after it was a retransmission), longest first.
    """

    bin_s: float
    new_bytes: Ints
    wire_bytes: Ints
    retransmitted: Ints
    first_new_ns: Ints
    last_new_ns: Ints
    later_bytes: Ints
    last_data_ns: Ints
    silences: tuple[list[tuple[float, float, bool]], list[tuple[float, float, bool]]]

    def goodput_bit_s(self, direction: int) -> float | None:
        """New payload in (first arrival, last arrival] over that time (docs/metrics.md); None with less than two."""
        span = int(self.last_new_ns[direction] - self.first_new_ns[direction])
        return float(self.later_bytes[direction]) * 8e9 / span if span > 0 else None


def bin_width_s(span_ns: int, packets: int) -> float:
    """The shortest of 1, 2, 5 x 10^k s (from 1 us on) that cuts the span into at most as many bins as the packets are
    enough for: 50 to 1000.
    """
    bins = min(MOST_BINS, max(LEAST_BINS, packets // PACKETS_A_BIN))
    for exponent in range(-6, 12):
        for step in STEPS:
            if span_ns < step * 10 ** (exponent + 9) * bins:
                return float(step * 10.0**exponent)
    return 10.0**12


def start_of(capture: Capture) -> int:
    """The time of the first packet, ns since 1970; all times of a summary count from it. 0 without a packet."""
    there = capture.sources[capture.sources["packets"] > 0]
    return int(there["first_ns"].min()) if len(there) else 0


def basics_of(capture: Capture, whole: bool, flows: Ints) -> dict[int, Basics]:
    """Of these flows. Reads the file again where its packets are not in memory."""
    start_ns = start_of(capture)
    span_ns = int(capture.sources["last_ns"].max()) - start_ns
    width_s = bin_width_s(span_ns, int(capture.sources["packets"].sum()))
    width_ns = round(width_s * 1e9)
    bins = span_ns // width_ns + 1
    place = np.full(len(capture.flows), NONE, dtype=np.int64)
    place[flows] = np.arange(len(flows))
    sums = {name: np.zeros((len(flows), 2, bins), dtype=np.int64) for name in ("new", "wire", "again")}
    found = {
        int(flow): Basics(
            bin_s=width_s,
            new_bytes=sums["new"][at],
            wire_bytes=sums["wire"][at],
            retransmitted=sums["again"][at],
            first_new_ns=np.zeros(2, dtype=np.int64),
            last_new_ns=np.zeros(2, dtype=np.int64),
            later_bytes=np.zeros(2, dtype=np.int64),
            last_data_ns=np.zeros(2, dtype=np.int64),
            silences=([], []),
        )
        for at, flow in enumerate(flows.tolist())
    }
    for rows in packets_in_parts(capture, whole):
        mine = rows[rows["flow"] != NONE]
        mine = mine[place[mine["flow"]] != NONE]
        if not len(mine):
            continue
        slot = (place[mine["flow"]] * 2 + mine["direction"]) * bins + np.clip(
            (mine["time_ns"] - start_ns) // width_ns, 0, bins - 1
        )
        for name, column in (("new", "new_bytes"), ("wire", "ip_bytes"), ("again", "is_retransmission")):
            total = np.bincount(slot, weights=mine[column].astype(np.float64), minlength=len(flows) * 2 * bins)
            sums[name] += total.astype(np.int64).reshape(len(flows), 2, bins)
        _take(found, mine, start_ns)
    return found


def _take(found: dict[int, Basics], rows: Rows, start_ns: int) -> None:
    """Adds the part of the file to first and last arrivals and silences."""
    data = rows[rows["payload_bytes"] > 0]
    order = np.argsort(data["flow"] * np.int64(2) + data["direction"], kind="stable")
    data = data[order]
    key = data["flow"] * np.int64(2) + data["direction"]
    edges = np.concatenate([[0], np.flatnonzero(np.diff(key)) + 1, [len(key)]]) if len(key) else np.zeros(1, np.int64)
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = data[low:high]
        basics, direction = found[int(part["flow"][0])], int(part["direction"][0])
        fresh = part[part["new_bytes"] > 0]
        if len(fresh):
            if not basics.first_new_ns[direction]:
                basics.first_new_ns[direction] = fresh["time_ns"][0]
                basics.later_bytes[direction] -= int(fresh["new_bytes"][0])
            basics.last_new_ns[direction] = fresh["time_ns"][-1]
            basics.later_bytes[direction] += int(fresh["new_bytes"].sum())
        _silences(basics, direction, part, start_ns)


def _silences(basics: Basics, direction: int, part: Rows, start_ns: int) -> None:
    time = part["time_ns"]
    before = basics.last_data_ns[direction] or time[0]
    pause = np.diff(time, prepend=before)
    longest = np.argsort(-pause, kind="stable")[:LONG_GAP]
    begun = np.concatenate([[before], time[:-1]])
    basics.silences[direction].extend(
        (int(begun[at] - start_ns) / 1e9, int(pause[at]) / 1e9, bool(part["is_retransmission"][at]))
        for at in longest.tolist()
        if pause[at] > 0
    )
    basics.silences[direction].sort(key=lambda one: -one[1])
    del basics.silences[direction][LONG_GAP:]
    basics.last_data_ns[direction] = time[-1]


def bin_times(basics: Basics) -> Floats:
    """Begin of each bin, seconds from the file's first packet."""
    return np.arange(basics.new_bytes.shape[1], dtype=np.float64) * basics.bin_s
