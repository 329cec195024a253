"""Sets a value at a dotted key of the spec: for `--set key=value`, and for the levels of a factor with `sets`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .fields import is_open
from .grammar import SECTIONS, SHAPE, TOP
from .merge import merge
from .problems import Problems, nearest
from .shapes import expand_shape
from .toml_positions import Item, plain

KERNEL = "kernel"
"""A key of the spec, and the name of the factor whose levels are kernels."""
NAMED = (*SECTIONS, "factor", "experiment", "metric", "table", "figure", "answer")
"""Sections of named tables. --set changes one that is there: a new name there would be a typo."""


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
    parameters = _names(document, "parameter")
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
    if name in _names(document, "factor"):
        return (
            f'"{name}" is a factor; choose its levels with --where {name}=LEVEL, or give others: factor.{name}.levels'
        )
    section = next((named for named in NAMED if name in _known(document, named)), None)
    if section is not None:
        return f'unknown key "{name}"; write {section}.{key}'
    return f"unknown key{nearest(name, [*parameters, *TOP])}"


def _known(document: Item, section: str) -> list[str]:
    """The names of a section's tables: the document's, its shape's, and those that a level of a factor adds."""
    return [name for layer in _layers(document) for name in _names(layer, section)]


def _layers(document: Item) -> Iterator[Item]:
    yield document
    factors = document.get("factor")
    levels = [
        level
        for factor in (factors.table() if factors is not None else {}).values()
        for level in _tables(factor.get("level") or factor.with_value({}))
    ]
    yield from levels
    for layer in (document, *levels):
        shape = layer.get("shape")
        for variant in _kinds(shape) if shape is not None else ():
            if (expanded := expand_shape(variant, Problems())) is not None:
                yield expanded


def _kinds(shape: Item) -> list[Item]:
    """The shape; where a level chooses its kind, one of each kind."""
    kind = shape.get("kind")
    if kind is None or not is_open(str(kind.value)):
        return [shape]
    return [shape.with_value({**shape.table(), "kind": kind.with_value(name)}) for name in SHAPE["kind"].choices]


def _tables(item: Item) -> list[Item]:
    return [child for child in item.table().values() if isinstance(child.value, dict)]


def _names(document: Item, section: str) -> list[str]:
    table = document.get(section)
    return list(table.table()) if table is not None else []


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
