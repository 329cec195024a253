"""The capacity of a path: its bottleneck, and the mean of it over time where events change a rate."""

from __future__ import annotations

from ..core.topology import NoRoute, find_route
from ..core.types import Cell, Flow, Path


def capacity_bit_s(cell: Cell, flow: Flow, path: Path, from_ns: int, to_ns: int) -> float | None:
    """The lowest rate on the route to the receiver, its mean over that time; None if there is a time without any."""
    hosts = frozenset(node.name for node in cell.nodes if node.kind == "host")
    try:
        route = find_route(hosts, cell.links, flow.sender, flow.receiver, path.receiver_link)
    except NoRoute:
        return path.bottleneck_bit_s
    shapes = {(link.name, name): getattr(link, name) for link in cell.links for name in ("forward", "backward")}
    rates = {(hop.link, hop.direction): shapes[hop.link, hop.direction].rate_bit_s for hop in route}
    changes = sorted(
        (event.at_ns, number, (event.link, name), shape.rate_bit_s)
        for number, event in enumerate(cell.timeline)
        for name in event.directions
        if (shape := getattr(event, name, None)) is not None and (event.link, name) in rates
    )
    if all(rate == rates[where] for _, _, where, rate in changes):
        return path.bottleneck_bit_s
    bits, since = 0, from_ns
    for at_ns, _, where, rate in (*changes, (to_ns, 0, None, None)):
        until = min(max(at_ns, since), to_ns)
        lowest = min((each for each in rates.values() if each is not None), default=None)
        if lowest is None and until > since:
            return None
        bits, since = bits + (lowest or 0) * (until - since), until
        if where is not None:
            rates[where] = rate
    return bits / (to_ns - from_ns) if to_ns > from_ns else None


def rates_change(cell: Cell) -> bool:
    """True if an event changes the rate of a link: the packet being sent then keeps the old one."""
    links = {link.name: link for link in cell.links}
    return any(
        shape is not None and shape.rate_bit_s != getattr(links[event.link], name).rate_bit_s
        for event in cell.timeline
        for name, shape in (("forward", event.forward), ("backward", event.backward))
    )
