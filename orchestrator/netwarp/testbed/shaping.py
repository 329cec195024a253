"""The qdiscs of each shaped direction, through faults, repairs and changes.

cut        both qdiscs are replaced, under a new handle, by one that loses everything: packets queued and in flight
           are lost, and the hosts get no notice (ns-2's link-down).
blackhole  the root is changed in place so that it loses every new packet; queued packets still leave.
           With a length only longer packets are lost, by the direction's packet program.
link       an interface goes administratively down (`ip link`, see compile.py); the qdiscs stay.
repair     after a cut: both qdiscs are created anew; after a blackhole: the root is restored.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

import msgspec

from ..core.types import Cell, DirectionName, Event, Link, LinkImpairment
from .aqm import AqmQdisc, aqm_stage
from .direction_program import DirectionProgram, direction_programs
from .interface import Interface
from .layout import Layout
from .messages import Request, Stage, qdisc
from .netem import PROBABILITY_ONE, UNLIMITED_PACKETS, Netem, black_hole, delay_stage, rate_stage
from .steps import Step
from .tbf import tbf_stage

AQM_HANDLES = 0x8000
"""An AQM below tbf has the root's handle + this."""


@dataclass(frozen=True, slots=True)
class ExpectedQdisc:
    """A qdisc that a dump must show. Handles are major numbers; parent None: root."""

    namespace: int
    ifindex: int
    interface: str
    handle: int
    parent: int | None
    stage: Stage


@dataclass(frozen=True, slots=True)
class _Direction:
    link: str
    name: DirectionName
    interface: Interface
    mtu_bytes: int
    shape: LinkImpairment
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
    idle_rate_bit_s: int | None = None
    """The rate for which RED's table of idle times was made."""

    @property
    def handle(self) -> int:
        return 2 * self.generation + 1


def _child(shape: LinkImpairment) -> str:
    """Kind of the child qdiscs that rate and queue need; a change from one kind to another replaces all of them."""
    if shape.rate_bit_s is None:
        return ""
    if shape.aqm is not None:  # fq_codel's number of flows is for good
        return f"{shape.aqm.kind} {shape.aqm.settings.get('flows')}"
    return "tbf" if shape.token_bucket else "netem"


def _same_aqm(one: LinkImpairment, other: LinkImpairment) -> bool:
    """Whether an AQM stays as it is: RED changed in place forgets what waits (sch_red.c: __red_change)."""
    return (
        other.aqm is not None
        and _child(one) == _child(other)
        and (one.aqm, one.queue_bytes, one.queue_packets) == (other.aqm, other.queue_bytes, other.queue_packets)
    )


class Shaping:
    """The qdiscs of a cell while its timeline changes them. Every method returns the netlink requests of its change."""

    def __init__(self, cell: Cell, layout: Layout) -> None:
        links: dict[str, Link] = {link.name: link for link in cell.links}
        self._seed = cell.seed
        self._directions: dict[tuple[str, DirectionName], _Direction] = {}
        for (link, name), interface in layout.shaped.items():
            shape = links[link].forward if name == "forward" else links[link].backward
            self._directions[link, name] = _Direction(
                link, name, interface, links[link].mtu_bytes, shape, idle_rate_bit_s=shape.rate_bit_s
            )
        self.programs = direction_programs(cell, layout)

    def install(self) -> list[tuple[int, Request]]:
        """(namespace, request) for every qdisc at the start."""
        return [item for direction in self._directions.values() for item in self._build(direction)]

    def expected(self, namespace: int | None = None) -> list[ExpectedQdisc]:
        """Every qdisc that must exist now (in one namespace)."""
        qdiscs: list[ExpectedQdisc] = []
        for direction in self._directions.values():
            if namespace in (None, direction.interface.namespace):
                interface = direction.interface
                for handle, parent, stage in self._stages(direction):
                    qdiscs.append(
                        ExpectedQdisc(interface.namespace, interface.ifindex, interface.name, handle, parent, stage)
                    )
        for program in self.programs.values():
            if namespace in (None, program.interface.namespace):
                for line in program.delay_lines:
                    qdiscs.append(
                        ExpectedQdisc(program.interface.namespace, line.ifindex, line.name, 1, None, line.stage)
                    )
        return qdiscs

    def settings(self, program: DirectionProgram) -> bytes:
        """The settings that a direction's packet program must have now."""
        direction = self._directions[program.link, program.direction]
        return program.settings((direction.pending or direction).shape, direction.longest_bytes)

    def load_programs(self) -> Iterator[Step]:
        """The steps that load and attach every packet program."""
        for program in self.programs.values():
            yield from program.load(self.settings(program))

    def change_programs(self, event: Event) -> Iterator[Step]:
        """The steps of an event that packet programs need; after `apply`."""
        for name in event.directions:
            program = self.programs.get((event.link, name))
            if program is not None and (event.action == "change" or event.longer_than_bytes is not None):
                yield program.change(self.settings(program), event.at_ns)

    def apply(self, event: Event) -> list[tuple[int, Request]]:
        """The requests of one event; a `link` event and its repair touch no qdisc."""
        requests: list[tuple[int, Request]] = []
        for name in event.directions:
            direction = self._directions[event.link, name]
            if event.action == "change":
                requests += self._change(direction, event.forward if name == "forward" else event.backward)
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
        broken = replace(direction, generation=generation, turn=direction.turn + (how != "cut"), broken=how)
        self._directions[direction.link, direction.name] = broken
        return self._build(broken, replace_root=how == "cut", root_only=True)

    def _repair(self, direction: _Direction) -> list[tuple[int, Request]]:
        if not direction.broken:
            return []
        whole = replace(direction.pending or direction, broken="", pending=None)
        if direction.broken == "cut":
            whole = replace(whole, generation=whole.generation + 1)
        else:
            whole = replace(whole, turn=whole.turn + 1)
        self._directions[direction.link, direction.name] = whole
        return self._build(
            whole,
            replace_root=whole.generation != direction.generation,
            root_only=direction.broken != "cut" and direction.pending is None,
            keep_aqm=direction.broken != "cut" and _same_aqm(direction.shape, whole.shape),
        )

    def _change(self, direction: _Direction, shape: LinkImpairment | None) -> list[tuple[int, Request]]:
        if shape is None:
            return []
        before = direction.pending or direction
        rated = _child(before.shape) != _child(shape)
        same_aqm = _same_aqm(before.shape, shape)
        changed = replace(
            before, shape=shape, generation=before.generation + (1 if rated else 0), turn=before.turn + 1,
            idle_rate_bit_s=before.idle_rate_bit_s if same_aqm else shape.rate_bit_s,
        )  # fmt: skip
        if direction.broken:
            self._directions[direction.link, direction.name] = replace(direction, pending=changed)
            return []
        self._directions[direction.link, direction.name] = changed
        return self._build(changed, replace_root=rated, keep_aqm=same_aqm)

    def _stages(self, direction: _Direction) -> list[tuple[int, int | None, Stage]]:
        """(handle, parent, stage) from the root down."""
        handle = direction.handle
        if direction.broken == "cut":
            return [
                (
                    handle,
                    None,
                    Netem(limit_packets=UNLIMITED_PACKETS, loss=PROBABILITY_ONE, seed=self._qdisc_seed(direction, 0)),
                )
            ]
        root = delay_stage(direction.shape, self._qdisc_seed(direction, 0))
        if direction.broken == "blackhole":
            root = black_hole(root)
        stages: list[tuple[int, int | None, Stage]] = [(handle, None, root)]
        aqm = direction.shape.aqm
        if aqm is not None and aqm.kind == "cake":
            stages.append((handle + 1, handle, aqm_stage(direction.shape, direction.mtu_bytes)))
            return stages
        if direction.shape.token_bucket and direction.shape.rate_bit_s is not None:
            stages.append((handle + 1, handle, tbf_stage(direction.shape, direction.mtu_bytes)))
            if aqm is not None:
                shape = msgspec.structs.replace(direction.shape, rate_bit_s=direction.idle_rate_bit_s)
                stages.append((AQM_HANDLES + handle, handle + 1, aqm_stage(shape, direction.mtu_bytes)))
            return stages
        rate = rate_stage(direction.shape, self._qdisc_seed(direction, 1))
        if rate is not None:
            stages.append((handle + 1, handle, rate))
        return stages

    def _build(
        self, direction: _Direction, *, replace_root: bool = True, root_only: bool = False, keep_aqm: bool = False
    ) -> list[tuple[int, Request]]:
        where = direction.interface
        kept = keep_aqm and not replace_root
        stages = [stage for stage in self._stages(direction) if not (kept and stage[0] >= AQM_HANDLES)]
        requests: list[tuple[int, Request]] = []
        for handle, parent, stage in stages[:1] if root_only else stages:
            asked = stage.in_place() if isinstance(stage, AqmQdisc) and not replace_root else stage
            requests.append(
                (
                    where.namespace,
                    qdisc(where.name, where.ifindex, asked, handle=handle, parent=parent, replace=replace_root),
                )
            )
        return requests

    def _qdisc_seed(self, direction: _Direction, stage: int) -> int:
        """A seed from (cell's seed, link, direction), so that variants of a cell meet the same losses. Each new
        generation of the qdisc has another one.
        """
        text = f"{self._seed}/{direction.link}/{direction.name}/{direction.generation}/{stage}"
        if direction.turn and stage == 0:  # the rate's stage draws nothing
            text += f"/{direction.turn}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") | 1
