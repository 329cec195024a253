"""The spec's questions answered in words, from tables/answer-*.csv."""

from __future__ import annotations

from dataclasses import dataclass

from ..tables.answers import file_name
from ..tables.words import sentences
from .data import RunData, read_rows


@dataclass(frozen=True, slots=True)
class AnswerWords:
    """A question, a sentence for each condition and budget, and the table (below tables/) with every choice."""

    title: str
    sentences: tuple[str, ...]
    table: str


def answer_words(data: RunData) -> tuple[AnswerWords, ...]:
    """Every [answer.NAME] of the spec that this run has rows for."""
    found = []
    for answer in data.plan.answers:
        table = f"{file_name(answer)}.csv"
        words = sentences(data.plan, answer, read_rows(data.run.tables / table))
        if words:
            found.append(AnswerWords(answer.title, words, table))
    return tuple(found)
