"""Which keys of the grammar a study uses: the grammar's own tables say which there are (experiment/grammar.py)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from netwarp.experiment import read_claims
from netwarp.experiment.fields import Field
from netwarp.experiment.grammar import FACTOR_KEYS, LEVEL, TOP
from support import study_keys

SECTIONS: dict[str, Mapping[str, Field]] = {
    "source": read_claims.SOURCE, "word": read_claims.WORD, "column": read_claims.COLUMN,
    "amendment": read_claims.AMENDMENT,
}  # fmt: skip


def every_key() -> list[str]:
    """Each key of each table, such as `Link.mtu`; a table's base has those that it shares with others."""
    return [f"{name}.{key}" for name in study_keys.TABLES for key in study_keys.own(name)]


def keys_of(document: Mapping[str, Any]) -> Counter[str]:
    """How many studies of one (1) use each key."""
    found = set(_table(document, {**TOP, **read_claims.FILE}, "Top"))
    return Counter(key for key in found)


def _table(table: Mapping[str, Any], fields: Mapping[str, Field], name: str) -> Iterator[str]:
    for key, value in table.items():
        yield f"{_owner(name, key)}.{key}"
        field = fields.get(key)
        if name == "Top" and key == "factor":
            for factor in value.values():
                yield from _table(factor, FACTOR_KEYS, "Factor")
                for level in factor.get("level", {}).values():
                    yield from _table(level, LEVEL, "Level")
        elif name == "Top" and key in SECTIONS:
            for each in value.values():
                yield from _table(each, SECTIONS[key], key.capitalize())
        elif name == "Top" and key == "claim":
            for each in value:
                yield from _table(each, read_claims.CLAIM, "Claim")
        elif field is not None and field.fields and key != "level":
            inner = _name_of(field.fields)
            tables = value.values() if field.type == "map" else value if isinstance(value, list) else [value]
            for each in tables:
                if isinstance(each, Mapping):
                    switch = inner == "Node" and each.get("kind") == "switch"
                    yield from _table(each, field.fields, "Switch" if switch else inner)


def _name_of(fields: Mapping[str, Field]) -> str:
    """The name of a table by its keys; some have more where a document is read (`each`, sections)."""
    known = {name: set(each) - {"each", *study_keys.loops.SECTIONS} for name, (each, _) in study_keys.TABLES.items()}
    return next(name for name, keys in known.items() if keys == set(fields) - {"each", *study_keys.loops.SECTIONS})


def _owner(name: str, key: str) -> str:
    """The table, or the base of it, that has the key."""
    while name and key not in study_keys.own(name) and study_keys.TABLES[name][1]:
        name = study_keys.TABLES[name][1]
    return name


NOT_SAID = frozenset(
    {"Amendment.was", "Claim.readings", "Sender.arch", "Word.amended", "Flow.heartbeats", "Heartbeats.file"}
    | {"Heartbeats.until"}
)
"""Keys that no study says: a sender of another processor needs qemu-user, which few machines have; HEARTBEATs of a file
are what-if's; the others are words about a paper's claims.
"""
