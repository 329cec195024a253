"""The steps of a cell, which cell-init carries out: lines of steps.txt (docs/formats.md), and the commands that do the
same. apps/cell-init/step.c parses them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..core.numbers import plain

HEADER = "netwarp-steps 1"
_PLAIN = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./:,@+-")
"""Bytes of a value written as they are; is_plain() of apps/cell-init/step_value.c reads the same."""


@dataclass(frozen=True, slots=True)
class Step:
    """One verb with its fields. `command`: the equivalent shell command; `at_ns`: from T0."""

    verb: str
    fields: tuple[tuple[str, str], ...] = ()
    command: str = ""
    at_ns: int | None = None

    def line(self) -> str:
        """The line of steps.txt."""
        fields = list(self.fields)
        if self.at_ns is not None:
            fields.insert(0, ("at", str(self.at_ns)))
        return " ".join([self.verb, *(f"{key}={quote(value)}" for key, value in fields)])


def step(
    verb: str, /, *, command: str = "", at_ns: int | None = None, **fields: str | int | Iterable[str] | None
) -> Step:
    """A Step from keyword fields; a list or tuple repeats the key, None is left out."""
    pairs: list[tuple[str, str]] = []
    for key, value in fields.items():
        if isinstance(value, str | int):
            pairs.append((key, str(value)))
        elif value is not None:
            pairs.extend((key, item) for item in value)
    return Step(verb, tuple(pairs), command, at_ns)


def quote(value: str) -> str:
    """Write every byte that is not plain as %XX; apps/cell-init/step_value.c has the same list of plain bytes."""
    return "".join(chr(byte) if byte in _PLAIN else f"%{byte:02X}" for byte in value.encode())


def to_text(steps: Iterable[Step]) -> str:
    """steps.txt. Line 1 is the header, so step n stands on line n + 2 of an enumeration from 0."""
    return "\n".join([HEADER, *(item.line() for item in steps)]) + "\n"


def to_commands(steps: Iterable[Step]) -> str:
    """The cell as the equivalent ip, tc and sysctl commands, timeline included."""
    lines: list[str] = []
    for item in steps:
        if item.command:
            when = "" if item.at_ns is None else f"# at T0 + {plain(item.at_ns / 1e9)} s\n"
            lines.append(when + item.command)
    return "\n".join(lines) + "\n"
