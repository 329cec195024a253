"""What a command concluded, as lines of a terminal. The report shows the same sentences (conclusion.html.j2)."""

from __future__ import annotations

from collections.abc import Iterator

from ..core.lines import Line, columns
from ..store.conclusion import Conclusion, Part, Sentence

BULLET = "  \u2022 "
MOST_CELLS = 3
"""Ids of cells that a sentence names; the report links to all."""


def conclusion_lines(conclusion: Conclusion) -> Iterator[Line]:
    """What was looked at, the answer, and what it rests on."""
    if conclusion.about:
        yield from columns([(each.name, each.text) for each in conclusion.about])
        yield Line("")
    yield Line("", conclusion.answer)
    for part in conclusion.parts:
        yield Line("")
        yield from part_lines(part)


def part_lines(part: Part) -> Iterator[Line]:
    """A title, its sentences, its table."""
    if part.title:
        yield Line("", part.title)
    if part.sentences and all(each.name for each in part.sentences):
        yield from columns([(each.name, each.text) for each in part.sentences], indent="  ")
    else:
        for number, each in enumerate(part.sentences, 1):
            yield from _sentence(f"  {number}. " if part.numbered else BULLET, each)
    if part.rows:
        count = max(map(len, part.rows))
        yield from columns(part.rows, right=range(1, count), indent="  ")


def _sentence(lead: str, sentence: Sentence) -> Iterator[Line]:
    yield Line(lead, sentence.text)
    below = " " * len(lead)
    if sentence.remedy:
        yield Line(f"{below}\u2192 ", sentence.remedy)
    if sentence.cells:
        more = len(sentence.cells) - MOST_CELLS
        shown = ", ".join(sentence.cells[:MOST_CELLS]) + (f" and {more} more" if more > 0 else "")
        yield Line(f"{below}cell: " if len(sentence.cells) == 1 else f"{below}cells: ", shown)
