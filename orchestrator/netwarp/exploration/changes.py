"""Changes to a spec of one cell: what a schedule of an exploration is made of. Each is written into the spec's document
as a user would write it, so that the grammar and the plan check it, and a finding is a spec.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

from ..core.frozen import Frozen
from ..core.link_types import DirectionName

PacketAction = Literal["drop", "duplicate", "delay"]
_WORDS: Mapping[PacketAction, str] = {"drop": "lost", "duplicate": "twice", "delay": "late"}
Document = dict[str, Any]


class PacketChange(Frozen, frozen=True, tag="packet"):
    """A packet is lost, comes twice, or is late. number: of the direction, from 1; name: of the packet, for readers."""

    action: PacketAction
    link: str
    side: DirectionName
    number: int
    name: str
    delay_ns: int = 0

    @property
    def place(self) -> object:
        """What another change of the same place would say anew."""
        return self.link, self.side, self.number

    @property
    def text(self) -> str:
        """In words."""
        late = f" {self.delay_ns / 1e6:g} ms" if self.action == "delay" else ""
        return f"{self.name}{late} {_WORDS[self.action]}"

    def apply(self, document: Document) -> None:
        """Write it into a document."""
        side = _table(document, ("link", self.link, self.side))
        if self.action == "delay":
            side["delay"] = {**side.get("delay", {}), str(self.number): f"{self.delay_ns} ns"}
        else:
            side[self.action] = sorted({*side.get(self.action, []), self.number})


class FaultChange(Frozen, frozen=True, tag="fault"):
    """An event: its name, and its table as a spec has it (texts)."""

    name: str
    table: dict[str, str]

    @property
    def place(self) -> object:
        """See PacketChange."""
        return self.name

    @property
    def text(self) -> str:
        """In words."""
        words = [self.table["action"], *(f"{key} {text}" for key, text in self.table.items() if key != "action")]
        return " ".join(words)

    def apply(self, document: Document) -> None:
        """Write it into a document."""
        _table(document, ("event",))[self.name] = dict(self.table)


class SettingChange(Frozen, frozen=True, tag="setting"):
    """A key of the spec has another value. path: its steps; value: as TOML has it."""

    path: tuple[str, ...]
    value: str | int | bool

    @property
    def place(self) -> object:
        """See PacketChange."""
        return self.path

    @property
    def text(self) -> str:
        """In words."""
        return f"{'.'.join(self.path[1:])} = {str(self.value).lower() if isinstance(self.value, bool) else self.value}"

    def apply(self, document: Document) -> None:
        """Write it into a document."""
        _table(document, self.path[:-1])[self.path[-1]] = self.value


Change = PacketChange | FaultChange | SettingChange


def _table(document: Document, path: Sequence[str]) -> Document:
    for step in path:
        document = document.setdefault(step, {})
    return document


def changed(document: Document, changes: Sequence[Change]) -> Document:
    """A copy of the document with all changes."""
    new = copy.deepcopy(document)
    for change in changes:
        change.apply(new)
    return new


def joined(before: Sequence[Change], more: Sequence[Change]) -> tuple[Change, ...]:
    """Both; of two changes of one place the later one."""
    return tuple({change.place: change for change in (*before, *more)}.values())


def named(changes: Sequence[Change]) -> str:
    """All in words; "none" of none."""
    return " + ".join(change.text for change in changes) or "none"


def as_json(changes: Sequence[Change]) -> list[Any]:
    """As plain data, for a file."""
    plain: list[Any] = msgspec.to_builtins(list(changes))
    return plain


def from_json(plain: Sequence[Any]) -> tuple[Change, ...]:
    """What as_json() made plain. Raises msgspec.ValidationError."""
    return msgspec.convert(list(plain), tuple[Change, ...])
