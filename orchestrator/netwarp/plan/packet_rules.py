"""Reads rules of a link for single packets, as a spec writes them: `drop = [3, 7]`, `delay = { data = { 1 = "30 ms" }
}`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..core.packet_kinds import KINDS
from ..core.types import Flow, LinkImpairment, PacketRule
from ..experiment.fields import read_integer, read_quantity
from ..experiment.grammar import DELAY_OF_A_PACKET, NUMBER_OF_A_PACKET
from ..experiment.problems import Problems, nearest
from ..experiment.reader import Reader
from ..experiment.toml_positions import Item

MOST_NUMBERS = 1000
MOST_COMPARISONS = 4000
"""Limit for one packet program: its jumps reach 32,767 instructions, and a comparison needs at most 7."""
NO_PACKET_NS = 1000
"""The delay of a rule for no packet: it is there so that a cell is like one in which a packet is delayed."""
LISTS = "[3, 7] or { data = [1], syn_ack = [1] }"
DELAYS = '{ 5 = "30 ms" } or { data = { 1 = "30 ms" } }'


def read_packet_rules(reader: Reader) -> tuple[PacketRule, ...]:
    """Every rule of a direction; mistakes are collected. `duplicate` may also be a ratio, which is not a rule."""
    rules: list[PacketRule] = []
    drop, duplicate, delay = (reader.item.get(key) for key in ("drop", "duplicate", "delay"))
    if drop is not None:
        rules += [PacketRule("drop", numbers, kind) for kind, numbers in _lists(drop, reader.problems)]
    if duplicate is not None and not isinstance(duplicate.value, str):
        rules += [PacketRule("duplicate", numbers, kind) for kind, numbers in _lists(duplicate, reader.problems)]
    if delay is not None:
        rules += _delays(delay, "", reader.problems)
    if sum(len(rule.numbers) for rule in rules) > MOST_NUMBERS:
        reader.problem("drop", f"more than {MOST_NUMBERS} single packets in one direction")
    return tuple(rules)


def check_packet_rules(
    shapes: Mapping[str, LinkImpairment], flows: tuple[Flow, ...], problems: Problems, item: Item, context: str
) -> None:
    """Reports rules by kind for flows that have the same protocol and port: a packet program could not tell their
    packets apart.
    """
    if not any(rule.kind for shape in shapes.values() for rule in shape.packet_rules):
        return
    for name, shape in shapes.items():
        numbers = sum(len(rule.numbers) * (len(flows) if rule.kind else 1) for rule in shape.packet_rules)
        if numbers > MOST_COMPARISONS:
            said = f"link {name}: {numbers} single packets, for {len(flows)} flows; the most is {MOST_COMPARISONS}"
            problems.add(item, said, context=context)
    seen: dict[tuple[str, int], str] = {}
    for flow in flows:
        key = ("tcp" if flow.protocol == "mptcp" else flow.protocol, flow.port)
        if flow.protocol != "icmp" and seen.setdefault(key, flow.name) != flow.name:
            said = f'flows "{seen[key]}" and "{flow.name}" have one port: a link cannot count their packets apart'
            problems.add(item, f"{said}; give one another port = {flow.port + 1}", context=context)


def _lists(item: Item, problems: Problems) -> Iterator[tuple[str, tuple[int, ...]]]:
    """(kind, numbers); kind "" = of all packets of the direction."""
    if isinstance(item.value, list):
        yield "", _numbers(item, problems)
        return
    if not isinstance(item.value, dict):
        problems.add(item, f"must be a list of packets' numbers, or a table of kinds; for example {LISTS}")
        return
    for kind, child in item.table().items():
        if kind not in KINDS:
            problems.add(child, f'there is no kind of packet "{kind[:40]}"{nearest(kind, KINDS)}; for example {LISTS}')
        elif not isinstance(child.value, list):
            problems.add(child, f"must be a list of numbers; for example {LISTS}")
        elif numbers := _numbers(child, problems):
            yield kind, numbers


def _numbers(item: Item, problems: Problems) -> tuple[int, ...]:
    numbers = [read_integer(child, NUMBER_OF_A_PACKET, problems) for child in item.items()]
    if len(set(numbers)) < len(numbers) and None not in numbers:
        problems.add(item, f"a number stands there twice; for example {LISTS}")
    return tuple(sorted({number for number in numbers if number is not None}))


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
