"""Writes plain data as TOML: tables of the second level with a heading, everything below them inline."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from .toml_positions import Item

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def plain(item: Item) -> Any:
    """The value without positions."""
    if isinstance(item.value, dict):
        return {key: plain(child) for key, child in item.value.items()}
    return [plain(child) for child in item.value] if isinstance(item.value, list) else item.value


def toml_text(document: Mapping[str, Any]) -> str:
    """A document as TOML."""
    return "\n".join(_lines(document)) + "\n"


def _lines(document: Mapping[str, Any]) -> Iterator[str]:
    tables = {key: value for key, value in document.items() if isinstance(value, dict)}
    for key, value in document.items():
        if key not in tables:
            yield f"{_key(key)} = {_value(value)}"
    for section, table in tables.items():
        nested = {key: value for key, value in table.items() if isinstance(value, dict)}
        direct = {key: value for key, value in table.items() if key not in nested}
        if direct or not nested:
            yield f"\n[{_key(section)}]"
            yield from (f"{_key(key)} = {_value(value)}" for key, value in direct.items())
        for name, child in nested.items():
            yield f"\n[{_key(section)}.{_key(name)}]"
            yield from (f"{_key(key)} = {_value(value)}" for key, value in child.items())


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _text(key)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(key)} = {_value(child)}" for key, child in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
