"""The named tables of a spec: those that a named shape adds, dotted keys to them (`--set`, `sets` of a factor), and the
names by which they refer to each other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core.names import NAME
from .fields import is_open, read_integer, read_text
from .flow_groups import matching
from .grammar import SECTIONS, SHAPE, TOP
from .merge import merge
from .problems import Problems, nearest
from .toml_positions import Item, plain

KERNEL = "kernel"
"""A key of the spec, and the name of the factor whose levels are kernels."""
NAMED = (*SECTIONS, "factor", "experiment", "metric", "table", "figure", "answer")
"""Sections of named tables. --set changes one that is there: a new name there would be a typo."""


def expand_shape(item: Item, problems: Problems) -> Item | None:
    """The `node` and `link` tables of a shape; the spec's own tables are laid over them.

    two-path: hosts a and b, links p1 and p2 between them. dumbbell: `pairs` hosts aN - aN link - router r1 - bottleneck
    - router r2 - bN link - host bN. chain: host a, routers r1.., host b, and `hops` links h1.. in a row.
    """
    kind_item = item.get("kind")
    if kind_item is None:
        problems.add(item, 'the shape\'s kind is missing; for example { kind = "two-path" }')
        return None
    kind = read_text(kind_item, SHAPE["kind"], problems)
    counts = {"hops": 2, "pairs": 2}
    for key, of in (("hops", "chain"), ("pairs", "dumbbell")):
        child = item.get(key)
        if child is not None:
            counts[key] = read_integer(child, SHAPE[key], problems) or 2
            if kind != of:
                problems.add(child, f'a {kind} has no {key}; for example {{ kind = "chain", hops = 3 }}')
    if kind is None:
        return None
    routers: Sequence[str] = ()
    if kind == "two-path":
        links = {"p1": ("a", "b"), "p2": ("a", "b")}
    elif kind == "chain":
        routers = [f"r{number}" for number in range(1, counts["hops"])]
        row = ["a", *routers, "b"]
        links = {f"h{number}": (row[number - 1], row[number]) for number in range(1, counts["hops"] + 1)}
    else:
        routers, links = ["r1", "r2"], {"bottleneck": ("r1", "r2")}
        for number in range(1, counts["pairs"] + 1):
            links |= {f"a{number}": (f"a{number}", "r1"), f"b{number}": ("r2", f"b{number}")}
    names = dict.fromkeys(end for ends in links.values() for end in ends)
    nodes: dict[str, Any] = {name: {"kind": "router" if name in routers else "host"} for name in names}
    tables: dict[str, Any] = {name: {"between": list(ends)} for name, ends in links.items()}
    return plain({"node": nodes, "link": tables}, item.file, item.line, "")


def read_overrides(document: Item, sets: Mapping[str, str], problems: Problems) -> Item:
    """The values of --set, as a layer over the document."""
    layer = plain({}, "--set", 0, "")
    for key, text in sets.items():
        path, problem = find_key(key, document)
        if problem:
            problems.add_at("--set", 0, key, problem)
        else:
            layer = merge(layer, layer_of(path, text, document, plain(text, "--set", 0, key)))
    return layer


def layer_of(path: Sequence[str], text: str, document: Item, place: Item) -> Item:
    """A layer over the document that gives one key another value; `place`: the position where that value is written."""
    there = document.get(*path)
    is_text = path == [KERNEL] or (there is not None and isinstance(there.value, str))  # 6.10 is not 6.1
    value: Any = text if is_text else _toml_value(text)
    item = plain(value, place.file, place.line, place.key)
    for name in reversed(path):
        item = Item({name: item}, place.file, place.line, place.key)
    return item


def find_key(key: str, document: Item) -> tuple[list[str], str]:
    """The path of keys that a dotted key means, and the problem with it ("": none)."""
    path = _split(key)
    parameters = list(document.under("parameter"))
    first = path[0] if path else key
    if len(path) == 1 and first in parameters:
        return ["parameter", first], ""
    said = ""
    if not path or first not in TOP:
        said = _unknown(first, key, document, parameters)
    elif first == "parameter" and path[-1] not in parameters:
        said = f'unknown parameter "{path[-1]}"{nearest(path[-1], parameters)}'
    elif first in NAMED and len(path) > 1 and path[1] not in (known := _known(document, first)):
        said = f'there is no {first} "{path[1]}"{nearest(path[1], known)}'
    return path, said


def _unknown(name: str, key: str, document: Item, parameters: list[str]) -> str:
    if name in document.under("factor"):
        return (
            f'"{name}" is a factor; choose its levels with --where {name}=LEVEL, or give others: factor.{name}.levels'
        )
    section = next((named for named in NAMED if name in _known(document, named)), None)
    if section is not None:
        return f'unknown key "{name}"; write {section}.{key}'
    return f"unknown key{nearest(name, [*parameters, *TOP])}"


def _known(document: Item, section: str) -> list[str]:
    """The names of a section's tables: the document's, its shape's, and those that a level of a factor adds."""
    factors = document.under("factor").values()
    levels = [level for factor in factors for level in factor.under("level").values()]
    shared = [every for factor in factors if (every := factor.get("every")) is not None]
    return [name for layer in _with_shapes([document, *shared, *levels]) for name in layer.under(section)]


def _with_shapes(layers: Iterable[Item]) -> Iterator[Item]:
    for layer in layers:
        yield layer
        yield from _shapes(layer)


def _shapes(layer: Item) -> list[Item]:
    """The tables that its shape adds; where a level chooses its kind, those of each kind."""
    shape, kind = layer.get("shape"), layer.get("shape", "kind")
    if shape is None or kind is None:
        return []
    kinds = SHAPE["kind"].choices if is_open(str(kind.value)) else (kind.value,)
    shapes = [shape.with_value({**shape.table(), "kind": kind.with_value(name)}) for name in kinds]
    return [added for one in shapes if (added := expand_shape(one, Problems())) is not None]


def _split(key: str) -> list[str]:
    """The parts of a dotted TOML key (`factor.outage."10 s".title`)."""
    try:
        inner: Any = tomllib.loads(f"{key} = 0")
    except (ValueError, RecursionError):
        return []
    path: list[str] = []
    while isinstance(inner, dict) and len(inner) == 1:
        name, inner = next(iter(inner.items()))
        path.append(name)
    return path


def _toml_value(text: str) -> Any:
    """A number, true, false, list or table if the text is one in TOML, else the text."""
    try:
        value = tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
    return value if isinstance(value, (bool, int, float, list, dict, str)) else text


def check_references(layers: Sequence[Item], problems: Problems) -> None:
    """Reports names of nodes and links that a spec with other mistakes refers to and does not have. layers: the
    document, and what the levels of factors lay over it.

    The plan checks references too, but only a spec without other mistakes gets there. A spec whose shape cannot be read
    yet, and a text with a placeholder, are left to it.
    """
    if any(layer.get("shape") is not None and not _shapes(layer) for layer in layers):
        return
    for kind in ("node", "link"):
        tables = [each for layer in _with_shapes(layers) for each in layer.under(kind).items()]
        if not all(NAME.fullmatch(name) and isinstance(item.value, dict) for name, item in tables):
            continue  # a name that is none, or missing, is said already: what refers to it is no other mistake
        known = dict.fromkeys(name for name, _ in tables)
        for item in _references(_with_shapes(layers), kind):
            name = str(item.value)
            if isinstance(item.value, str) and not is_open(name) and not matching(name, known):
                problems.add(item, f'there is no {kind} "{name}"{nearest(name, known)}')


_REFERRING = {
    "node": (("link", "between"), ("flow", "from"), ("flow", "to")),
    "link": (("flow", "paths"), ("event", "link")),
}


def _references(layers: Iterable[Item], kind: str) -> Iterator[Item]:
    """The values that name a node, or a link."""
    for layer in layers:
        for section, key in _REFERRING[kind]:
            for table in layer.under(section).values():
                item = table.get(key)
                for part in [] if item is None else item.items() if isinstance(item.value, list) else [item]:
                    yield from part.table().values() or [part]
