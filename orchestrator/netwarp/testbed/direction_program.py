"""The packet program (eBPF) of one direction of a link in a cell: the steps that load, attach and change it, and the
check of its record.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.link_types import AckThinning, DirectionName, LinkImpairment, Opportunities
from ..core.types import OF_TRACE, Cell, Check
from ..store.init_records import Bpf
from . import messages
from .bpf import program_tags
from .delivery_program import Delivered, DeliveryProgram, delivery_program
from .layout import Interface
from .messages import Device
from .netem import UNLIMITED_PACKETS, Netem
from .packet_program import Counts, PacketProgram, packet_program
from .steps import Step, step


@dataclass(frozen=True, slots=True)
class DelayLine:
    """A veth pair in the hop: packets that go out by `enter` wait in its root qdisc, come in by `back`
    and leave by the link's interface.

    An ifb would be simpler, but a packet that has passed one is not captured at its destination (tc_skip_classify stays
    set).
    """

    enter: Device
    back: Device
    mark: int
    stage: Netem


@dataclass(frozen=True, slots=True)
class DirectionProgram:
    """A direction's packet program. `index`: its number in steps. `seed`: of its random generator, derived from the
    cell's seed, the link and the direction.
    """

    link: str
    direction: DirectionName
    index: int
    interface: Interface
    program: PacketProgram | DeliveryProgram
    seed: int
    delay_lines: tuple[DelayLine, ...] = ()

    def load(self, now: bytes) -> Iterator[Step]:
        """Load it with those settings and attach it to the interface's egress."""
        where, delivers = self.interface, isinstance(self.program, DeliveryProgram)
        yield step(
            "bpf",
            index=self.index,
            settings=now.hex(),
            state=self.program.state(self.seed).hex(),
            program=self.program.code.hex(),
            t0=1 if delivers else None,
            command=f"# load packet program {self.index}, tag {program_tags(self.program.code)[0]}, which tc cannot",
        )
        # a line's interface has its place for classifiers already
        requests = [] if delivers else [messages.clsact(where)]
        requests.append(messages.attach_program(where, self.index, self.text()))
        for number, line in enumerate(self.delay_lines):
            assert isinstance(self.program, PacketProgram)
            requests += [
                messages.veth(line.enter, line.back, where.mtu_bytes),
                messages.set_link(line.enter, up=True),
                messages.set_link(line.back, up=True),
                messages.clsact(line.back),
                messages.redirect_all(line.back, where),
                messages.qdisc(line.enter, line.stage, handle=1, parent=None, replace=True),
                messages.redirect_mark(where, line.mark, line.enter, 2 + number),
            ]
        for request in requests:
            yield messages.netlink_step(where.namespace, where.node, request)

    def change(self, now: bytes, at_ns: int) -> Step:
        """The step that gives it other settings."""
        command = f"# settings of packet program {self.index}: {now.hex()}"
        return step("bpf-settings", index=self.index, data=now.hex(), command=command, at_ns=at_ns)

    def text(self) -> str:
        """Its name in the kernel."""
        return f"netwarp-{self.link}-{self.direction}{OF_TRACE * isinstance(self.program, DeliveryProgram)}"

    def check(self, record: Bpf, now: bytes) -> tuple[list[Check], Counts | Delivered]:
        """Compares the settings in its record at the end with those asked for last; also returns its counters."""
        what = f"settings of packet program {self.text()}"
        same = bytes.fromhex(record.settings) == now
        detail = "as asked" if same else f"asked {now.hex()[:200]}, found {record.settings[:200]}"
        return [Check(what, same, detail)], self.program.counts(bytes.fromhex(record.state))

    def check_attached(self, attributes: Mapping[str, str]) -> Check:
        """Checks the interface's filters (name -> the kernel's tag): this program must be the one attached."""
        tags, attached = program_tags(self.program.code), dict(attributes)
        same = attached in [{self.text(): tag} for tag in tags]
        detail = str(attached) if same else f"asked {self.text()} with tag {' or '.join(tags)}, found {attached}"
        return Check(f"packet program {self.text()}", same, detail)


def direction_programs(
    cell: Cell,
    shaped: Mapping[tuple[str, DirectionName], Interface],
    shapes: Mapping[tuple[str, DirectionName], Sequence[LinkImpairment]],
    ifindex: int,
) -> dict[tuple[str, DirectionName], DirectionProgram]:
    """Every direction that needs a program, at its start or after an event.

    shaped: the interface of each direction's qdiscs. shapes: all that it has in the cell. ifindex: the first free one.
    """
    limited = {
        (event.link, name)
        for event in cell.timeline
        for name in event.directions
        if event.longer_than_bytes is not None
    }
    programs: dict[tuple[str, DirectionName], DirectionProgram] = {}
    for (link_name, name), interface in shaped.items():
        of_direction = shapes[link_name, name]
        errors = any(shape.bit_error_ratio or shape.byte_error_ratio for shape in of_direction)
        rules = of_direction[0].packet_rules
        asked = of_direction[0].ack_thinning
        thins = asked if isinstance(asked, AckThinning) else None
        if not errors and not rules and thins is None and (link_name, name) not in limited:
            continue
        program = packet_program(rules, cell.flows, errors=errors, family=interface.ip_family, thins=thins)
        lines = []
        for number, delay_ns in enumerate(program.delays_ns):
            stage = Netem(limit_packets=UNLIMITED_PACKETS, latency_ns=delay_ns, seed=1)
            enter, back = (Device(f"delay{n}", n, interface.namespace) for n in (ifindex, ifindex + 1))
            lines.append(DelayLine(enter, back, program.mark(number), stage))
            ifindex += 2
        digest = hashlib.sha256(f"{cell.seed}/{link_name}/{name}/packets".encode()).digest()
        programs[link_name, name] = DirectionProgram(
            link_name, name, len(programs), interface, program,
            struct.unpack_from("=Q", digest)[0] | 1, tuple(lines),
        )  # fmt: skip
    return programs


def delivery_programs(
    shapes: Mapping[tuple[str, DirectionName], LinkImpairment],
    places: Mapping[tuple[str, DirectionName], Interface],
    index: int,
) -> dict[tuple[str, DirectionName], DirectionProgram]:
    """Of every direction whose packets leave at opportunities, by their shapes and the interfaces where they leave.

    index: the first free number of a program.
    """
    programs: dict[tuple[str, DirectionName], DirectionProgram] = {}
    for key, shape in shapes.items():
        if isinstance(shape.opportunities, Opportunities):
            program = delivery_program(shape.opportunities, shape.queue_packets, shape.queue_bytes)
            programs[key] = DirectionProgram(*key, index + len(programs), places[key], program, 0)
    return programs
