"""Joined captures as text: one row per hop."""

from __future__ import annotations

from ...captures import Join
from ...captures.hop_joins import Hop
from ...core.numbers import DASH, fixed, readable
from ...core.units import counted
from .words import delays, seconds

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
    """Notes on the numbers of the hops: packets that are in none, equal packets, clocks."""
    notes = [f"{point.name}: {point.trouble}" for point in join.points if point.trouble]
    if join.alone:
        notes.append(f"shares no packet with the others: {', '.join(join.alone)}")
    unknown = sum(hop.unknown_packets for hop in join.hops)
    if unknown:
        verb, were = ("is", "it was") if unknown == 1 else ("are", "they were")
        notes.append(f"{counted(unknown, 'packet')} {verb} in no number below: {were} due at the next point when "
                     "nothing was captured there any more, or not yet")  # fmt: skip
    by_time = sum(hop.by_time_packets for hop in join.hops)
    if by_time:
        look = counted(by_time, "packet looks", "packets look")
        notes.append(f"{look} exactly like others, and only time tells which were lost")
    negative = sum(hop.negative_packets for hop in join.hops)
    if negative:
        were = "it was" if negative == 1 else "they were"
        notes.append(f"{counted(negative, 'packet')} arrived before {were} sent: the captures' clocks differ")
        notes += _offsets(join)
    elif not join.one_clock:
        notes.append("delays are differences of the captures' times: as true as their clocks agree")
    return notes


def _offsets(join: Join) -> list[str]:
    """For each pair of points with negative delays, the offset of their clocks."""
    texts: dict[frozenset[str], str] = {}
    for hop in join.hops:
        if hop.clock_offset_if_symmetric_s is not None and hop.negative_packets:
            ahead = hop.clock_offset_if_symmetric_s
            text = f"{hop.after} is {seconds(abs(ahead))} {'ahead of' if ahead > 0 else 'behind'} {hop.before}, if the "
            texts.setdefault(frozenset((hop.before, hop.after)), text + "shortest delays of both directions are equal")
    return list(texts.values())
