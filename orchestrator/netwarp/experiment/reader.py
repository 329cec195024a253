"""Reads the values of one table whose placeholders are filled in. Mistakes are collected, not raised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.units import Quantity
from .fields import Field, check, read_integer, read_names, read_quantity, read_text
from .problems import Problems
from .toml_positions import Item


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader of `item`, a table whose placeholders are filled in; `context` names the cell in messages."""

    item: Item
    fields: Mapping[str, Field]
    problems: Problems
    context: str = ""

    def problem(self, key: str, text: str) -> None:
        """Report a mistake in a key (in the whole table, if the key is missing)."""
        item = self.item.get(key) or self.item
        self.problems.add(item.used or item, text, context=self.context)

    def wrong(self, key: str, text: str) -> None:
        """Report a mistake in a key's value, at the position of the parameter or level if the value was filled in from
        one.
        """
        self.problems.add(self.item.get(key) or self.item, text, context=self.context)

    def has(self, key: str) -> bool:
        """True if the key is there."""
        return self.item.get(key) is not None

    def need(self, key: str) -> bool:
        """True if the key is there; reports it if it is not."""
        if not self.has(key):
            self.problem(key, f"{key} is missing; for example {key} = {self.fields[key].example}")
        return self.has(key)

    def quantity(self, key: str) -> Quantity | None:
        """A quantity with its kind."""
        item = self.item.get(key)
        return None if item is None else read_quantity(item, self.fields[key], self.problems)

    def whole(self, key: str) -> int | None:
        """A time, amount or rate in its base unit."""
        quantity = self.quantity(key)
        return None if quantity is None else int(quantity.value)

    def ratio(self, key: str) -> float | None:
        """A ratio 0..1."""
        quantity = self.quantity(key)
        return None if quantity is None else float(quantity.value)

    def text(self, key: str) -> str | None:
        """A text, name or choice."""
        item = self.item.get(key)
        return None if item is None else read_text(item, self.fields[key], self.problems)

    def switch(self, key: str) -> bool | None:
        """True or false."""
        item = self.item.get(key)
        if item is None:
            return None
        check(item, self.fields[key], self.problems)
        return item.value is True

    def integer(self, key: str) -> int | None:
        """A count."""
        item = self.item.get(key)
        return None if item is None else read_integer(item, self.fields[key], self.problems)

    def names(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        item = self.item.get(key)
        return () if item is None else read_names(item, self.fields[key], self.problems)

    def below(self, item: Item, fields: Mapping[str, Field] | None = None) -> Reader:
        """A reader of a table inside this one."""
        return Reader(item, fields or self.fields, self.problems, self.context)
