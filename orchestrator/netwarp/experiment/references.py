"""Names of nodes and links that a spec with other mistakes refers to and does not have.

The plan checks references too, but only a spec without other mistakes gets there. Here they are shown beside those. A
spec whose shape cannot be read yet, and a text with a placeholder, are left to the plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .factors import FactorSpec
from .fields import NAME, is_open
from .problems import Problems, nearest
from .shapes import expand_shape
from .toml_positions import Item

_ENDS = re.compile("[<>]")


def check_references(document: Item, factors: Mapping[str, FactorSpec], problems: Problems) -> None:
    """Report them."""
    levels = [level.patch for factor in factors.values() for level in factor.levels if level.patch is not None]
    layers = [document, *levels]
    for layer in tuple(layers):
        if (shape := layer.get("shape")) is not None:
            expanded = expand_shape(shape, Problems()) if isinstance(shape.value, dict) else None
            if expanded is None:
                return
            layers.append(expanded)
    known = {kind: {name for layer in layers for name in _table(layer, kind)} for kind in ("node", "link")}
    whole = {
        kind: all(
            NAME.fullmatch(name) and isinstance(item.value, dict)
            for layer in layers
            for name, item in _table(layer, kind).items()
        )
        for kind in known
    }
    for kind, item in _references(layers):
        text = str(item.value)
        if not whole[kind]:
            continue  # a name that is none, or missing, is said already: what refers to it is no other mistake
        for name in _ENDS.split(text) if kind == "link" else [text]:
            if isinstance(item.value, str) and not is_open(text) and name not in known[kind]:
                problems.add(item, f'there is no {kind} "{name}"{nearest(name, known[kind])}')


def _references(layers: list[Item]) -> Iterator[tuple[str, Item]]:
    """(node or link, the value that names it)."""
    for layer in layers:
        for link in _table(layer, "link").values():
            yield from (("node", end) for end in _parts(link, "between"))
        for flow in _table(layer, "flow").values():
            yield from (("node", part) for key in ("from", "to") for part in _parts(flow, key))
            yield from (("link", path) for path in _parts(flow, "paths"))
        for event in _table(layer, "event").values():
            yield from (("link", part) for part in _parts(event, "link"))


def _table(layer: Item, key: str) -> dict[str, Item]:
    item = layer.get(key)
    return item.table() if item is not None and isinstance(item.value, dict) else {}


def _parts(table: Item, key: str) -> list[Item]:
    item = table.get(key) if isinstance(table.value, dict) else None
    return [] if item is None else item.items() if isinstance(item.value, list) else [item]
