"""The spec's questions answered in words, from tables/answer-*.csv."""

from __future__ import annotations

from dataclasses import dataclass

from ..tables.answers import file_name
from ..tables.words import sentences
from .data import RunData, read_rows

OPEN = 4
"""Sentences shown at once; the rest opens."""


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """A question; (condition and budget, what does it and what not) shown at once and on demand; and the table (below
    tables/) with every choice.
    """

    title: str
    first: tuple[tuple[str, str], ...]
    more: tuple[tuple[str, str], ...]
    table: str


def answer_words(data: RunData) -> tuple[AnswerWords, ...]:
    """Every [answer.NAME] of the spec that this run has rows for."""
    found = []
    for answer in data.plan.answers:
        table = f"{file_name(answer)}.csv"
        words = [
            (condition, sentence)
            for condition, _, sentence in (
                one.partition(": ") for one in sentences(data.plan, answer, read_rows(data.run.tables / table))
            )
        ]
        if words:
            found.append(AnswerWords(answer.title, tuple(words[:OPEN]), tuple(words[OPEN:]), table))
    return tuple(found)
