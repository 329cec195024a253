"""Collects all problems of a spec, so that they can be corrected in one pass."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..core.errors import SpecError

if TYPE_CHECKING:
    from .toml_positions import Item

MOST_SHOWN = 50


class Problems:
    """Messages `file:line: key: what is wrong and a correct example`, each once, in the order in which they
    were found.
    """

    def __init__(self) -> None:
        self._messages: dict[str, str] = {}
        self._said = 0
        self.context = ""
        """The cell that is planned: named with a problem that it shows first, and no part of the problem's identity."""

    def __len__(self) -> int:
        """Number of reports; the same problem in two cells counts twice."""
        return self._said

    @property
    def distinct(self) -> int:
        """Number of different problems."""
        return len(self._messages)

    def add(self, item: Item, text: str) -> None:
        """A problem at a value."""
        text = f"{text} ({item.note})" if item.note else text
        self.add_at(item.file, item.line, item.key, text, item.turn)

    def add_at(self, file: str, line: int, key: str, text: str, turn: str = "") -> None:
        """A problem at a position; line 0 stands for the command line. turn: of the loop that shows it first."""
        place = f"{file}:{line}" if line else file
        message = harmless(f"{place}: {key}: {text}" if key else f"{place}: {text}")
        self._messages.setdefault(message, self.context or turn)
        self._said += 1

    def check(self) -> None:
        """Raise SpecError with every problem, if there is one."""
        if self._messages:
            lines = [text + (f" ({context})" if context else "") for text, context in self._messages.items()]
            more = [f"... and {len(lines) - MOST_SHOWN} more problems"] if len(lines) > MOST_SHOWN else []
            raise SpecError("\n".join(lines[:MOST_SHOWN] + more))


def harmless(text: str) -> str:
    """One line without terminal control sequences: each unprintable character becomes its escape sequence."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)


def nearest(word: str, known: Iterable[str]) -> str:
    """`, did you mean "x"?`, or a list of what exists."""
    names = list(dict.fromkeys(known))
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if near:
        return f', did you mean "{near[0]}"?'
    if not names:
        return "; there are none"
    return f"; there is: {', '.join(names[:20])}{', ...' if len(names) > 20 else ''}"
