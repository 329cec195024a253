"""Metrics of the AQM qdiscs' own counters, and a check of their marks against the captures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.types import Cell, Check, DirectionName
from ..core.wire import CE, ECN_MASK
from ..store.init_records import Dump
from ..testbed.layout import Layout
from ..testbed.readback import Qdisc, decode, decode_qdiscs
from .capture_point import CapturePoint

Counted = Mapping[tuple[str, DirectionName], Qdisc]
"""(link, direction) -> its AQM as the last dump of the cell shows it."""


def counted_at_end(cell: Cell, layout: Layout, dumps: Sequence[Dump], addresses: Sequence[Dump]) -> Counted:
    """The AQM qdiscs in the last qdisc dump of each namespace. dumps, addresses: dumps of qdiscs and of addresses, from
    init.ndjson, in their order. A machine's interface that stands in a veth's place keeps its own number: it is found
    by its address.
    """
    if not any(shape.aqm for link in cell.links for shape in (link.forward, link.backward)):
        return {}
    last = {dump.ns: dump for dump in dumps}
    seen = {
        (namespace, qdisc.ifindex): qdisc
        for namespace, dump in last.items()
        for qdisc in decode_qdiscs(dump.data())
        if qdisc.aqm is not None
    }
    numbers = {
        (dump.ns, dict(entry["attrs"]).get("IFA_ADDRESS")): int(entry["index"])
        for dump in addresses
        for entry in decode("address", dump.data())
    }
    places = {
        key: (interface.namespace, numbers.get((interface.namespace, interface.ip), interface.ifindex))
        for key, interface in layout.shaped.items()
    }
    return {key: seen[place] for key, place in places.items() if place in seen}


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


def mark_checks(cell: Cell, counted: Counted, points: Mapping[str, CapturePoint]) -> Iterator[Check]:
    """If a link's marked packets go directly to a captured host: checks that as many marked packets arrived there as
    the qdisc marked.

    Only if exactly one link has an AQM: with two a packet may be marked twice. Packets that the qdisc still holds have
    not arrived. Nothing is compared after a cut, since the qdisc's counters start anew, or with bit flips, which may
    change the mark.
    """
    managed = {link.name: link for link in cell.links if link.forward.aqm or link.backward.aqm}
    cut = {event.link for event in cell.timeline if event.action == "cut"}
    for (name, direction), qdisc in counted.items() if len(managed) == 1 else ():
        link = managed[name]
        point = points.get(link.b if direction == "forward" else link.a)
        if point is None or name not in point.links or name in cut:
            continue
        if link.forward.corrupt_ratio or link.backward.corrupt_ratio:
            continue
        packets = point.capture.packets
        came = int(((packets["tos"] & ECN_MASK == CE) & (packets["source"] == point.links.index(name))).sum())
        yield Check(
            f"ECN marks of {name} {direction}",
            0 <= qdisc.marked_packets - came <= qdisc.queued_packets,
            f"{qdisc.kind} marked {qdisc.marked_packets} and holds {qdisc.queued_packets} packets; {came} came marked",
        )
