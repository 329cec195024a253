"""The qdiscs of each shaped direction, through faults, repairs and changes.

cut        both qdiscs are replaced, under a new handle, by one that loses everything: packets queued and in flight
           are lost, and the hosts get no notice (ns-2's link-down).
blackhole  the root is changed in place so that it loses every new packet; queued packets still leave.
           With a length only longer packets are lost, by the direction's packet program.
link       an interface goes administratively down (`ip link`, see compile.py); the qdiscs stay.
repair     after a cut: both qdiscs are created anew; after a blackhole: the root is restored.
change     in place, of what differs. A rate that changes is htb's from the start (qdiscs.py, rate_line.py).

compile.py makes steps of the requests; readback.py compares `expected` with what the kernel says. Each request takes
virtual time, so another request, or another order, gives other captures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from ..core.link_types import DirectionName, LinkImpairment
from ..core.types import Cell, Event
from ..core.wire import ETHERNET_HEADER_BYTES
from .aqm import AqmQdisc, aqm_stage
from .delivery_program import DeliveryProgram
from .direction_program import DirectionProgram, delivery_programs, direction_programs
from .layout import Interface, Layout
from .messages import Device, Request, htb_class, qdisc
from .netem import ORDERING_BYTE_S, PROBABILITY_ONE, UNLIMITED_PACKETS, Netem, black_hole, delay_stage, rate_stage
from .packet_program import settings
from .qdiscs import Fq, Htb, QdiscStage, fifo_stage, htb_stage, tbf_stage
from .rate_line import RateLine, rate_lines, rated, shapes_of, varies
from .steps import Step

LEAF_HANDLES = 0x8000
"""The queue below tbf or htb has the root's handle + this."""


@dataclass(frozen=True, slots=True)
class ExpectedQdisc:
    """A qdisc that a dump must show. Handles are major numbers; parent None: root."""

    device: Device
    handle: int
    parent: int | None
    stage: QdiscStage


@dataclass(frozen=True, slots=True)
class _Direction:
    """interface: that of the qdiscs. like: of a direction whose rate changes, the first shape with a rate.
    idle_rate_bit_s: the rate for which RED's table of idle times was made.
    """

    link: str
    name: DirectionName
    interface: Interface
    mtu_bytes: int
    shape: LinkImpairment
    like: LinkImpairment | None
    idle_rate_bit_s: int | None
    line: RateLine | None
    generation: int = 0
    turn: int = 0
    """The number of changes of the root in place. Each change gives netem another seed: with the same one it would
    repeat its draws.
    """
    broken: str = ""
    pending: _Direction | None = None
    """What changes while it is broken have made of it; in the kernel with the repair."""
    longest_bytes: int | None = None
    """Only packets up to that pass."""
    emptied: int = 0
    """How often what waited for its opportunity was lost."""

    @property
    def handle(self) -> int:
        return 2 * self.generation + 1


def _child(shape: LinkImpairment) -> str:
    """Kind of the child qdiscs that rate and queue need; a change from one kind to another replaces all of them."""
    if shape.rate_bit_s is None:
        return ""
    if shape.aqm is not None:  # fq_codel's number of flows is for good
        return f"{shape.aqm.kind} {shape.aqm.settings.get('flows')}"
    return "bytes" if shape.token_bucket else "packets"


def _same_aqm(one: LinkImpairment, other: LinkImpairment) -> bool:
    """Whether an AQM stays as it is: RED changed in place forgets what waits (sch_red.c: __red_change)."""
    return (
        other.aqm is not None
        and _child(one) == _child(other)
        and (one.aqm, one.queue_bytes, one.queue_packets) == (other.aqm, other.queue_bytes, other.queue_packets)
    )


def _with_a_rate(shape: LinkImpairment, like: LinkImpairment | None) -> LinkImpairment:
    """The shape; one without a rate gets a rate of no consequence and the queue of `like`, so that what waits when a
    rate ends leaves at once.
    """
    if shape.rate_bit_s is not None or like is None:
        return shape
    queue = {name: getattr(like, name) for name in ("queue_packets", "queue_bytes", "aqm")}
    return msgspec.structs.replace(shape, rate_bit_s=8 * ORDERING_BYTE_S, **queue)


class Shaping:
    """The qdiscs of a cell while its timeline changes them. Every method returns the netlink requests of its change.

    credit_ns: of htb (Htb.credit_ticks).
    """

    def __init__(self, cell: Cell, layout: Layout, credit_ns: int) -> None:
        self._seed, self._credit_ns = cell.seed, credit_ns
        mtu_bytes = {link.name: link.mtu_bytes for link in cell.links}
        shapes = shapes_of(cell)
        self.lines = rate_lines(layout, shapes)
        shaped = layout.shaped | {key: line.queue for key, line in self.lines.items()}
        self._directions: dict[tuple[str, DirectionName], _Direction] = {}
        for (link, name), interface in shaped.items():
            every = shapes[link, name]
            like = rated(every)[0] if varies(every) else None
            rate = like.rate_bit_s if like and every[0].rate_bit_s is None else every[0].rate_bit_s
            self._directions[link, name] = _Direction(
                link, name, interface, mtu_bytes[link], _with_a_rate(every[0], like), like, rate,
                self.lines.get((link, name)),
            )  # fmt: skip
        free = layout.free_ifindex() + 2 * len(self.lines)
        self.programs = direction_programs(cell, shaped, shapes, free)
        first = {key: every[0] for key, every in shapes.items()}
        self.deliveries = delivery_programs(first, layout.shaped, len(self.programs))

    def install(self) -> list[tuple[int, Request]]:
        """(namespace, request) for every qdisc at the start."""
        lines = [(line.out.namespace, request) for line in self.lines.values() for request in line.requests()]
        return lines + [item for direction in self._directions.values() for item in self._build(direction)]

    def expected(self, namespace: int | None = None) -> list[ExpectedQdisc]:
        """Every qdisc that must exist now (in one namespace)."""
        qdiscs = [stage for direction in self._directions.values() for stage in self._stages(direction)]
        for program in self.programs.values():
            for line in program.delay_lines:
                qdiscs.append(ExpectedQdisc(line.enter, 1, None, line.stage))
        return [qdisc for qdisc in qdiscs if namespace in (None, qdisc.device.namespace)]

    def waiting_for(self, end: Interface) -> list[Interface]:
        """Where packets wait that leave by an interface, if not at the interface itself."""
        return [line.queue for line in self.lines.values() if line.out == end]

    def settings(self, program: DirectionProgram) -> bytes:
        """The settings that a direction's packet program must have now."""
        direction = self._directions[program.link, program.direction]
        if isinstance(program.program, DeliveryProgram):
            return program.program.settings(direction.emptied)
        return settings((direction.pending or direction).shape, direction.longest_bytes)

    def load_programs(self) -> Iterator[Step]:
        """The steps that load and attach every packet program."""
        for program in self.every_program():
            yield from program.load(self.settings(program))

    def every_program(self) -> tuple[DirectionProgram, ...]:
        """Every program, by its number."""
        return (*self.programs.values(), *self.deliveries.values())

    def emptied(self, end: Interface) -> Iterator[DirectionProgram]:
        """The delivery programs whose packets are gone as an interface went down; they are told by their settings."""
        for key, line in self.lines.items():
            if line.out == end and key in self.deliveries:
                direction = self._directions[key]
                self._directions[key] = replace(direction, emptied=direction.emptied + 1)
                yield self.deliveries[key]

    def change_programs(self, event: Event) -> Iterator[Step]:
        """The steps of an event that packet programs need; after `apply`."""
        for name in event.directions:
            delivery = self.deliveries.get((event.link, name))
            if delivery is not None and event.action == "cut":
                yield delivery.change(self.settings(delivery), event.at_ns)
            program = self.programs.get((event.link, name))
            if program is not None and (event.action == "change" or event.longer_than_bytes is not None):
                yield program.change(self.settings(program), event.at_ns)

    def apply(self, event: Event) -> list[tuple[int, Request]]:
        """The requests of one event; a `link` event and its repair touch no qdisc."""
        requests: list[tuple[int, Request]] = []
        for name in event.directions:
            direction = self._directions[event.link, name]
            shape = event.side(name)
            if event.action == "change" and shape is not None:
                requests += self._change(direction, _with_a_rate(shape, direction.like))
            elif event.longer_than_bytes is not None:
                longest = event.longer_than_bytes if event.action == "blackhole" else None
                self._directions[event.link, name] = replace(direction, longest_bytes=longest)
            elif event.action in ("cut", "blackhole"):
                requests += self._break(direction, event.action)
            elif event.action == "repair":
                requests += self._repair(direction)
        return requests

    def _break(self, direction: _Direction, how: str) -> list[tuple[int, Request]]:
        generation = direction.generation + 1 if how == "cut" else direction.generation
        return self._become(
            replace(
                direction, generation=generation, turn=direction.turn + (how != "cut"), broken=how,
                emptied=direction.emptied + (how == "cut"),
            )
        )  # fmt: skip

    def _repair(self, direction: _Direction) -> list[tuple[int, Request]]:
        if not direction.broken:
            return []
        whole = replace(direction.pending or direction, broken="", pending=None)
        if direction.broken == "cut":
            return self._become(replace(whole, generation=whole.generation + 1))
        return self._become(replace(whole, turn=whole.turn + 1), again=direction.pending is not None)

    def _change(self, direction: _Direction, shape: LinkImpairment) -> list[tuple[int, Request]]:
        before = direction.pending or direction
        changed = replace(
            before, shape=shape, generation=before.generation + (_child(before.shape) != _child(shape)),
            turn=before.turn + 1,
            idle_rate_bit_s=before.idle_rate_bit_s if _same_aqm(before.shape, shape) else shape.rate_bit_s,
        )  # fmt: skip
        if direction.broken:
            self._directions[direction.link, direction.name] = replace(direction, pending=changed)
            return []
        return self._become(changed, again=True)

    def _become(self, now: _Direction, *, again: bool = False) -> list[tuple[int, Request]]:
        """again: netem is asked also for what it has already. It alters nothing, but each request takes some virtual
        time, by which the captures of cells would differ from those of earlier versions.
        """
        was = self._directions[now.link, now.name]
        self._directions[now.link, now.name] = now
        return self._build(now, self._stages(was), again=again)

    def _stages(self, direction: _Direction) -> list[ExpectedQdisc]:
        """From the root down, then the line's."""
        handle, shape, where, line = direction.handle, direction.shape, direction.interface, direction.line
        aqm, managed = shape.aqm, shape.aqm is not None and shape.aqm.kind == "cake"
        seeds = self._qdisc_seed(direction, 0), self._qdisc_seed(direction, 1)
        child: QdiscStage | None = None
        leaf: QdiscStage | None = None
        if direction.broken == "cut":
            root = Netem(limit_packets=UNLIMITED_PACKETS, loss=PROBABILITY_ONE, seed=seeds[0])
        else:
            root = delay_stage(shape, seeds[0])
            if direction.like is not None and shape.layer == "ip" and not managed:
                root = msgspec.structs.replace(root, size_overhead_bytes=-ETHERNET_HEADER_BYTES)
            if direction.broken == "blackhole":
                root = black_hole(root)
            if managed:
                child = aqm_stage(shape, direction.mtu_bytes)
            elif direction.like is not None:
                child, leaf = htb_stage(shape, self._credit_ns), fifo_stage(shape) if aqm is None else None
            elif shape.token_bucket and shape.rate_bit_s is not None:
                child = tbf_stage(shape, direction.mtu_bytes)
                leaf = fifo_stage(shape) if aqm is None and shape.queue_packets is not None else None
            else:
                child = rate_stage(shape, seeds[1])
            if aqm is not None and not managed:
                idle = msgspec.structs.replace(shape, rate_bit_s=direction.idle_rate_bit_s)
                leaf = aqm_stage(idle, direction.mtu_bytes)
        placed: list[tuple[int, int | None, QdiscStage | None, Interface]] = [
            (handle, None, root, where), (handle + 1, handle, child, where),
            (LEAF_HANDLES + handle, handle + 1, leaf, where),
        ]  # fmt: skip
        if line is not None and line.delivers:
            placed.append((handle, None, Fq(UNLIMITED_PACKETS), line.out))
        elif line is not None:
            rate = 8 * ORDERING_BYTE_S if shape.token_bucket or managed else shape.rate_bit_s
            sending = msgspec.structs.replace(shape, rate_bit_s=rate, queue_packets=None)
            placed.append((handle, None, rate_stage(sending, seeds[1]), line.out))
        return [ExpectedQdisc(at, number, parent, stage) for number, parent, stage, at in placed if stage is not None]

    def _build(
        self, direction: _Direction, there: Sequence[ExpectedQdisc] = (), *, again: bool = False
    ) -> list[tuple[int, Request]]:
        """The requests for its qdiscs where others are there: what is the same stays untouched."""
        old = {(qdisc.device.ifindex, qdisc.handle): qdisc.stage for qdisc in there}
        requests: list[tuple[int, Request]] = []
        for want in self._stages(direction):
            device, handle, stage = want.device, want.handle, want.stage
            same = old.get((device.ifindex, handle))
            if stage == same and not (again and isinstance(stage, Netem)):
                continue
            if same is None or not isinstance(stage, Htb):
                asked = stage.in_place() if isinstance(stage, AqmQdisc) and same is not None else stage
                request = qdisc(device, asked, handle=handle, parent=want.parent, replace=same is None)
                requests.append((device.namespace, request))
            if isinstance(stage, Htb):
                request = htb_class(device, stage, handle=handle, create=same is None)
                requests.append((device.namespace, request))
        return requests

    def _qdisc_seed(self, direction: _Direction, stage: int) -> int:
        """A seed from (cell's seed, link, direction), so that variants of a cell meet the same losses. Each new
        generation of the qdisc has another one.
        """
        # the text is hashed: another one gives other losses for the same seed
        text = f"{self._seed}/{direction.link}/{direction.name}/{direction.generation}/{stage}"
        if direction.turn and stage == 0:  # the rate's stage draws nothing
            text += f"/{direction.turn}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") | 1
