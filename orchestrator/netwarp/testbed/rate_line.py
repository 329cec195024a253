"""The queue of a direction whose rate changes and whose queue is in packets: a veth pair in the hop.

Below htb a packet leaves when its sending begins; on a link of constant rate, netem's, when it ends. So the qdiscs of
such a direction are those of the pair's near end, and the link's own interface holds each packet for its sending time:
netem again, in which nothing waits. Packets go there by filters at the link's interface, and come back with a mark.
A direction whose packets leave at opportunities has such a pair too: behind it a program gives each packet its time
(delivery_program.py), and fq holds it until then.
Only shaping.py makes these.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..core.link_types import DirectionName, LinkImpairment, Opportunities
from ..core.types import Cell
from . import messages
from .layout import Interface, Layout
from .messages import Device, Request
from .packet_program import MARKS

MARK = MARKS << 16
"""Of packets that have waited; those of delay lines have a number above 0 in the lower half."""


@dataclass(frozen=True, slots=True)
class RateLine:
    """One pair. queue: its near end, which has the direction's qdiscs. out: the link's own interface."""

    queue: Interface
    out: Interface
    delivers: bool = False
    """True where packets leave at opportunities: a program takes the place of the filter that lets marked ones pass."""

    def requests(self) -> list[Request]:
        """What makes it; the far end goes up first, so that the near one sends at once."""
        queue, out = self.queue, self.out
        back = Device(f"back{queue.ifindex + 1}", queue.ifindex + 1, queue.namespace)
        near = Device(queue.name, queue.ifindex, queue.namespace)
        return [
            messages.veth(near, back, queue.mtu_bytes),
            messages.set_link(back, up=True),
            messages.set_link(queue, up=True),
            messages.clsact(back),
            messages.redirect_all(back, out, mark=MARK),
            messages.clsact(out),
            *([] if self.delivers else [messages.pass_mark(out, MARK)]),
            messages.redirect_all(out, queue, leaving=True, priority=2),
        ]


def shapes_of(cell: Cell) -> dict[tuple[str, DirectionName], list[LinkImpairment]]:
    """Every shape that each direction of a link has in a cell, its own first."""
    shapes: dict[tuple[str, DirectionName], list[LinkImpairment]] = {}
    for link in cell.links:
        shapes[link.name, "forward"], shapes[link.name, "backward"] = [link.forward], [link.backward]
    for event in cell.timeline:
        for name in event.directions:
            shape = event.side(name)
            shapes[event.link, name] += [shape] if shape is not None else []
    return shapes


def rated(shapes: Sequence[LinkImpairment]) -> list[LinkImpairment]:
    """The shapes whose rate is not their AQM's own (cake's is; a change of it keeps what waits, and the time of the
    next packet)."""
    return [
        shape for shape in shapes if shape.rate_bit_s is not None and (shape.aqm is None or shape.aqm.kind != "cake")
    ]


def varies(shapes: Sequence[LinkImpairment]) -> bool:
    """True if events change a rate, or a token bucket: neither netem nor tbf can without harm to what waits."""
    there = rated(shapes)
    rates = {shape.rate_bit_s for shape in (shapes if there else ())}
    buckets = {(shape.queue_bytes, shape.layer) for shape in there if shape.token_bucket}
    return len(rates) > 1 or len(buckets) > 1


def rate_lines(
    layout: Layout, shapes: Mapping[tuple[str, DirectionName], Sequence[LinkImpairment]]
) -> dict[tuple[str, DirectionName], RateLine]:
    """The pair of every direction that needs one."""
    lines: dict[tuple[str, DirectionName], RateLine] = {}
    for key, out in layout.shaped.items():
        delivers = isinstance(shapes[key][0].opportunities, Opportunities)
        if delivers or (varies(shapes[key]) and not all(shape.token_bucket for shape in rated(shapes[key]))):
            ifindex = layout.free_ifindex() + 2 * len(lines)
            lines[key] = RateLine(replace(out, name=f"rate{ifindex}", ifindex=ifindex), out, delivers)
    return lines
