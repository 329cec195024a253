"""Other settings with which a captured association is played as well: an answer to "what would have been" that depends
on which of them the ends had is no answer.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..captures.explanation import Explanation, Known
from ..captures.sctp.association import Association
from ..captures.sctp.replay_inputs import END_NAMES, ReplayInputs
from ..captures.sctp.settings import LINUX
from ..captures.sctp.stalls import OPEN, AssociationCourse
from .events import Progress
from .replay_cell import NEAR, PHASES, Guess, Settings, ms_of, options_of
from .replay_search import UNITS, USUAL, accepted, ceilings, compare, play, without_effect

NARROWER = 2
"""So often a value half as far off is tried, if the end of an interval does not match."""
MOST_FITS = 8
"""Sets of settings of the last run: that of the answer, and those that give the least and the most."""
SAME_S = 0.001

Answer = tuple[float, ...]
"""A course as numbers: how many waits were for good, the waits of the capture's stalls, the longest, and
when the association was given up.
"""


@dataclasses.dataclass(frozen=True)
class Fit:
    """Settings with which the replay matches. differs: from those of the answer, in words ("a.rto_max 8 s"); "": they
    are those. answer: of the cell with the change, with the network back at the guess's time; None: not run, or the
    kernel refuses the change with these settings.
    """

    guess: Guess
    differs: str
    answer: Answer | None

    def as_json(self) -> dict[str, Any]:
        """For WhatIf.as_json."""
        return {
            "differs": self.differs,
            "settings": dict(zip(END_NAMES, self.guess.settings, strict=True)),
            "phase_ms": self.guess.phase_ms,
        }


@dataclasses.dataclass(frozen=True)
class Fits:
    """The sets of settings that match, that of the answer first, and how many were tried. extremes: those that are run
    with every time at which the network may have come back.
    """

    matching: tuple[Fit, ...]
    tried: int
    extremes: tuple[Fit, ...]


@dataclasses.dataclass(frozen=True)
class _Try:
    """A guess that differs in one setting. key: the end and the setting. chosen: the value of the guess it is from."""

    key: tuple[int, str]
    value: float
    known: Known
    chosen: float
    guess: Guess


def other_fits(
    explained: Explanation,
    inputs: ReplayInputs,
    field: Mapping[int, Association],
    courses: Mapping[int, AssociationCourse],
    guess: Guess,
    changes: Settings,
    read: Callable[[Mapping[int, Association]], Mapping[int, AssociationCourse]],
    folder: Path,
    jobs: int | None,
    progress: Progress,
) -> Fits:
    """Each setting alone at both ends of what the capture permits, the phases of the kernel's clock, and those together
    that make the answer less, and more. courses: of the capture. read: the courses of a cell with the change.
    """
    known = [*explained.settings, *ceilings(explained, field)]
    keys: dict[Guess, tuple[int, str]] = {}
    matching: dict[Guess, Answer | None] = {}
    tried: list[Guess] = []

    def attempt(guesses: Sequence[Guess]) -> None:
        """Run each that is new, as captured and with the change."""
        fresh = [each for each in dict.fromkeys(guesses) if each not in tried]
        tried.extend(fresh)
        pairs = [(each, change) for each in fresh for change in (False, True)]
        pairs = [(each, change) for each, change in pairs if not change or accepted(each.changed(changes))]
        if not pairs:
            return
        cells = [each.changed(changes) if change else each for each, change in pairs]
        whole, answers = set(), {}
        for place, cell in play(inputs, cells, folder / f"others{len(tried)}", jobs, progress):
            other, change = pairs[place]
            if change:
                answers[other] = _answer(courses, read(cell))
            elif compare(field, cell, inputs).whole:
                whole.add(other)
        matching.update({each: answers.get(each) for each in fresh if each in whole or each == guess})

    pending = list(_ends(known, inputs, guess, changes))
    phases = [_phase(guess, phase) for phase in PHASES if phase != guess.phase_ms]
    keys |= dict.fromkeys(phases, (-1, "phase"))
    for _ in range(NARROWER + 1):
        keys |= {each.guess: each.key for each in pending}
        attempt([guess, *phases, *(each.guess for each in pending)])
        pending = [nearer for each in pending if each.guess not in matching for nearer in _nearer(each, guess)]
    if (base := matching.get(guess)) is not None:
        attempt(list(_together(guess, base, keys, matching)))
    fits = tuple(Fit(each, differs(each, guess), answer) for each, answer in matching.items())
    return Fits(fits, len(tried), tuple(_extremes(fits)))


def differs(other: Guess, guess: Guess) -> str:
    """In words, such as "a.rto_max 8 s"."""
    words = []
    for end, (mine, base) in enumerate(zip(other.settings, guess.settings, strict=True)):
        words += [f"{END_NAMES[end]}.{key} {value}" for key, value in mine.items() if base.get(key) != value]
        words += [f"{END_NAMES[end]}.{key} as Linux has it" for key in base if key not in mine]
    if other.phase_ms != guess.phase_ms:
        words.append(f"the clock's phase {other.phase_ms - guess.phase_ms:+d} ms")
    return ", ".join(words)


def _phase(guess: Guess, phase: int) -> Guess:
    return dataclasses.replace(guess, phase_ms=phase)


def _ends(known: Sequence[Known], inputs: ReplayInputs, guess: Guess, changes: Settings) -> Iterator[_Try]:
    """Each setting that may matter and that the change leaves, at the ends of what the capture permits."""
    by_name = {(each.end, each.name): each for each in known}
    for end in (0, 1):
        for name, usual in LINUX.items():
            if without_effect(end, name, inputs, (end, name) in by_name) or set(options_of(name, usual, end)) <= set(
                changes[end]
            ):
                continue
            each = by_name.get((end, name)) or Known(end, name, None, None, UNITS[name], (), ())
            low, high = permitted(each)
            chosen = _chosen(guess, end, name)
            for value in sorted({low, high} - {chosen}):
                made = _made(guess, end, name, value)
                if made is not None:
                    yield _Try((end, name), value, each, chosen, made)


def permitted(known: Known) -> tuple[float, float]:
    """The least and the largest value of a setting that the capture permits, where it leaves one open the usual."""
    least, most = USUAL[known.name]
    low = known.low if known.low is not None else min(least, known.high or least)
    high = known.high if known.high is not None else max(most, low * NEAR)
    if known.unit != "s":
        return float(math.ceil(low)), float(math.floor(high))
    return low, high


def _chosen(guess: Guess, end: int, name: str) -> float:
    settings = guess.settings[end]
    key = "pf_retrans" if name == "failover_threshold" else name
    if key not in settings:
        return LINUX[name]
    value = settings[key]
    return ms_of(value) / 1e3 if isinstance(value, str) else float(value)


def _made(guess: Guess, end: int, name: str, value: float) -> Guess | None:
    """The guess with this value; None: it has it, or the kernel refuses it."""
    options = options_of(name, value, end)
    changes: Settings = ({}, options) if end else (options, {})
    made = guess.changed(changes)
    if name == "rto_max" and ms_of(made.settings[end].get("rto_min", "1 s")) > value * 1e3:
        return None
    return made if options and made != guess and accepted(made) else None


def _nearer(each: _Try, guess: Guess) -> Iterator[_Try]:
    """Half as far from the guess."""
    end, name = each.key
    value = math.sqrt(each.value * each.chosen) if each.known.unit == "s" else (each.value + each.chosen) // 2
    made = _made(guess, end, name, value)
    if made is not None and value not in (each.value, each.chosen):
        yield dataclasses.replace(each, value=value, guess=made)


def _answer(field: Mapping[int, AssociationCourse], changed: Mapping[int, AssociationCourse]) -> Answer:
    waits = [changed[end].waits_s.get(stall.tsn, OPEN) for end, course in field.items() for stall in course.stalls]
    longest = [changed[end].longest_wait_s for end in field]
    ended = [OPEN if changed[end].given_up_s is None else -float(changed[end].given_up_s or 0) for end in field]
    return (float(sum(wait == OPEN for wait in waits)), *waits, *longest, *ended)


def _size(answer: Answer) -> tuple[float, float]:
    """The larger, the longer the outages."""
    return answer[0], sum(each for each in answer[1:] if abs(each) != OPEN)


def _apart(one: tuple[float, float], other: tuple[float, float]) -> bool:
    return one[0] != other[0] or abs(one[1] - other[1]) >= SAME_S


def _together(
    guess: Guess, base: Answer, keys: Mapping[Guess, tuple[int, str]], matching: Mapping[Guess, Answer | None]
) -> Iterator[Guess]:
    """All settings together that alone make the outages shorter, and all that make them longer."""
    sizes = {other: _size(answer) for other, answer in matching.items() if answer is not None and other in keys}
    for longer in (False, True):
        best: dict[tuple[int, str], Guess] = {}
        for other, size in sizes.items():
            if (size > _size(base)) != longer or not _apart(size, _size(base)):
                continue
            now = best.get(keys[other])
            if now is None or (size > sizes[now]) == longer:
                best[keys[other]] = other
        made = guess
        for (end, _), other in best.items():
            if end < 0:
                made = _phase(made, other.phase_ms)
            else:
                mine, base_of = other.settings[end], guess.settings[end]
                options = {key: value for key, value in mine.items() if base_of.get(key) != value}
                made = made.changed(({}, options) if end else (options, {}))
        if len(best) > 1 and accepted(made):
            yield made


def _extremes(fits: Sequence[Fit]) -> Iterator[Fit]:
    """The first, and those of the others that give the least and the most of anything."""
    yield fits[0]
    chosen = [fits[0]]
    known = [fit for fit in fits if fit.answer is not None]
    by_size = sorted(known, key=lambda fit: _size(fit.answer or ()))
    wanted = [*by_size[:1], *by_size[-1:]]
    for column in range(len(known[0].answer or ()) if known else 0):
        ordered = sorted(known, key=lambda fit: (fit.answer or ())[column])
        wanted += [ordered[0], ordered[-1]]
    for fit in wanted:
        if len(chosen) < MOST_FITS and all(_far(fit.answer, other.answer) for other in chosen):
            chosen.append(fit)
            yield fit


def _far(one: Answer | None, other: Answer | None) -> bool:
    """Whether two answers differ."""
    if one is None or other is None:
        return one is not other
    return any(a != b and not abs(a - b) < SAME_S for a, b in zip(one, other, strict=True))
