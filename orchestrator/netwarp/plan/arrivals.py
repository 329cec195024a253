"""Draws the flows that arrive at random: their starts, sizes and names, from the cell's seed and the group's name."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterator, Sequence

import msgspec

from ..core.types import Flow
from ..core.units import counted
from ..experiment.arrivals import Arrivals
from ..experiment.flow_groups import name_of
from ..experiment.grammar import MOST_FLOWS
from ..experiment.problems import Problems
from .flows import with_class
from .routes import Routed

LAST_PORT = 65_535


def drawn_flows(routed: Sequence[Routed], seed: int, problems: Problems) -> tuple[Flow, ...]:
    """The flows of a cell with this seed: those with a phase start later, and a group that arrives takes the place of
    its patterns, one for each pair of hosts. Too many flows, or none that arrives, is a problem.
    """
    flows: list[Flow] = []
    patterns: dict[str, list[Routed]] = {}
    for each in routed:
        if each.arrivals is None:
            flows.append(each.drawn(seed))
        else:
            patterns.setdefault(str(each.flow.group), []).append(each)
    of_group = {str(each.flow.group): each.arrivals for each in routed if each.arrivals is not None}
    for group, arrivals in of_group.items():
        room = MOST_FLOWS - len(flows)
        arrived = list(_arriving(group, arrivals, patterns[group], seed, room))
        if not arrived:
            problems.add(arrivals.item, f"no flow arrives with the seed {seed}; a higher rate, or a longer time")
        if len(arrived) > room:
            problems.add(arrivals.item, f"more than {MOST_FLOWS} flows in a cell; a lower rate, or an earlier stop")
        _check_ports(arrived, flows, arrivals, problems)
        flows += arrived
    return tuple(flows)


def _check_ports(arrived: Sequence[Flow], others: Sequence[Flow], arrivals: Arrivals, problems: Problems) -> None:
    """Reports the first flow whose port is none, or another flow's at that host. A flow's port is the one after that
    of the flow before.
    """
    taken = {(flow.receiver, flow.port): flow.name for flow in others}
    for flow in arrived:
        other = taken.get((flow.receiver, flow.port))
        if flow.port <= LAST_PORT and other is None:
            continue
        why = "there is none" if other is None else f'flow "{other}" has it at "{flow.receiver}"'
        said = f"{counted(len(arrived), 'flow')} from port {arrived[0].port} on: {flow.name} would have {flow.port}"
        problems.add(arrivals.item, f"{said}, and {why}; give the flow another, for example port = 20001")
        return


def _arriving(group: str, arrivals: Arrivals, patterns: Sequence[Routed], seed: int, room: int) -> Iterator[Flow]:
    """The flows of a group in the order of their starts; one more than there is room for, where there are too many."""
    gaps, sizes = (_uniform(f"{seed}/arrivals/{group}/{what}") for what in ("gap", "size"))
    at_s = 0.0
    for number in range(room + 1):
        if arrivals.process == "poisson":
            at_s += -math.log1p(-next(gaps)) / arrivals.rate_s
        elif number:
            at_s = number / arrivals.rate_s
        start_ns = arrivals.from_ns + round(at_s * 1e9)
        if start_ns >= arrivals.until_ns:
            return
        pattern = patterns[number % len(patterns)]
        flow = msgspec.structs.replace(
            pattern.flow,
            name=name_of(group, number + 1),
            port=patterns[0].flow.port + number,
            start_ns=start_ns,
            total_bytes=arrivals.sizes.at(next(sizes)),
            size_class=msgspec.UNSET,
        )
        yield with_class(flow, pattern.classes)


def _uniform(name: str) -> Iterator[float]:
    """Uniform numbers in [0, 1): another name gives other ones."""
    source = random.Random(int.from_bytes(hashlib.sha256(name.encode()).digest()[:16], "big"))
    while True:
        yield source.random()
