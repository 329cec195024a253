"""Writes plain data as TOML: tables of the first two levels and lists of tables with a heading, everything below them
inline.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .toml_positions import Item

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
LONG_LINE = 120
LONG_TABLE = 8192
"""A longer table is not written inline: a spec's line has 32768 bytes at most."""


def plain(item: Item) -> Any:
    """The value without positions."""
    if isinstance(item.value, dict):
        return {key: plain(child) for key, child in item.value.items()}
    return [plain(child) for child in item.value] if isinstance(item.value, list) else item.value


def toml_text(document: Mapping[str, Any]) -> str:
    """A document as TOML."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    lists = {key: value for key, value in document.items() if _is_tables(value)}
    tables = {key: value for key, value in document.items() if isinstance(value, dict)}
    yield from _pairs({key: value for key, value in document.items() if key not in tables and key not in lists})
    for section, table in tables.items():
        nested = {key: value for key, value in table.items() if isinstance(value, dict)}
        direct = {key: value for key, value in table.items() if key not in nested}
        if direct or not nested:
            yield f"\n[{_key(section)}]"
            yield from _pairs(direct)
        for name, child in nested.items():
            yield from _table(f"{_key(section)}.{_key(name)}", child)
    for section, children in lists.items():
        for child in children:
            yield f"\n[[{_key(section)}]]"
            yield from _pairs(child)


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    """A table below the first level; those in it that make a line too long to be read have a heading, too."""
    long = {
        key: value
        for key, value in table.items()
        if isinstance(value, Mapping) and len(toml_value(value).encode()) > LONG_TABLE
    }
    yield f"\n[{name}]"
    yield from _pairs({key: value for key, value in table.items() if key not in long})
    for key, value in long.items():
        yield from _table(f"{name}.{_key(key)}", value)


def _is_tables(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(child, dict) for child in value)


def _pairs(table: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a table; a list that makes a long line has a line for each of its values."""
    for key, value in table.items():
        line = f"{_key(key)} = {toml_value(value)}"
        if isinstance(value, list) and len(line) > LONG_LINE:
            line = f"{_key(key)} = [\n" + "".join(f"    {toml_value(child)},\n" for child in value) + "]"
        yield line


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def toml_value(value: Any) -> str:
    """A value as TOML writes it on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {toml_value(child)}" for key, child in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)
