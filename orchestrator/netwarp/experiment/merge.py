"""Merges layers of a document: tables key by key, of all other values the later layer's; then `{name}` is filled in."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..core.link_types import SIDES
from .fields import PLACEHOLDER
from .grammar import DIRECTION, EXCLUSIVE
from .problems import Problems, nearest
from .toml_positions import Item

DEEPEST_PARAMETER = 8


def merge(base: Item | None, patch: Item) -> Item:
    """`patch` laid over `base`; neither is changed.

    A key of the patch also replaces keys that mean the same: the other one of `one_way_delay` and `rtt`, and the same
    key in `forward` and `backward` (a later value for both directions overrides an earlier one for one direction).
    """
    if base is None or not isinstance(base.value, dict) or not isinstance(patch.value, dict):
        return patch
    merged = _without(base.value, set(patch.value))
    for key, child in patch.value.items():
        merged[key] = merge(merged.get(key), child)
    return base.with_value(merged)


def _without(table: Mapping[str, Item], said: set[str]) -> dict[str, Item]:
    """The table without the keys that those in `said` replace."""
    replaced = said & (DIRECTION.keys() | {"rtt"})
    for group in EXCLUSIVE:
        if replaced & group:
            replaced = replaced | group
    left = {key: child for key, child in table.items() if key not in replaced or key in said}
    for side in SIDES:
        if side in left and isinstance(left[side].value, dict):
            left[side] = left[side].with_value({k: v for k, v in left[side].table().items() if k not in replaced})
    return left


@dataclass(frozen=True, slots=True)
class Values:
    """The values for `{name}`, each with the position where it was written, so that a wrong level is reported at its
    own line.
    """

    texts: Mapping[str, str]
    places: Mapping[str, Item]
    problems: Problems

    def filled(self, item: Item, name: str) -> Item:
        """The value of `name`, for an item that consists of `"{name}"` only."""
        place = self.places.get(name)
        if place is None:
            return item.with_value(self.texts[name])
        file = "" if item.file == place.file else f" of {item.file}"
        where = f"as {item.key}, line {item.line}{file}" if item.line else f"as {item.file} {item.key}"
        return Item(self.texts[name], place.file, place.line, place.key, where, item)


def with_value(text: str, name: str, value: str) -> str:
    """The text with `{name}` filled in."""
    return PLACEHOLDER.sub(lambda at: value if at[1] == name else at[0], text)


def substitute(item: Item, values: Values) -> Item:
    """Fill in `{name}` in every text below `item`. A name that cannot be filled in is reported and stays as it is.

    A factor that does not apply ("-") has no level to fill in.
    """
    if isinstance(item.value, dict):
        return item.with_value({key: substitute(v, values) for key, v in item.value.items()})
    if isinstance(item.value, list):
        return item.with_value([substitute(v, values) for v in item.value])
    if not isinstance(item.value, str) or "{" not in item.value:
        return item
    text = item.value
    for name in dict.fromkeys(PLACEHOLDER.findall(text)):
        if name not in values.texts:
            said = f'"{{{name}}}" is neither a factor nor a parameter{nearest(name, values.texts)}'
            values.problems.add(item, said)
            continue
        if values.texts[name] == "-":
            values.problems.add(
                item,
                f'"{{{name}}}" has no level here: factor "{name}" does not apply in this cell; add it to the'
                f" experiment's factors or fixed, or put only = {{ ... }} on this item",
            )
            continue
        if text == f"{{{name}}}":
            return values.filled(item, name)
        text = with_value(text, name, values.texts[name])
    if text == item.value:
        return item
    return Item(text, item.file, item.line, item.key, f"written {json.dumps(item.value, ensure_ascii=False)}")


def resolve_parameters(table: Mapping[str, Item], levels: Mapping[str, str], problems: Problems) -> dict[str, str]:
    """Parameters with factors and other parameters filled in (at most 8 levels deep, so that a cycle is an error)."""
    texts = {name: str(child.value) for name, child in table.items()}
    for _ in range(DEEPEST_PARAMETER):
        known = {**texts, **levels}
        open_ones = [name for name, text in texts.items() if PLACEHOLDER.search(text)]
        if not open_ones:
            return texts
        for name in open_ones:
            for other in PLACEHOLDER.findall(texts[name]):
                if other not in known:
                    problems.add(
                        table[name], f'"{{{other}}}" is neither a factor nor a parameter{nearest(other, known)}'
                    )
                    known[other] = ""
                if len(known[other]) + len(texts[name]) > 1000:
                    problems.add(table[name], "grows without end")
                    return texts
                texts[name] = with_value(texts[name], other, known[other])
    circle = next((name for name, text in texts.items() if PLACEHOLDER.search(text)), None)
    if circle is not None:
        problems.add(table[circle], "refers to itself in a circle of parameters")
    return texts


def holds(condition: Mapping[str, tuple[str, ...]], levels: Mapping[str, str]) -> bool:
    """True if every named factor has one of the listed levels."""
    return all(levels.get(factor, "-") in allowed for factor, allowed in condition.items())
