"""Lets a plan grow by the schedules of its cells: a cell and the packets that it had -> the cells in which one more of
them is lost, doubled or late. docs/decisions/0014.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from ..core.errors import SpecError
from ..core.link_types import SIDES, DirectionName, Link, LinkImpairment, PacketRule
from ..core.schedule_levels import BETWEEN, ENDINGS, UNDISTURBED, PacketPosition, PacketSchedule, packets_of_level
from ..core.types import Cell
from ..experiment.factors import DOES_NOT_APPLY
from .packet_rules import NO_PACKET_NS
from .types import Level, Plan, PlannedExperiment, PlannedFactor

PAST_NS = NO_PACKET_NS
"""The time by which a late packet comes after the next one."""


@dataclass(frozen=True, slots=True)
class ScheduledCell:
    """A cell, the factor whose level is its schedule, and that schedule."""

    cell: Cell
    factor: str
    schedule: PacketSchedule

    @property
    def size(self) -> int:
        """The number of packets that are touched."""
        return packets_of_level(self.cell.factors[self.factor])

    @property
    def combination(self) -> tuple[str, ...]:
        """The properties that all cells of one tree share."""
        others = (level for factor, level in self.cell.factors.items() if factor != self.factor)
        return self.factor, str(self.cell.repetition), *others


def scheduled_cells(plan: Plan) -> list[ScheduledCell]:
    """The cells whose experiment varies a schedule."""
    varied = {experiment.name: experiment.factors for experiment in plan.experiments}
    shared: dict[tuple[str, ...], set[str]] = {}
    for experiment in plan.experiments:
        for levels in experiment.shared:
            shared.setdefault(levels, set()).update(experiment.factors)
    scheduled: list[ScheduledCell] = []
    factors = [(factor.name, factor.schedule) for factor in plan.factors if factor.schedule is not None]
    for cell in plan.cells if factors else ():
        names = shared.get(tuple(cell.factors.values()), varied[cell.experiment])
        for name, schedule in factors:
            if name in names and cell.factors[name] != DOES_NOT_APPLY:
                scheduled.append(ScheduledCell(cell, name, schedule))
    return scheduled


def directions_of(schedule: PacketSchedule, cell: Cell) -> list[tuple[Link, DirectionName]]:
    """The directions of a cell's links whose packets a schedule may touch."""
    every = [(link, side) for link in cell.links for side in SIDES]
    return [(link, side) for link, side in every if not schedule.of or f"{link.name}.{side}" in schedule.of]


def with_counters(plan: Plan) -> Plan:
    """The plan in which also the cells without a schedule count the packets of its directions: a packet program takes
    part in the kernel's random numbers, so with it a cell and those that grow from it begin with the same packets.

    Raises SpecError if the packets of a schedule could not be counted.
    """
    _check(plan)
    counting: dict[int, Cell] = {}
    for scheduled in scheduled_cells(plan):
        rule = _rule(scheduled.schedule, (), PAST_NS)
        cell = scheduled.cell
        for link, side in directions_of(scheduled.schedule, cell):
            cell = _with_rules(cell, link.name, side, (rule,))
        counting[id(scheduled.cell)] = cell
    return msgspec.structs.replace(plan, cells=tuple(counting.get(id(cell), cell) for cell in plan.cells))


def without_growth(plan: Plan, named: Collection[str]) -> Plan:
    """The plan that does not grow by these factors."""
    factors = (
        msgspec.structs.replace(factor, schedule=None) if factor.name in named else factor for factor in plan.factors
    )
    return msgspec.structs.replace(plan, factors=tuple(factors))


def _check(plan: Plan) -> None:
    known: dict[str, set[str]] = {}
    for scheduled in scheduled_cells(plan):
        cell, schedule, name = scheduled.cell, scheduled.schedule, scheduled.factor
        captured = {(capture.node, capture.link) for capture in cell.captures}
        routers = {node.name for node in cell.nodes if node.kind == "router"}
        known.setdefault(name, set()).update(f"{link.name}.{side}" for link in cell.links for side in SIDES)
        for link, side in directions_of(schedule, cell):
            sender = link.a if side == "forward" else link.b
            if link.side(side).packet_rules:
                raise SpecError(
                    f"factor {name}: {link.name}.{side} has rules for single packets already (drop, duplicate, delay); "
                    f"leave them out, or name other directions, for example of = {_of(cell)}"
                )
            if sender in routers:
                raise SpecError(
                    f"factor {name}: the packets of {link.name}.{side} come from the router {sender}; only what a host "
                    f"sends is counted, for example of = {_of(cell)}"
                )
            if (sender, link.name) not in captured:
                raise SpecError(
                    f"factor {name}: {sender} sends the packets of {link.name}.{side}, and is not captured there; "
                    'leave `captures` out, or name it, for example captures = ["a.p1", "b.p1"]'
                )
    for factor in plan.factors:
        there = known.get(factor.name, set())
        wrong = [name for name in factor.schedule.of if name not in there] if factor.schedule is not None else []
        if wrong and there:
            said = f'no cell has the direction "{wrong[0]}"; there is: {", ".join(sorted(there))}'
            raise SpecError(f"factor {factor.name}: of: {said}")


def _of(cell: Cell) -> str:
    hosts = {node.name for node in cell.nodes if node.kind == "host"}
    ends = [(link.name, side, link.a if side == "forward" else link.b) for link in cell.links for side in SIDES]
    return "[" + ", ".join(f'"{link}.{side}"' for link, side, sender in ends if sender in hosts) + "]"


def most_cells(plan: Plan) -> int:
    """The most cells that the plan can grow to."""
    grows = (each.schedule.most for each in scheduled_cells(plan) if each.size == 0)
    return sum(1 for _ in plan.cells) + sum(grows)


def undisturbed(plan: Plan) -> Plan:
    """The plan before it has grown."""
    disturbed = {id(each.cell) for each in scheduled_cells(plan) if each.size}
    if not disturbed:
        return plan
    return with_cells(plan, [cell for cell in plan.cells if id(cell) not in disturbed])


def with_cells(plan: Plan, cells: Sequence[Cell]) -> Plan:
    """The plan with these cells, and with the levels and shared combinations of its schedules that they have."""
    names = [factor.name for factor in plan.factors]
    schedules = {factor.name for factor in plan.factors if factor.schedule is not None}
    if not schedules:
        return msgspec.structs.replace(plan, cells=tuple(cells))
    known: dict[str, dict[str, None]] = {name: {UNDISTURBED: None} for name in schedules}
    for cell in cells:
        for name in schedules:
            if cell.factors[name] != DOES_NOT_APPLY:
                known[name].setdefault(cell.factors[name])
    return msgspec.structs.replace(
        plan,
        cells=tuple(cells),
        factors=tuple(_with_levels(factor, known.get(factor.name)) for factor in plan.factors),
        experiments=tuple(_with_shared(each, cells, names, schedules) for each in plan.experiments),
    )


def _with_levels(factor: PlannedFactor, names: Iterable[str] | None) -> PlannedFactor:
    if names is None:
        return factor
    return msgspec.structs.replace(factor, levels=tuple(Level(name, name) for name in names))


def _with_shared(
    experiment: PlannedExperiment, cells: Sequence[Cell], names: Sequence[str], schedules: set[str]
) -> PlannedExperiment:
    """A schedule of a combination is shared where the undisturbed combination is."""
    varied = schedules & set(experiment.factors)

    def before(levels: Mapping[str, str]) -> tuple[str, ...]:
        return tuple(
            UNDISTURBED if name in varied and levels[name] != DOES_NOT_APPLY else levels[name] for name in names
        )

    roots = {levels for levels in experiment.shared if before(dict(zip(names, levels, strict=True))) == levels}
    if not roots or not varied:
        return experiment
    there = dict.fromkeys(tuple(cell.factors.values()) for cell in cells if before(cell.factors) in roots)
    return msgspec.structs.replace(experiment, shared=tuple(there))


def children(parent: ScheduledCell, positions: Sequence[PacketPosition]) -> list[Cell]:
    """The cells in which one more packet of the parent is touched: each after those that are touched already.

    positions: the packets of the schedule's directions that the parent had, in the order in which they were sent.
    """
    schedule = parent.schedule
    counted = [number for number, position in enumerate(positions) if position.t_ns >= schedule.from_ns][
        : schedule.first
    ]
    touched = {
        (link.name, side, number)
        for link in parent.cell.links
        for side in SIDES
        for rule in link.side(side).packet_rules
        for number in rule.numbers
    }
    last = max((number for number, position in enumerate(positions) if position.place in touched), default=-1)
    rtt_ns = {link.name: link.forward.one_way_delay_ns + link.backward.one_way_delay_ns for link in parent.cell.links}
    late = schedule.action == "reorder"
    times: dict[tuple[str, str], list[int]] = {}
    for position in positions:
        times.setdefault((position.link, position.direction), []).append(position.t_ns)
    return [
        _touched(parent, positions[number])
        for number in counted
        if number > last
        and not (
            late
            and not _overtaken(
                position := positions[number], times[position.link, position.direction], rtt_ns[position.link]
            )
        )
    ]


def _overtaken(position: PacketPosition, times_ns: Sequence[int], rtt_ns: int) -> bool:
    """True if exactly the next packet of the direction would overtake this one: it follows within the link's round
    trip, so that it would be sent even if this one were late, and the one after it does not come at the same instant.

    times_ns: when the packets of the direction are sent.
    """
    if position.gap_ns is None or position.gap_ns >= rtt_ns:
        return False
    after = times_ns[position.number + 1 : position.number + 2]  # numbers are from 1
    return not after or after[0] - position.t_ns - position.gap_ns > PAST_NS


def _touched(parent: ScheduledCell, position: PacketPosition) -> Cell:
    cell, name = parent.cell, position.name + ENDINGS[parent.schedule.action]
    before = cell.factors[parent.factor]
    level = name if before == UNDISTURBED else f"{before}{BETWEEN}{name}"
    delay_ns = 0 if position.gap_ns is None else position.gap_ns + PAST_NS
    shape = cell.shapes[position.link, position.direction]
    numbers = tuple(sorted((position.number, *(number for rule in shape.packet_rules for number in rule.numbers))))
    rule = _rule(parent.schedule, numbers, delay_ns)
    touched = _with_rules(cell, position.link, position.direction, (rule,))
    return msgspec.structs.replace(touched, factors={**cell.factors, parent.factor: level})


def _rule(schedule: PacketSchedule, numbers: tuple[int, ...], delay_ns: int) -> PacketRule:
    if schedule.action == "reorder":
        return PacketRule("delay", numbers, "", delay_ns)
    return PacketRule(schedule.action, numbers)


def _with_rules(cell: Cell, name: str, side: DirectionName, rules: tuple[PacketRule, ...]) -> Cell:
    """The cell with these rules in a direction of a link, also after its events."""

    def changed(shape: LinkImpairment | None) -> LinkImpairment | None:
        return None if shape is None else msgspec.structs.replace(shape, packet_rules=rules)

    return msgspec.structs.replace(
        cell,
        links=tuple(
            msgspec.structs.replace(link, **{side: changed(link.side(side))}) if link.name == name else link
            for link in cell.links
        ),
        timeline=tuple(
            msgspec.structs.replace(event, **{side: changed(event.side(side))}) if event.link == name else event
            for event in cell.timeline
        ),
    )
