"""Reads a direction's rules for single packets: `drop = [3, 7]`, `drop = { every = "1000 packets" }`,
`delay = { 5 = "30 ms" }`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from ..core.link_types import AckThinning, LinkImpairment, PacketRange, PacketRule
from ..core.packet_kinds import KINDS
from ..core.types import Flow
from ..core.wire import IP_PROTOCOLS
from ..experiment.fields import Reader, check_keys, read_integer, read_quantity
from ..experiment.grammar import DELAY_OF_A_PACKET, NUMBER_OF_A_PACKET, PACKET_RANGE
from ..experiment.problems import Problems, nearest
from ..experiment.toml_positions import Item
from .kinds import FLOW_KINDS

MOST_NUMBERS = 1000
MOST_COMPARISONS = 4000
"""Limit for one packet program: its jumps reach 32,767 instructions, and a comparison needs at most 7."""
NO_PACKET_NS = 1000
"""The delay of a rule for no packet: it is there so that a cell is like one in which a packet is delayed."""
LISTS = "[3, 7] or { data = [1], syn_ack = [1] }"
RANGES = '{ every = "1000 packets" }, { from = 20, to = 30 } or { data = { every = "1000 packets" } }'
DELAYS = '{ 5 = "30 ms" } or { data = { 1 = "30 ms" } }'


def read_packet_rules(reader: Reader) -> tuple[PacketRule, ...]:
    """Every rule of a direction. `duplicate` may also be a ratio, which is not a rule."""
    rules: list[PacketRule] = []
    drop, duplicate, delay = (reader.item.get(key) for key in ("drop", "duplicate", "delay"))
    if drop is not None:
        rules += _rules("drop", drop, reader.problems)
    if duplicate is not None and not isinstance(duplicate.value, str):
        rules += _rules("duplicate", duplicate, reader.problems)
    if delay is not None:
        rules += _delays(delay, "", reader.problems)
    if sum(len(rule.numbers) + 2 * len(rule.spans) for rule in rules) > MOST_NUMBERS:
        said = f"more than {MOST_NUMBERS} single packets in one direction (a range counts as two)"
        reader.problem("drop", f"{said}; a range has any number, for example drop = {RANGES}")
    return tuple(rules)


def check_packet_rules(
    shapes: Mapping[str, LinkImpairment], flows: tuple[Flow, ...], problems: Problems, item: Item
) -> None:
    """Reports rules by kind for flows that have the same protocol and port: a packet program could not tell their
    packets apart.
    """
    thinned = any(isinstance(shape.ack_thinning, AckThinning) for shape in shapes.values())
    if not thinned and not any(rule.kind for shape in shapes.values() for rule in shape.packet_rules):
        return
    for name, shape in shapes.items():
        each = ((len(rule.numbers) + 2 * len(rule.spans), rule.kind) for rule in shape.packet_rules)
        numbers = sum(count * (len(flows) if kind else 1) for count, kind in each)
        if numbers > MOST_COMPARISONS:
            said = f"link {name}: {numbers} single packets, for {len(flows)} flows; the most is {MOST_COMPARISONS}"
            problems.add(item, said)
    seen: dict[tuple[int, int], str] = {}
    for flow in flows:
        key = (IP_PROTOCOLS[flow.protocol], flow.port)
        if FLOW_KINDS[flow.protocol].has_ports and seen.setdefault(key, flow.name) != flow.name:
            said = f'flows "{seen[key]}" and "{flow.name}" have one port: a link cannot count their packets apart'
            problems.add(item, f"{said}; give one another port = {flow.port + 1}")


def _rules(action: Literal["drop", "duplicate"], item: Item, problems: Problems) -> Iterator[PacketRule]:
    """The rules of `drop` or `duplicate`; kind "" = of all packets of the direction."""
    if isinstance(item.value, list):
        yield _numbers(action, "", item, problems)
        return
    if not isinstance(item.value, dict):
        said = "must be a list of packets' numbers, a range, or a table of kinds"
        problems.add(item, f"{said}; for example {LISTS}, {RANGES}")
    kinds = {key: child for key, child in item.table().items() if key not in PACKET_RANGE}
    said_range = {key: child for key, child in item.table().items() if key in PACKET_RANGE}
    if said_range:
        ranges = tuple(_range(item.with_value(said_range), problems))
        yield PacketRule(action, (), "", ranges=ranges)
    for kind, child in kinds.items():
        if kind not in KINDS:
            near = nearest(kind, (*KINDS, *PACKET_RANGE))
            problems.add(child, f'there is no kind of packet "{kind[:40]}"{near}; for example {LISTS}')
        elif not isinstance(child.value, list | dict):
            problems.add(child, f"must be a list of numbers, or a range; for example {LISTS}, {RANGES}")
        else:
            rule = _numbers(action, kind, child, problems)
            if rule.numbers or rule.spans:
                yield rule


def _numbers(action: Literal["drop", "duplicate"], kind: str, item: Item, problems: Problems) -> PacketRule:
    """A list of numbers and of ranges, or one range."""
    parts = item.items() if isinstance(item.value, list) else [item]
    ranges = [each for part in parts if isinstance(part.value, dict) for each in _range(part, problems)]
    numbers = [read_integer(part, NUMBER_OF_A_PACKET, problems) for part in parts if not isinstance(part.value, dict)]
    if len(set(numbers)) < len(numbers) and None not in numbers:
        problems.add(item, f"a number stands there twice; for example {LISTS}")
    listed = tuple(sorted({number for number in numbers if number is not None}))
    return PacketRule(action, listed, kind, ranges=tuple(ranges) or msgspec.UNSET)


def _range(item: Item, problems: Problems) -> Iterator[PacketRange]:
    """{ from, to, every }: from the packet `from` to the packet `to`, each or every so many. Without `from` the first
    is the packet number `every`.
    """
    before = len(problems)
    check_keys(item, PACKET_RANGE, problems)
    if not item.value:
        problems.add(item, f"is empty; for example {RANGES}")
    if len(problems) > before:
        return
    reader = Reader(item, PACKET_RANGE, problems)
    step = reader.quantity("every")
    every = 1 if step is None else int(step.value)
    first, last = reader.integer("from") or every, reader.integer("to")
    if last is not None and last < first:
        reader.problem("to", f"no packet: the first would be number {first}; for example {RANGES}")
        return
    yield PacketRange(first, last, every)


def _delays(item: Item, kind: str, problems: Problems) -> list[PacketRule]:
    if not isinstance(item.value, dict):
        said = 'is for single packets; did you mean "one_way_delay", which is of all?'
        problems.add(item, f"{said} For single packets, for example delay = {DELAYS}")
        return []
    if not item.value and not kind:
        return [PacketRule("delay", (), "", NO_PACKET_NS)]
    numbers: dict[int, list[int]] = {}
    rules: list[PacketRule] = []
    for key, child in item.table().items():
        if key.isascii() and key.isdigit() and key[0] != "0" and int(key) < 1 << 31:
            delay = read_quantity(child, DELAY_OF_A_PACKET, problems)
            if delay is not None:
                numbers.setdefault(int(delay.value), []).append(int(key))
        elif kind or key not in KINDS:
            said = f'"{key[:40]}" is neither a packet\'s number nor a kind{nearest(key, KINDS)}'
            problems.add(child, f"{said}; for example {DELAYS}")
        else:
            rules += _delays(child, key, problems)
    return [PacketRule("delay", tuple(sorted(n)), kind, ns) for ns, n in sorted(numbers.items())] + rules
