"""Text for a terminal: statements that wrap at its width and columns that never touch.

Standard library only: the doctor, which runs before anything is installed, prints with it.
"""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from .outside_text import one_line

GAP = "  "
"""Between two columns."""
LEAST = 24
"""Letters that a line of text has at least: a lead may be as wide as the terminal."""


@dataclass(frozen=True, slots=True)
class Line:
    """A statement. Where it is wrapped, its further lines begin below the first word of `text`."""

    lead: str
    text: str = ""

    def wrapped(self, width: int | None) -> list[str]:
        """Its lines in a terminal of so many letters; None: one line. A word is never broken, so that a path can be
        copied.
        """
        if width is None or not self.text:
            return [f"{self.lead}{self.text}".rstrip()]
        indent = letters(self.lead)
        room = max(width - indent, LEAST)
        parts = textwrap.wrap(self.text, room, break_long_words=False, break_on_hyphens=False) or [""]
        return [(self.lead if number == 0 else " " * indent) + part for number, part in enumerate(parts)]


def lines_text(lines: Iterable[Line], width: int | None = None) -> str:
    """Statements, a line each, or as many as they need in a terminal of so many letters."""
    return "\n".join(line for each in lines for line in each.wrapped(width))


def columns(rows: Sequence[Sequence[str]], *, right: Collection[int] = (), indent: str = "") -> list[Line]:
    """Rows whose fields stand one below the other, each column as wide as its widest field, two spaces apart. right:
    numbers of the columns that end one below the other. What is in the last column wraps below its own beginning.
    """
    count = max((len(row) for row in rows), default=0)
    whole = [[*map(_field, row), *[""] * (count - len(row))] for row in rows]
    widths = [max(letters(row[number]) for row in whole) for number in range(count)]
    result = []
    for row in whole:
        lead = indent
        for number, (field, width) in enumerate(zip(row, widths, strict=True)):
            spaces = " " * (width - letters(field))
            if number == count - 1:
                lead += spaces if number in right else ""
            else:
                lead += (spaces + field if number in right else field + spaces) + GAP
        result.append(Line(lead, row[-1]))
    return result


def letters(text: str) -> int:
    """How many places of a terminal a text takes: a wide letter (Korean, Chinese) takes two, a combining one none."""
    return sum(_place(letter) for letter in text)


def _place(letter: str) -> int:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf") and letter != "\u00ad":
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _field(text: str) -> str:
    """A field is one line, of letters and simple spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in one_line(text))
