"""Equal flows: `count = 50` makes [flow.x] the flows x1 to x50, the group x; and patterns of names, `a*`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from ..core.names import NAME
from .fields import Reader, is_open
from .grammar import FLOW, MOST_FLOWS, PATH, STARTS, STOPS
from .problems import Problems, nearest
from .toml_positions import Item

ANY = "*"
"""Stands for any letters in a pattern of names."""
COUNTED = ("count", "arrivals")
"""Keys that make a flow a group."""
NOT_ARRIVING = {
    "count": "says how many flows there are, which the arrivals do",
    "bytes": "is the size of one flow, which the arrivals have",
    "phase": "draws one start, and the arrivals draw each",
    "page": "is fetched by a program that asks for it",
    "program": "decides its own sizes",
    "switch_primary": "is of one flow",
    "heartbeats": "is of one flow",
}
"""Keys that a flow with arrivals cannot have, and why."""
FIRST_ARRIVING_PORT = 20_001


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern means, in their order: the name itself, or, with `*`, all that fit."""
    if ANY not in pattern:
        return [name for name in names if name == pattern]
    fits = re.compile(".*".join(map(re.escape, pattern.split(ANY))))
    return [name for name in names if fits.fullmatch(name)]


def name_of(group: str, number: int) -> str:
    """The name of a flow of a group; number: from 1."""
    return f"{group}{number}"


def names_in(layers: Sequence[Item]) -> dict[str, None]:
    """The flows that the tables of a document and of levels may make: their names, those of groups, and the groups'."""
    names: dict[str, None] = {}
    most: dict[str, int] = {}
    for layer in layers:
        for name, item in layer.under("flow").items():
            names[name] = None
            names |= {class_name(name, of_sizes): None for of_sizes in item.under("classes")}
            if isinstance(item.value, dict) and any(key in item.value for key in COUNTED):
                most[name] = max(most.get(name, 0), item.integer("count") or MOST_FLOWS)
            elif isinstance(item.value, dict) and (like := item.text("like")):
                most[name] = MOST_FLOWS if is_open(like) else most.get(like, 0)
    for layer in layers:
        for name in layer.texts("measure", "links") if layer.get("measure", "links") is not None else ():
            names |= dict.fromkeys([name] if "." in name else [f"{name}.forward", f"{name}.backward"])
    for layer in layers:  # a default makes groups of all
        default = layer.get("default", "flow")
        if default is not None and any(key in default.table() for key in COUNTED):
            most |= {name: MOST_FLOWS for name in names if not most.get(name)}
    return names | {name_of(name, number): None for name, many in most.items() for number in range(1, many + 1)}


def class_name(group: str, of_sizes: str) -> str:
    """The name of a class of sizes of a group, as outputs say it."""
    return f"{group}.{of_sizes}"


class FlowsOfACell(msgspec.Struct, frozen=True):
    """The tables of a cell's flows by name. groups: flow -> the group it belongs to."""

    items: dict[str, Item]
    groups: dict[str, str]


def expand_groups(
    flows: Mapping[str, Item], nodes: Mapping[str, Item], links: Mapping[str, Item], problems: Problems
) -> FlowsOfACell:
    """The flows of a cell, a table for each of a group's; mistakes are collected."""
    items: dict[str, Item] = {}
    groups: dict[str, str] = {}
    total = arriving = 0
    for name, item in flows.items():
        reader = Reader(item, FLOW, problems)
        if not any(key in item.table() for key in COUNTED):
            _check_single(reader)
            made = {name: item}
        elif item.get("arrivals") is not None:
            made = dict(_patterns(name, arriving, reader, nodes, links))
            arriving += 1
            groups |= dict.fromkeys(made, name)
        else:
            count = reader.integer("count") or 0
            total += count
            if total > MOST_FLOWS:
                reader.problem("count", f"{total} flows in this cell; at most {MOST_FLOWS}")
                return FlowsOfACell(items, groups)
            if not NAME.fullmatch(name_of(name, count)):
                reader.problem("count", f'"{name_of(name, count)}" would be no name (at most 32 letters)')
            made = dict(_expanded(name, count, reader, nodes, links))
            groups |= dict.fromkeys(made, name)
        for twice in made.keys() & items.keys():
            problems.add(item, f'makes a flow "{twice}", which is there already; call one of them otherwise')
        items |= made
    return FlowsOfACell(items, groups)


def _check_single(reader: Reader) -> None:
    """Reports what only a flow with `count` may say."""
    _check_times(reader)
    for key in ("from", "to"):
        if ANY in reader.item.text(key):
            reader.problem(key, f'"{reader.item.text(key)}" names several hosts, which goes with count = 50')


def _check_times(reader: Reader) -> None:
    for key in ("start", "stop"):
        item = reader.item.get(key)
        if item is not None and isinstance(item.value, dict):
            example = FLOW[key].example
            reader.problem(key, f"is a table, which goes with count = 50; of one flow {key} = {example}")


def _patterns(
    name: str, place: int, reader: Reader, nodes: Mapping[str, Item], links: Mapping[str, Item]
) -> Iterator[tuple[str, Item]]:
    """A flow for each pair of hosts, in turn, of a group whose flows arrive at random. place: of the group, from 0."""
    for key, why in NOT_ARRIVING.items():
        if reader.has(key):
            reader.problem(key, f"{why}; leave it out of a flow with arrivals")
    hosts = [node for node, table in nodes.items() if table.text("kind", "host") == "host"]
    pairs = math.lcm(*(max(1, len(matching(reader.item.text(key), hosts))) for key in ("from", "to")))
    item = reader.item
    keys = {**item.table(), "bytes": item.with_value("1 B")}
    keys.setdefault("port", item.with_value(FIRST_ARRIVING_PORT + MOST_FLOWS * place))
    many = Reader(item.with_value(keys), FLOW, reader.problems)
    yield from _expanded(name, min(pairs, MOST_FLOWS), many, nodes, links)


def _expanded(
    name: str, count: int, reader: Reader, nodes: Mapping[str, Item], links: Mapping[str, Item]
) -> Iterator[tuple[str, Item]]:
    item, before = reader.item, len(reader.problems)
    hosts = [node for node, table in nodes.items() if table.text("kind", "host") == "host"]
    ends = {key: _hosts(key, reader, hosts) for key in ("from", "to")}
    if reader.has("arrivals"):
        _check_times(reader)
    times = {"start": _times("start", count, reader), "stop": _times("stop", count, reader)}
    port = reader.integer("port")
    if len(reader.problems) > before:
        return
    for number in range(count):
        keys = {key: child for key, child in item.table().items() if key != "count"}
        for key, found in ends.items():
            if found:
                keys[key] = item.table()[key].with_value(found[number % len(found)])
        for key, at_ns in times.items():
            if at_ns:
                keys[key] = item.table()[key].with_value(f"{at_ns[number]} ns")
        if port is not None:
            keys["port"] = item.table()["port"].with_value(port + number)
        if (paths := keys.get("paths")) is not None:
            keys["paths"] = _paths(paths, keys, links, reader.problems)
        yield name_of(name, number + 1), item.with_value(keys)


def _hosts(key: str, reader: Reader, hosts: Sequence[str]) -> list[str]:
    """The hosts that a pattern names; none where it is a name."""
    text = reader.item.text(key)
    if ANY not in text:
        return []
    found = matching(text, hosts)
    if not found:
        reader.wrong(key, f'there is no host "{text}"{nearest(text.replace(ANY, ""), hosts)}')
    return found


def _times(key: str, count: int, reader: Reader) -> list[int]:
    """The start or stop of each flow in ns from T0; none where all have one."""
    item = reader.item.get(key)
    if item is None or not isinstance(item.value, dict):
        return []
    of = reader.below(item, STARTS if key == "start" else STOPS)
    every, first, last = (of.whole(each) if each in of.fields else None for each in ("every", "first", "last"))
    example = '{ first = "0 s", every = "100 ms" }' if key == "start" else '{ last = "50 s", every = "10 s" }'
    if every is None:
        of.problem("every", f"its every is missing; for example {key} = {example}")
    if key == "stop" and (first is None) == (last is None):
        of.problem("first", f"has either first or last, of which the others follow; for example stop = {example}")
    if last is not None:
        return [last + (every or 0) * (count - 1 - number) for number in range(count)]
    return [(first or 0) + (every or 0) * number for number in range(count)]


def _paths(paths: Item, flow: Mapping[str, Item], links: Mapping[str, Item], problems: Problems) -> Item:
    """The paths of one flow: of each pattern the link that touches the flow's host."""

    def link(part: Item, key: str) -> Item:
        text = str(part.value)
        if not isinstance(part.value, str) or ANY not in text:
            return part
        end = "from" if key == "sender" else "to"
        host = str(flow[end].value) if end in flow else ""
        there = [name for name, table in links.items() if host in table.texts("between")]
        found = matching(text, there)
        if len(found) == 1:
            return part.with_value(found[0])
        which = f"fits {', '.join(found)}; write which" if found else f"fits none of its links: {', '.join(there)}"
        problems.add(part, f'"{text}" {which} (at host "{host}")')
        return part

    def ends(path: Item) -> Item:
        if not isinstance(path.value, dict):
            return link(path, "sender")
        return path.with_value({key: link(part, key) if key in PATH else part for key, part in path.value.items()})

    return paths.with_value([ends(path) for path in paths.items()]) if paths.items() else paths
