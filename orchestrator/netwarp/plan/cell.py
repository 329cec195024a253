"""Makes the cells of one resolved combination, one per repetition. Everything random is drawn here from the cell's
seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec

from ..core.ip_families import quiet_sysctls
from ..core.link_types import SIDES, Link, LinkImpairment, Slots
from ..core.messages import Messages
from ..core.metrics.expressions import fill_in, unfilled
from ..core.outputs import expression_of
from ..core.types import Cell, Event, Flow, GuestKernel, Node
from ..experiment import Spec
from ..experiment.fields import Reader
from ..experiment.grammar import RESOLVED
from ..experiment.options import FORWARDING
from ..experiment.problems import Problems
from ..experiment.profiles import Stacks
from .agents import with_agents
from .arrivals import drawn_flows
from .capture_points import read_captures
from .combine import Combination
from .flows import Flows
from .impairments import finish
from .kinds import FLOW_KINDS, sctp, tcp
from .measurements import read_measure, with_points_of
from .network import Network, check_linked, check_switches
from .packet_rules import check_packet_rules
from .resolve import resolve
from .routes import Routed, rtt_of_links
from .sysctls import SysctlCheck
from .timeline import Planned, TimelineReader, draw
from .traces import within

PAGES = {"net.ipv4.tcp_no_metrics_save": "1"}
"""The connection of a page must not begin with the threshold and RTT that the kernel kept of the page before."""


class CellPlanner:
    """Makes the cells of a spec. Reads each profile once.

    builds: the guest kernel of each name that the spec gives one.
    """

    def __init__(
        self,
        spec: Spec,
        problems: Problems,
        sysctls: SysctlCheck | None = None,
        builds: Callable[[str], GuestKernel] = lambda name: GuestKernel(name, ""),
    ) -> None:
        self._spec, self._problems, self._sysctls, self._builds = spec, problems, sysctls, builds
        self._network = Network(problems, spec.files)
        self._stacks = Stacks(problems)

    def cells(
        self, experiment: str, levels: Combination, seed: int, repetitions: int, *, only_random: bool = False
    ) -> tuple[Cell, ...]:
        """The repetitions of one combination; empty if it is wrong, after collecting the problems.

        only_random: if nothing is random, make one repetition only.
        """
        before = len(self._problems)
        named = ", ".join(f"{name}={level}" for name, level in levels.items() if level != "-")
        self._problems.context = f"first seen in the cell {named}" if named else ""
        resolved = resolve(self._spec, levels, self._stacks, self._problems)
        if len(self._problems) > before:
            return ()
        top = Reader(resolved.top, RESOLVED, self._problems)
        duration = top.whole("duration")
        nodes = self._network.nodes(resolved.nodes)
        links = self._network.links(resolved.links, nodes)
        if duration is None or len(self._problems) > before:
            return ()
        routed = Flows(nodes, links, duration, self._problems).read(resolved.flows, resolved.groups)
        if not resolved.flows:
            top.problem("flow", 'there is no flow; for example [flow.bulk] with from = "a", to = "b"')
        nodes = with_agents(nodes, resolved.nodes, links, routed, self._problems)
        check_linked(resolved.nodes, links, self._problems)
        check_switches(nodes, resolved.nodes, links, self._problems)
        rtt_ns = rtt_of_links(routed, links)
        shapes = {
            (name, side): within(finish(draft.side(side), rtt_ns[name, side], draft.mtu_bytes), duration)
            for name, draft in links.items()
            for side in SIDES
        }
        directions = {f"{name} {side}": shape for (name, side), shape in shapes.items()}
        flows = tuple(each.flow for each in routed)
        check_packet_rules(directions, flows, self._problems, resolved.top)
        timeline = TimelineReader(self._network, nodes, links, shapes, rtt_ns, duration, flows)
        planned = timeline.read(resolved.events, self._problems)
        built = tuple(draft.built(shapes[name, "forward"], shapes[name, "backward"]) for name, draft in links.items())
        captures = read_captures(resolved.top, nodes, built, routed, self._problems)
        asked = read_measure(resolved.top, built, duration, self._problems)
        captures = with_points_of(captures, asked, built, routed)
        named_kernel = top.text("kernel")
        kernel = self._builds(named_kernel) if named_kernel else None
        if self._sysctls is not None:
            self._sysctls.nodes(resolved.nodes, links, kernel)
        if len(self._problems) > before:
            return ()
        own_nodes = _explicit(nodes, built, routed)
        parameters = dict(resolved.parameters)
        metrics = self._metrics(experiment, levels, parameters, duration)
        units = {each.metric.name: each.metric.unit for each in self._spec.own_metrics}
        phased = any(each.phase is not None and each.phase[0] < each.phase[1] for each in routed)
        phased |= any(each.arrivals is not None and each.arrivals.drawn for each in routed)
        random = phased or is_random(built, planned, flows)
        numbers = range(1 if only_random and not random else repetitions)
        drawn = [drawn_flows(routed, seed + number, self._problems) for number in numbers]
        if len(self._problems) > before:
            return ()
        return tuple(
            Cell(
                spec=self._spec.name,
                experiment=experiment,
                factors=dict(levels),
                repetition=number,
                seed=seed + number,
                duration_ns=duration,
                nodes=own_nodes,
                links=built,
                flows=drawn[number],
                timeline=draw(planned, seed + number),
                captures=captures,
                random=random,
                parameters=parameters,
                metrics=metrics,
                metric_units=units,
                kernel=msgspec.UNSET if kernel is None else kernel,
                measure=msgspec.UNSET if asked is None else asked,
            )
            for number in numbers
        )

    def _metrics(
        self, experiment: str, levels: Combination, parameters: Mapping[str, str], duration_ns: int
    ) -> dict[str, str]:
        filled: dict[str, str] = {}
        for each in self._spec.own_metrics:
            expression = expression_of(each.metric, levels, experiment, self._spec.expected)
            if not expression:
                continue
            filled[each.metric.name] = text = fill_in(expression, parameters, duration_ns)
            for name in unfilled(text):
                wrong = f'the parameter {name} is "{parameters.get(name)}" here, which is no quantity with a unit'
                self._problems.add(each.item, wrong)
        return filled


def _explicit(nodes: Mapping[str, Node], links: tuple[Link, ...], routed: tuple[Routed, ...]) -> tuple[Node, ...]:
    """The nodes with the sysctls that netwarp sets by itself; those of the spec override them."""

    families = {link.name: link.ip_family for link in links}
    wanted: dict[str, dict[str, str]] = {}
    for flow in (each.flow for each in routed):
        both = len({families[path.sender_link] for path in flow.paths}) > 1
        own = {
            **FLOW_KINDS[flow.protocol].sysctls(flow, both),
            **(tcp.BUFFERS if flow.program is not None else {}),
            **(PAGES if flow.is_page else {}),
        }
        for node in (flow.sender, flow.receiver):
            wanted.setdefault(node, {}).update(own)
    return tuple(
        msgspec.structs.replace(
            node,
            sysctls={
                **quiet_sysctls(link.ip_family for link in links if node.name in (link.a, link.b)),
                **_in_order({**wanted.get(node.name, {}), **(tcp.BUFFERS if _relays(node) else {})}),
                **node.sysctls,
            },
        )
        for node in nodes.values()
    )


ORDER = (*tcp.BUFFERS, *sctp.EXPOSE, *sctp.PRIVATE, *PAGES, *sctp.INTERLEAVE)
"""A cell's id depends on the order of its sysctls, which is not to depend on that of its flows."""


def _in_order(sysctls: Mapping[str, str]) -> dict[str, str]:
    return {name: sysctls[name] for name in sorted(sysctls, key=ORDER.index)}


def _relays(node: Node) -> bool:
    """True if its agent ends the connections that it relays."""
    return node.agent is not None and node.agent.kind not in FORWARDING


def messages_are_drawn(flow: Flow) -> bool:
    """True if gaps or sizes of a flow's messages are drawn from the seed, in either direction."""
    sent = [flow.messages] + ([] if flow.reverse is msgspec.UNSET else [flow.reverse.messages])
    return any(isinstance(messages, Messages) and messages.random for messages in sent)


def is_random(links: tuple[Link, ...], planned: tuple[Planned, ...], flows: tuple[Flow, ...]) -> bool:
    """True if the seed affects what the cell measures.

    It may with a program of the user's, which may draw random numbers: the guest's kernel has them from the seed. It
    does with random loss, jitter or other random impairments, with phases and messages drawn from the seed, and with
    a protocol whose timers are drawn, over several paths or through a fault.
    """
    events: list[Event] = [plan.event for plan in planned]
    shapes = [shape for link in links for shape in (link.forward, link.backward)]
    shapes += [shape for event in events for shape in (event.forward, event.backward) if shape is not None]
    drawn = any(plan.drawn for plan in planned)
    timers = any(FLOW_KINDS[flow.protocol].timers_drawn and (events or len(flow.paths) > 1) for flow in flows)
    # fq_codel hashes flows into queues by a number that the kernel draws
    hashed = len(flows) > 1 and any(shape.aqm is not None and shape.aqm.kind == "fq_codel" for shape in shapes)
    programs = any(flow.program is not None for flow in flows)
    programs |= any(messages_are_drawn(flow) for flow in flows)
    return drawn or timers or hashed or programs or any(map(_throws_dice, shapes))


def _throws_dice(shape: LinkImpairment) -> bool:
    ratios = (
        *(shape.loss_ratio, shape.duplicate_ratio, shape.corrupt_ratio, shape.reorder_ratio),
        *(shape.bit_error_ratio, shape.byte_error_ratio),
    )
    if isinstance(shape.slots, Slots) and shape.slots.least_ns < shape.slots.most_ns:
        return True
    draws = shape.jitter_ns > 0 or shape.burst_loss is not None or (shape.aqm is not None and shape.aqm.draws)
    return draws or any(ratio > 0 for ratio in ratios)
