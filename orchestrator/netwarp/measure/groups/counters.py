"""Metrics that are counted, not captured: of AQM qdiscs, of agents, of the CPU time that a flow's programs took."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ...captures.native import Bools, Rows
from ...core.link_types import DirectionName, Policer
from ...core.topology import DirectedLink
from ...core.types import Cell, Check, Flow
from ...core.wire import CE, ECN_MASK
from ...store import compressed
from ...store.app_records import Freeze, Retransmit, read_app_log
from ...store.init_records import Dump, Exit
from ...store.ndjson import of_kind
from ...store.run_dir import CellDir
from ...testbed.agent_steps import agent_id, agents_of, forwarding
from ...testbed.layout import Layout
from ...testbed.nftables import decode_rules
from ...testbed.policers import decode_policers
from ...testbed.readback import Qdisc, decode, decode_qdiscs, split
from ...testbed.shaping import Shaping
from ..capture_point import CapturePoint
from ..planned_paths import route_of

Counted = Mapping[tuple[str, DirectionName], Qdisc]
"""(link, direction) -> its AQM as the last dump of the cell shows it."""


def counted_at_end(cell: Cell, layout: Layout, dumps: Sequence[Dump], addresses: Sequence[Dump]) -> Counted:
    """The AQM qdiscs in the last qdisc dump of each namespace. dumps, addresses: dumps of qdiscs and of addresses, from
    init.ndjson, in their order. A machine's interface that stands in a veth's place keeps its own number: it is found
    by its address.
    """
    if not any(shape.aqm for link in cell.links for shape in (link.forward, link.backward)):
        return {}
    seen = {(namespace, qdisc.ifindex): qdisc for namespace, qdisc in _last_qdiscs(dumps) if qdisc.aqm is not None}
    places = _places(layout, addresses)
    return {key: seen[place] for key, place in places.items() if place in seen}


def _last_qdiscs(dumps: Sequence[Dump]) -> Iterator[tuple[int, Qdisc]]:
    """(namespace, qdisc) of the last dump of each namespace."""
    for namespace, dump in {dump.ns: dump for dump in dumps}.items():
        for qdisc in decode_qdiscs(dump.data()):
            yield namespace, qdisc


def _places(layout: Layout, addresses: Sequence[Dump]) -> dict[tuple[str, DirectionName], tuple[int, int]]:
    """(link, direction) -> (namespace, number) of the interface that shapes it."""
    numbers = {
        (dump.ns, dict(entry["attrs"]).get("IFA_ADDRESS")): int(entry["index"])
        for dump in addresses
        for entry in decode("address", dump.data())
    }
    return {
        key: (interface.namespace, numbers.get((interface.namespace, interface.ip), interface.ifindex))
        for key, interface in layout.shaped.items()
    }


def held_packets(
    cell: Cell, layout: Layout, dumps: Sequence[Dump], addresses: Sequence[Dump]
) -> dict[tuple[str, str], int]:
    """(link, direction) -> the packets that its qdiscs hold in the last dump: in its queue, its delay lines, and on its
    way. {} without a dump of every shaped interface.
    """
    held: dict[tuple[int, int], int] = {}
    for namespace, qdisc in _last_qdiscs(dumps):
        if qdisc.parent is None:  # a root counts what is below it
            held[namespace, qdisc.ifindex] = held.get((namespace, qdisc.ifindex), 0) + qdisc.queued_packets
    shaping = Shaping(cell, layout, 0)
    found: dict[tuple[str, str], int] = {}
    for key, place in _places(layout, addresses).items():
        places = [place]
        if (line := shaping.lines.get(key)) is not None:
            places.append((line.queue.namespace, line.queue.ifindex))
        if (program := shaping.programs.get(key)) is not None:
            places += [(each.enter.namespace, each.enter.ifindex) for each in program.delay_lines]
        if place not in held:
            return {}
        found[key] = sum(held.get(each, 0) for each in places)
    return found


def aqm_metrics(cell: Cell, counted: Counted) -> dict[str, float | None]:
    """Metrics of the cell; none if it has no AQM, no values if the last dump lacks one of them (a cut that nothing
    repaired): a part is no sum.
    """
    managed = sum(shape.aqm is not None for link in cell.links for shape in (link.forward, link.backward))
    if not managed:
        return {}
    if len(counted) != managed:
        return {"aqm_marked_packets": None, "aqm_dropped_packets": None}
    return {
        "aqm_marked_packets": float(sum(qdisc.marked_packets for qdisc in counted.values())),
        "aqm_dropped_packets": float(sum(qdisc.dropped_packets for qdisc in counted.values())),
    }


def policer_metrics(cell: Cell, dumps: Sequence[Dump]) -> dict[str, float | None]:
    """What the policers of a cell lost; {} if it has none. dumps: of the filters where they are, at its end."""
    policers = sum(isinstance(shape.policer, Policer) for link in cell.links for shape in (link.forward, link.backward))
    if not policers:
        return {}
    messages = [message for dump in dumps for _, message in split(dump.data())]
    lost = [dropped for _, _, dropped in decode_policers(messages)]
    return {"policer_dropped_packets": float(sum(lost)) if len(lost) == policers else None}


def mark_checks(cell: Cell, layout: Layout, counted: Counted, points: Mapping[str, CapturePoint]) -> Iterator[Check]:
    """If the node behind a link is captured there: checks that as many marked packets arrived as the qdisc marked. What
    leaves by the same interface did not come by the link.

    Only if exactly one link has an AQM: with two a packet may be marked twice. Packets that the qdisc still holds have
    not arrived. Nothing is compared after a cut, since the qdisc's counters start anew, or while an interface was down,
    which empties it, or with bit flips, which may change the mark, or where a sender marks its datagrams itself.
    """
    if any(flow.sender_options.get("ecn") == "ce" for flow in cell.flows):
        return
    managed = {link.name: link for link in cell.links if link.forward.aqm or link.backward.aqm}
    cut = {event.link for event in cell.timeline if event.action in ("cut", "link")}
    for (name, direction), qdisc in counted.items() if len(managed) == 1 else ():
        link = managed[name]
        point = points.get(link.b if direction == "forward" else link.a)
        if point is None or name not in point.links or name in cut:
            continue
        if link.forward.corrupt_ratio or link.backward.corrupt_ratio:
            continue
        packets = point.capture.packets
        marked = packets[(packets["tos"] & ECN_MASK == CE) & (packets["source"] == point.links.index(name))]
        came = int(_over(DirectedLink(name, direction), cell, layout, point, marked).sum())
        twice = f" (at most {qdisc.step_marks} twice)" if qdisc.step_marks else ""
        yield Check(
            f"ECN marks of {name} {direction}",
            0 <= qdisc.marked_packets - came <= qdisc.queued_packets + qdisc.step_marks,
            f"{qdisc.kind} marked {qdisc.marked_packets}{twice} and holds {qdisc.queued_packets} packets; {came} came "
            "marked",
        )


def _over(hop: DirectedLink, cell: Cell, layout: Layout, point: CapturePoint, packets: Rows) -> Bools:
    """Which packets' ways from their source to their destination lead over a direction of a link."""
    places = {face.ip: face for face in layout.interfaces()}
    back = {
        (flow.receiver, flow.sender, path.sender_link): path.back_link for flow in cell.flows for path in flow.paths
    }
    over = np.zeros(len(packets), dtype=np.bool_)
    for ends in dict.fromkeys(pair for one, other in point.addresses for pair in ((one, other), (other, one))):
        if ends[0] not in places or ends[1] not in places:
            continue
        source, target = (places[end] for end in ends)
        leaving = back.get((source.node, target.node, target.link))
        if hop in route_of(cell, source.node, target.node, target.link, leaving):
            over |= point.between(packets, *ends)
    return over


def agent_metrics(cell: Cell, directory: CellDir, dumps: Sequence[Dump]) -> dict[str, float | None]:
    """Metrics of a cell with agents on the forwarding path, over all of them; {} for another.

    dumps: of their rules at the end. An agent's own records are whole lines up to the moment it was killed.
    """
    nodes = forwarding(cell)
    if not nodes:
        return {}
    counted = [decode_rules(dump.data()) for dump in dumps]
    known = [rules for rules in counted if rules is not None]
    whole = len(known) == len(nodes)
    paths = [directory.apps / f"{agent_id(node)}.ndjson" for node in nodes]
    records = [record for path in paths if compressed.exists(path) for record in read_app_log(path)]
    return {
        "agent_retransmitted_packets": float(len(of_kind(records, Retransmit))),
        "agent_suppressed_packets": float(sum(rules.suppressed for rules in known)) if whole else None,
        "agent_lost_packets": float(sum(rules.lost for rules in known)) if whole else None,
        "agent_freezes": float(len(of_kind(records, Freeze)))
        if any(agent.kind == "mtcp" for agent in agents_of(cell).values())
        else None,
    }


def cpu_metrics(flow: Flow, exits: Mapping[str, Exit], delivered_bytes: int | None) -> dict[str, float | None]:
    """CPU seconds for each byte of new payload that arrived at the receiver. exits: program -> its end; in virtual time
    it tells no CPU time: then a flow does not have these metrics. delivered_bytes: None where nothing was captured.
    """
    cpu_ns = {name: ended.cpu_ns for name, ended in exits.items() if ended.cpu_ns is not None}
    if not cpu_ns:
        return {}
    took = {role: cpu_ns.get(f"{flow.name}.{role}") for role in ("sender", "receiver")}
    return {
        f"{role}_cpu_per_byte_s": None if ns is None or not delivered_bytes else ns / 1e9 / delivered_bytes
        for role, ns in took.items()
    }
