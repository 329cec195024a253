"""Expands items with `each`, one item a turn, before anything else reads them. Grammar: docs/spec.md, Loops."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterator, Mapping

from .fields import PLACEHOLDER, Field
from .grammar import EXPERIMENT, FIGURE, METRIC, TABLE
from .problems import Problems, nearest
from .toml_positions import Item

EACH, LOOP, DEFAULT = "each", "loop", "default"
SECTIONS = {"experiment": EXPERIMENT, "metric": METRIC, "table": TABLE, "figure": FIGURE}
OF_TIME = frozenset({"around", "series"})
"""Keys of tables of events and figures over time."""
MOST_TURNS = 1000
EXAMPLE = '{ outage = ["5 s", "10 s"] }, or [{ id = "C1", expected = 1 }, { id = "C2", expected = 2 }]'
Values = Mapping[str, Item]
"""The value of each `{name}` in a turn."""


def expand_outputs(document: Item, problems: Problems) -> Item:
    """A spec with its loops expanded and [default.experiment], [default.table] and [default.figure] laid below.

    Tables of events and figures over time take no default: they have other keys.
    """
    loops, default = Loops(document, problems), document.get(DEFAULT)
    expanded = {key: child for key, child in document.table().items() if key not in (LOOP, DEFAULT)}
    for name, fields in SECTIONS.items():
        if isinstance((section := expanded.get(name)), Item) and isinstance(section.value, dict):
            expanded[name] = loops.section(section, fields)
            if default is not None and (below := default.get(name)) is not None:
                expanded[name] = section.with_value(
                    {
                        key: turn if OF_TIME & turn.table().keys() else laid(_not_varied(below, turn), turn)
                        for key, turn in expanded[name].table().items()
                    }
                )
    if default is not None:
        expanded[DEFAULT] = default.with_value({k: v for k, v in default.table().items() if k not in SECTIONS})
    loops.check()
    return document.with_value(expanded)


def _not_varied(below: Item, turn: Item) -> Item:
    """[default.experiment] without the `fixed` levels of what this experiment varies."""
    fixed, varied = below.get("fixed"), turn.texts("factors")
    if fixed is None:
        return below
    levels = {factor: level for factor, level in fixed.table().items() if factor not in varied}
    return below.with_value({**below.table(), "fixed": fixed.with_value(levels)})


def expand_claims(document: Item, fields: Mapping[str, Field], untested: Collection[str], problems: Problems) -> Item:
    """A file of claims with its loops expanded and [default.claim] laid below those that compare cells.

    untested: the kinds that do not.
    """
    loops, below, claims = Loops(document, problems), document.get(DEFAULT, "claim"), document.get("claim")
    known = [LOOP] if below is None else [LOOP, DEFAULT]
    expanded = {key: child for key, child in document.table().items() if key not in known}
    if claims is not None:
        turns = [turn for item in claims.items() for _, turn in loops.turns(item, item.get("id"), fields)]
        expanded["claim"] = claims.with_value(
            [laid(below, turn) if below is not None and turn.text("kind") not in untested else turn for turn in turns]
        )
    loops.check()
    return document.with_value(expanded)


class Loops:
    """The loops of one file: those with a name, [loop], and those in the items themselves."""

    def __init__(self, document: Item, problems: Problems) -> None:
        self._problems = problems
        self._elements: list[tuple[str, Item]] = []
        self._used: set[str] = set()
        """Keys, from the top of the file, of what a turn laid over an item or filled into one of its texts."""
        loop = document.get(LOOP)
        if loop is not None and not isinstance(loop.value, dict):
            problems.add(loop, 'must be a table of lists; for example networks = [{ network = "wired" }]')
        self._named = {name: self._list(name, item) for name, item in document.under(LOOP).items()}

    def section(self, section: Item, fields: Mapping[str, Field]) -> Item:
        """A section of named tables, those with `each` once a turn."""
        expanded: dict[str, Item] = {}
        for template, item in section.table().items():
            for name, turn in self.turns(item, dataclasses.replace(item, value=template), fields):
                if name in expanded:
                    self._problems.add(turn, f'two are called "{name}"; its name needs a {{name}} of `each`')
                expanded[name] = turn
        return section.with_value(expanded)

    def check(self) -> None:
        """Reports what loops have and no item uses."""
        for name, element in self._elements:
            for key, child in element.table().items() or [(name, element)]:
                if child.key not in self._used:
                    self._problems.add(child, f'no item has this key, and no text has "{{{key}}}"')

    def turns(self, item: Item, name: Item | None, fields: Mapping[str, Field]) -> Iterator[tuple[str, Item]]:
        """The name and the item of each turn; of an item without `each` itself. name: its name, with placeholders."""
        each = item.get(EACH)
        if each is None:
            yield str(name.value) if name is not None else "", item
            return
        loops = self._loops(each)
        count = math.prod(len(elements) for _, elements in loops)
        if count > MOST_TURNS:
            self._problems.add(each, f"has {count} turns; at most {MOST_TURNS}")
            return
        plain = item.with_value({key: child for key, child in item.table().items() if key != EACH})
        for number, chosen in enumerate(itertools.product(*(elements for _, elements in loops)), 1):
            turn, values = plain, {}
            for (loop, _), element in zip(loops, chosen, strict=True):
                for key, child in [(loop, element)] if not isinstance(element.value, dict) else element.table().items():
                    if key in fields and isinstance(element.value, dict):
                        turn = laid(turn, turn.with_value({key: child}))
                        self._used.add(child.key)
                    else:
                        values[key] = child
            named = turn.get("id") or name
            title = str(self._filled(named, values, "").value) if named is not None else ""
            yield title, self._filled(turn, values, f"{title}, turn {number} of {count}")

    def _loops(self, each: Item) -> list[tuple[str, list[Item]]]:
        """Name and elements of each loop of an item; several make all combinations, the first varies slowest."""
        if isinstance(each.value, dict):
            return [(name, self._list(name, child)) for name, child in each.table().items()]
        return [(EACH, self._list(EACH, each))]

    def _list(self, name: str, item: Item) -> list[Item]:
        """The elements of a loop: those written there, or those of the [loop] that is named."""
        if isinstance(item.value, str):
            if item.value not in self._named:
                self._problems.add(item, f'there is no loop "{item.value[:40]}"{nearest(item.value, self._named)}')
            return self._named.get(item.value, [])
        if not item.items():
            self._problems.add(item, f"must be a list of texts or tables; for example each = {EXAMPLE}")
        tables = [element for element in item.items() if isinstance(element.value, dict)]
        self._elements += [(name, element) for element in tables or item.items()[:1]]
        return item.items()

    def _filled(self, item: Item, values: Values, turn: str) -> Item:
        """The item with `{name}` filled in everywhere; a text that is nothing else becomes the value itself."""
        value = item.value
        if isinstance(value, dict):
            value = {key: self._filled(child, values, turn) for key, child in value.items()}
        elif isinstance(value, list):
            value = [self._filled(child, values, turn) for child in value]
        elif isinstance(value, str):
            for name in PLACEHOLDER.findall(value):
                if name not in values:
                    there = dataclasses.replace(item, turn=turn)
                    self._problems.add(there, f'its `each` has no "{name[:40]}"{nearest(name, values)}')
                    continue
                self._used.add(values[name].key)
                if item.value == f"{{{name}}}":
                    return dataclasses.replace(values[name], turn=turn)
                value = value.replace(f"{{{name}}}", str(values[name].value))
        return dataclasses.replace(item, value=value, turn=turn)


def laid(below: Item, above: Item) -> Item:
    """One table laid over another, key by key; of all other values that above."""
    if not isinstance(below.value, dict) or not isinstance(above.value, dict):
        return above
    both = {key: laid(below.value[key], child) if key in below.value else child for key, child in above.value.items()}
    return above.with_value({**below.value, **both})
