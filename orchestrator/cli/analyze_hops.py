"""Joined captures as text: a row a hop."""

from __future__ import annotations

from ..analysis import Join
from ..analysis.hops import Hop
from ..report.numbers import DASH, fixed, readable
from .analyze_words import delays

HEADS = ("  hop", "packets", "lost", "burst", "delay min/med/p95/max", "reord.")


def hop_row(hop: Hop) -> tuple[str, ...]:
    """The columns of HEADS."""
    return (
        f"  {hop.before} \u2192 {hop.after}",
        fixed(hop.packets, 0),
        _lost(hop),
        f"{readable(hop.burst_mean_packets, 3)}/{max(hop.bursts)}" if hop.bursts else DASH,
        delays(hop.delay_min_s, hop.delay_median_s, hop.delay_p95_s, hop.delay_max_s),
        fixed(hop.reordered_packets, 0),
    )


def _lost(hop: Hop) -> str:
    if not hop.lost_packets or hop.loss_ratio is None:
        return fixed(hop.lost_packets, 0)
    return f"{fixed(hop.lost_packets, 0)} ({readable(hop.loss_ratio * 100, 3)} %)"


def join_notes(join: Join) -> list[str]:
    """What the reader of the hops has to know."""
    found = []
    if join.alone:
        found.append(f"shares no packet with the others: {', '.join(join.alone)}")
    unknown = sum(hop.unknown_packets for hop in join.hops)
    if unknown:
        found.append(
            f"{unknown} packets are in no number below: the next capture had ended, or not begun, when they were due"
        )
    by_time = sum(hop.by_time_packets for hop in join.hops)
    if by_time:
        found.append(f"{by_time} packets look exactly like others, and only time tells which of them were lost")
    negative = sum(hop.negative_packets for hop in join.hops)
    if negative:
        found.append(f"{negative} packets arrive before they were sent: the captures' clocks differ (--json: "
                     "clock_offset_if_symmetric_s)")  # fmt: skip
    elif not join.one_clock:
        found.append("delays are differences of the captures' times: as true as their clocks agree")
    return found
