"""Reads what a claim quotes from the paper: its class, the paper's sentence, its words as tolerances, and
amendments.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import get_args

from ..core.outputs import Amendment, ClaimClass, Sentence, Word
from .fields import Field, check_keys, read_text
from .problems import Problems, nearest
from .toml_positions import Item

CLASSES: tuple[ClaimClass, ...] = get_args(ClaimClass)
SENTENCE = {"ko": Field("text", '"TCP가 가장 우수하다."'), "en": Field("text", '"TCP performs best."')}
AMENDMENT = {"date": Field("text", '"2026-11-22"'), "reason": Field("text", '"the paper says depends on"')}
WORD = {"tolerance": Field("open", "0.143"), "source": Field("text", '"Table 6: 0.080 against 0.070"')}
TEXTS = {
    "class": Field("choice", '"conclusion"', choices=CLASSES),
    "paper": Field("open", '{ ko = "TCP가 가장 우수하다.", en = "TCP performs best." }'),
    "amended": Field("open", '["words"] or [{ date = "2026-11-22", reason = "the paper says: depends on" }]'),
}


def read_class(item: Item, problems: Problems) -> ClaimClass:
    """The class of a claim; by default "conclusion" if it has the paper's sentence, else "own"."""
    text, paper = item.text("class"), item.get("paper")
    default: ClaimClass = "own" if paper is None else "conclusion"
    claim_class: ClaimClass = next((known for known in CLASSES if known == text), default)
    if claim_class != "own" and paper is None:
        problems.add(
            item, f'class "{claim_class}" needs the paper\'s sentence; for example paper = {TEXTS["paper"].example}'
        )
    if claim_class == "own" and paper is not None:
        problems.add(paper, 'is of a claim of the paper: give it a class; for example class = "conclusion"')
    return claim_class


def read_sentence(item: Item, earlier: Mapping[str, Sentence], problems: Problems) -> Sentence | None:
    """The paper's sentence: a table with its words, or the id of an earlier claim with the same sentence."""
    child = item.get("paper")
    if child is None:
        return None
    if isinstance(child.value, str):
        if child.value not in earlier:
            said = f'no claim "{child.value[:40]}" before this one has a sentence{nearest(child.value, earlier)}'
            problems.add(child, said)
        return earlier.get(child.value)
    if not isinstance(child.value, dict):
        problems.add(child, f"must be a table or the id of an earlier claim; for example {TEXTS['paper'].example}")
        return None
    texts: dict[str, str] = {}
    for key, part in child.table().items():
        if key not in SENTENCE:
            problems.add(part, f'unknown key "{key[:40]}"{nearest(key, SENTENCE)}')
        elif (text := read_text(part, SENTENCE[key], problems)) is not None:
            texts[key] = text
    if "en" not in texts:
        problems.add(child, f"its en is missing; for example en = {SENTENCE['en'].example}")
    return Sentence(texts.get("ko", ""), texts.get("en", ""))


def read_amendments(item: Item, named: Item | None, problems: Problems) -> tuple[Amendment, ...]:
    """Changes made to a claim after its first run, each with its date and reason: a table, or the name of an
    [amendment.NAME].
    """
    amendments: list[Amendment] = []
    known = named.table() if named is not None else {}
    child = item.get("amended")
    for entry in child.items() if child is not None else ():
        part = known.get(entry.value) if isinstance(entry.value, str) else entry
        if part is entry:
            check_keys(entry, AMENDMENT, problems)
        if part is None:
            problems.add(entry, f'there is no amendment "{str(entry.value)[:40]}"{nearest(str(entry.value), known)}')
            continue
        date, reason = (str(text.value) if (text := part.get(key)) is not None else "" for key in ("date", "reason"))
        try:
            datetime.date.fromisoformat(date)
        except ValueError:
            problems.add(
                part.get("date") or part, f"its date is no day; for example date = {AMENDMENT['date'].example}"
            )
        if not reason:
            problems.add(part, f"its reason is missing; for example reason = {AMENDMENT['reason'].example}")
        amendments.append(Amendment(date, reason))
    return tuple(amendments)


def read_words(item: Item | None, problems: Problems) -> dict[str, Word]:
    """Every [word.NAME]."""
    words: dict[str, Word] = {}
    for name, part in item.table().items() if item is not None else ():
        tolerance, source = part.get("tolerance"), part.get("source")
        value = tolerance.value if tolerance is not None else None
        if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
            problems.add(
                tolerance or part, f"needs a tolerance above 0; for example tolerance = {WORD['tolerance'].example}"
            )
            value = 1
        if source is None:
            problems.add(part, f"needs the place it comes from; for example source = {WORD['source'].example}")
        words[name] = Word(name, float(value), str(source.value) if source is not None else "")
    return words
