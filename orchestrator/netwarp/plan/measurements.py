"""The measurements that a spec asks for ([measure]), and the captures that they need beside those of the hosts."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.link_types import SIDES, Link
from ..core.topology import crossings
from ..core.types import CapturePoint, Measure
from ..experiment.fields import Reader
from ..experiment.grammar import FAIR, MEASURE, SPAN
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .routes import Routed

WINDOW_NS, FAIR_HOLD_NS = 10**9, 2 * 10**9
FAIR_RATIO = 0.2


def read_measure(top: Item, links: Sequence[Link], duration_ns: int, problems: Problems) -> Measure | None:
    """The key `measure` of the top; None if there is none. Mistakes are collected."""
    item = top.get("measure")
    if item is None:
        return None
    reader = Reader(item, MEASURE, problems)
    whole = {link.name: [f"{link.name}.{side}" for side in SIDES] for link in links}
    there = [direction for directions in whole.values() for direction in directions]
    wanted: list[str] = []
    for name in reader.names("links"):
        if name not in whole and name not in there:
            place = (item.get("links") or item).part(name)
            problems.add(place, f'there is no link "{name[:60]}"{nearest(name, [*whole, *there])}')
        wanted += whole.get(name, [name])
    fair = Reader(item.get("fair") or item.with_value({}), FAIR, problems)
    window = reader.whole("windows") if reader.has("windows") else WINDOW_NS
    hold = fair.whole("for") if fair.has("for") else max(FAIR_HOLD_NS, window or 0)
    if hold is not None and window is not None and hold < window:
        fair.problem("for", 'is shorter than a window; for example { windows = "1 s", fair = { for = "2 s" } }')
    span = Reader(item.get("span") or item.with_value({}), SPAN, problems)
    from_ns, to_ns = span.whole("from"), span.whole("to")
    if item.get("span") is not None and (from_ns is None or to_ns is None or from_ns >= to_ns):
        span.problem("to", f"needs a beginning and a later end; for example span = {MEASURE['span'].example}")
    elif to_ns is not None and to_ns > duration_ns:
        span.problem("to", "is outside the cell: it must be by the end of the duration; a span of nothing has no rate")
    return Measure(
        window_ns=window or WINDOW_NS,
        links=tuple(dict.fromkeys(wanted)),
        fair_ratio=fair.ratio("within") if fair.has("within") else FAIR_RATIO,
        fair_hold_ns=hold or FAIR_HOLD_NS,
        span_ns=(from_ns, to_ns) if from_ns is not None and to_ns is not None else msgspec.UNSET,
    )


def with_points_of(
    captures: tuple[CapturePoint, ...], asked: Measure | None, links: Sequence[Link], routed: Sequence[Routed]
) -> tuple[CapturePoint, ...]:
    """The captures, and those that the queues of the links asked for need: the interfaces by which packets come to the
    node before the link, and that by which they leave it.
    """
    if asked is None:
        return captures
    points = dict.fromkeys(captures)
    for each in routed:
        flow = each.flow
        ways = [(flow.sender, route.there) for route in each.routes]
        ways += [(flow.receiver, route.back) for route in each.routes]
        for start, hops in ways:
            for crossing in crossings(links, start, hops):
                if f"{crossing.hop.link}.{crossing.hop.direction}" in asked.links:
                    points |= dict.fromkeys(CapturePoint(*end) for end in (crossing.before, crossing.after))
    return tuple(points)
