"""Text of a replay: its agreement with the capture, both courses side by side, and the course with the change."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..captures.sctp.replay_inputs import END_NAMES
from ..captures.sctp.stalls import OPEN, AssociationCourse, Stall
from ..core.numbers import fixed, given, in_short
from ..core.units import counted
from ..store.conclusion import Conclusion, Part, Sentence

if TYPE_CHECKING:
    from .what_if import WhatIf

MOST_ROWS = 16
MOST_STALLS, MOST_WAITS = 5, 3
USUAL = ("DATA", "SACK")
ALIKE_S = 0.0005
OUTAGE_S = 0.5
"""A shorter stall is called a wait."""
MOST_FITS_TOLD = 3
LIKE_S, LIKE = 0.05, 0.1
"""Times of the association's start that differ by no more than timers do are not told."""


def what_if_conclusion(found: WhatIf) -> Conclusion:
    """Whether a replay matches, what the change would have done, both courses side by side, and what is assumed."""
    ends = found.explanation.connection.ends
    changes = changes_text(found.changes)
    about = (
        Sentence(changes, "change"),
        *(Sentence(text, name) for name, text in zip(END_NAMES, ends, strict=True)),
    )
    sure = [_agreement(found)]
    parts = []
    if found.answered:
        sure.append(_fits(found))
        then = [*_given_up(found), *(text for end in sorted(found.field) for text in _answers(found, end))]
        parts.append(Part(f"What would have been, with {changes}", tuple(map(Sentence, then))))
        more, rows = _side_by_side(found)
        since = "the association's start" if found.inputs.begun else "the capture's begin"
        parts.append(Part(f"Side by side, in s from {since}", tuple(map(Sentence, more)), rows=rows))
    parts.append(Part("How sure this is", tuple(map(Sentence, sure))))
    parts.append(Part("What the cells have that the capture does not show", tuple(map(Sentence, _assumed(found)))))
    return Conclusion(command="explain --what-if", answer=_answer(found, changes), about=about, parts=tuple(parts))


def _answer(found: WhatIf, changes: str) -> str:
    """What becomes of the longest outage; why there is no answer, where there is none."""
    if not found.answered:
        text = _agreement(found)
        return f"{text[:1].upper()}{text[1:]}."
    stalls = [(stall, end) for end, course in sorted(found.field.items()) for stall in course.stalls]
    if not stalls:
        first = next((text for end in sorted(found.field) for text in _answers(found, end)), "nothing waits in either")
        return f"With {changes}: {first}."
    stall, end = max(stalls, key=lambda pair: pair[0].wait_s)
    courses, replays = ([each.courses[end] for each in cells] for cells in (found.changed, found.replays))
    return f"With {changes}: {stall_text(END_NAMES[end], stall, courses, replays, whole=found.known_until_s is None)}."


def changes_text(changes: Sequence[Mapping[str, Any]]) -> str:
    """Such as "b.rto_min = 300 ms"."""
    return ", ".join(f"{END_NAMES[end]}.{key} = {value}" for end in (0, 1) for key, value in changes[end].items())


def _agreement(found: WhatIf) -> str:
    match = found.match
    what = counted(match.events, "event")
    if match.whole and not found.answered:
        if found.failed:
            return f"no answer: the replay matches, but with the change a cell does not run: {found.failed}"
        return "no answer: a replay matched while settings were sought, but those of the run below do not"
    if match.whole:
        apart = f"{given(round(match.largest_ns / 1e6, 1))} ms"
        text = f"the replay has the {what} of the capture in the same order, at most {apart} apart"
        tried = counted(found.tried, "cell")
        return f"{text} (HEARTBEATs, which go as captured, are not compared); found after {tried}"
    text = f"no answer: the replay does not match. {match.matched} of {what} agree, then: {match.parting}"
    missing = [END_NAMES[end] for end in (0, 1) if not found.inputs.seen_from[end]]
    if missing:
        text += f". A capture at {missing[0]} too would show what {missing[0]} sent when, and what was lost"
    return text


def _fits(found: WhatIf) -> str:
    """Whether other settings match as well, and whether the answer depends on which the ends had."""
    assert found.fits is not None
    matching = found.fits.matching
    if len(matching) == 1:
        return f"of {counted(found.fits.tried, 'set')} of settings that the capture permits, this alone matches"
    text = f"{len(matching)} of {counted(found.fits.tried, 'set')} of settings that the capture permits match"
    if found.agree:
        alike = "give the same outages, to within 50 ms or a tenth"
        silent = sum(fit.answer is None for fit in matching)
        who = f"{len(matching) - silent} of them {alike}, and {silent} do not run" if silent else f"all of them {alike}"
        return f"{text}: with the change {who}"
    extremes = found.fits.extremes[1 : MOST_FITS_TOLD + 1]
    such = "; or ".join(each.differs for each in extremes)
    return (
        f"{text}. With the change they do not agree, so each number is the least to the most of them. It is another "
        f"with {such}. Give those that you know as further changes"
    )


def _assumed(found: WhatIf) -> Iterator[str]:
    """What the cell has that the capture does not show."""
    for end in (0, 1):
        options = found.guess.settings[end]
        said = ", ".join(f"{key} {value}" for key, value in options.items() if value is not True)
        switches = [key for key, value in options.items() if value is True]
        known = ", ".join([each for each in (said, *switches) if each])
        yield f"{END_NAMES[end]} has {known or 'nothing but'}; the rest as Linux has it"
    for number, path in enumerate(found.inputs.paths, 1):
        losses = sum(dead.losses for way in path.ways for dead in way.dead) + sum(len(way.lost) for way in path.ways)
        rate = "no rate" if path.rate_bit_s is None else in_short(path.rate_bit_s, "bit/s")
        text = f"round trip {in_short(path.round_trip_ns / 1e9, 's')}, {rate}, {counted(losses, 'packet')} lost"
        yield f"path {number} has {text}"
    if settling := len(found.inputs.settling_ns):
        before = counted(settling, "small message")
        yield (
            f"the association was up before the capture, the cell's is new: {before} before it measure the round trip, "
            "and its window has not grown"
        )
    if held := found.inputs.held:
        text = (
            f"{counted(held, 'message')} went as an acknowledgement came or a timer expired: taken as due just before"
        )
        yield text
    if late := found.inputs.by_pattern:
        text = f"{counted(late, 'message')} went later than the pattern of the others: taken as due by the pattern"
        yield text
    if found.answered:
        draws = len({variant.draw for variant in found.changed})
        text = (
            "HEARTBEATs would have gone at other instants with the change: each number is the least to the most of "
            f"{draws} cells, with those of the capture, and drawn from the first loss on"
        )
        yield text
    if missing := [END_NAMES[end] for end in (0, 1) if not found.inputs.seen_from[end]]:
        text = f"what {missing[0]} sent and lost is not in the capture"
        yield text
    if unseen := found.guess.unseen:
        away = END_NAMES[1 - found.inputs.end]
        text = (
            f"{counted(len(unseen), 'packet')} of {away} taken as lost: the replay sends them, the capture lacks them"
        )
        yield text
    if found.known_until_s is not None:
        text = (
            f"nothing shows that the network came back after {in_short(found.known_until_s, 's')}: what would have "
            "been later is unknown, and the cell with the change has a network that never does"
        )
        yield text
    if found.unsure:
        text = "when the network came back is known between two packets only: it was tried early, late and in between"
        yield text


def _side_by_side(found: WhatIf) -> tuple[list[str], tuple[tuple[str, ...], ...]]:
    """The events that are not plain data or its acknowledgement, a row each: capture, replay, and with the change.
    Before them what they leave out.
    """
    later = [{event.key: at for event, at in variant.match.pairs} for variant in found.changed]
    known_s = OPEN if found.known_until_s is None else found.known_until_s
    events = [
        (event, (event.time_ns, at, tuple(each.get(event.key) for each in later)))
        for event, at in found.match.pairs
        if event.key[1] not in USUAL or (event.key[1] == "DATA" and event.key[3])
    ]
    together = [list(group) for _, group in itertools.groupby(events, key=lambda row: (*row[0].key[:2], row[1]))]
    rows: list[tuple[str, ...]] = [("", "capture", "replay", "changed")]
    for group in together[:MOST_ROWS]:
        text = group[0][0].text
        if len(group) > 1:
            last = group[-1][0].key[2]
            text = text.replace(" again", f" to {last} again")
        was, again, changed = group[0][1]
        unknown = max(was, again or 0, *(each or 0 for each in changed)) / 1e9 > known_s
        rows.append((text, _time(was), _time(again), "unknown" if unknown else _times(changed)))
    more = len(together) - MOST_ROWS
    return ([f"the first {MOST_ROWS} of {len(together)} events (--json has all)"] if more > 0 else []), tuple(rows)


def _time(at_ns: int | None) -> str:
    return "-" if at_ns is None else fixed(at_ns / 1e9, 3)


def _times(changed: Sequence[int | None]) -> str:
    """The least and the most of the cells with the change."""
    there = sorted(each for each in changed if each is not None)
    if not there:
        return "-"
    first, last = _time(there[0]), _time(there[-1])
    text = first if first == last else f"{first} to {last}"
    return text if len(there) == len(changed) else f"{text} or -"


def _answers(found: WhatIf, end: int) -> Iterator[str]:
    field = found.field[end]
    courses = [variant.courses[end] for variant in found.changed]
    replays = [variant.courses[end] for variant in found.replays]
    who, whole = END_NAMES[end], found.known_until_s is None
    stalls = sorted(field.stalls, key=lambda stall: -stall.wait_s)
    shown = [stall for stall in stalls if stall.wait_s >= OUTAGE_S][:MOST_STALLS] or stalls[:MOST_WAITS]
    for stall in sorted(shown, key=lambda stall: stall.sent_s):
        yield stall_text(who, stall, courses, replays, whole=whole)
    if more := len(stalls) - len(shown):
        yield f"{counted(more, 'shorter wait')} of {who}: --json has all"
    up_s, ups = field.up_s or 0.0, sorted(course.up_s or 0.0 for course in courses)
    if end == found.inputs.end and any(abs(each - up_s) > max(LIKE_S, LIKE * up_s) for each in ups):
        text = f"the association would have been up after {_spread(ups)}, not {in_short(up_s, 's')}"
        yield text
    if not whole:
        return
    waits = sorted(course.longest_wait_s for course in courses)
    lost = any(stall.wait_s == OPEN for stall in stalls)
    if not stalls or (waits[-1] > 1.1 * field.longest_wait_s and not lost):
        longest = in_short(field.longest_wait_s, "s")
        text = (
            f"the longest wait of what {who} sent for an acknowledgement: {longest}; {_spread(waits)} with the change"
        )
        yield text
    for name, text in (("sent_again", "chunks sent again"), ("needless", "of them without need"),
                       ("expiries", "expiries of T3")):  # fmt: skip
        was, changed = getattr(field, name), [getattr(course, name) for course in courses]
        if was or any(changed):
            yield f"{text} by {who}: {was} in the capture; {_range(changed)} with the change"


def _given_up(found: WhatIf) -> Iterator[str]:
    """Whether an end gave the association up, by the capture of that end where there is one."""
    at_s = {end: course.given_up_s for end, course in found.field.items() if course.given_up_s is not None}
    end = min(at_s, key=lambda each: at_s[each] or 0.0, default=found.inputs.end)
    ended = [variant.courses[end].given_up_s for variant in found.changed]
    if at_s or any(at is not None for at in ended):
        was_text = "not given up" if not at_s else f"given up at {in_short(at_s[end], 's')}"
        if found.known_until_s is not None and None in ended:
            text = f"the association was {was_text}; whether and when with the change is unknown"
            yield text
            return
        kept = sum(at is None for at in ended)
        yield f"the association was {was_text}; {_ended(ended, kept)}"


def _ended(ended: Sequence[float | None], kept: int) -> str:
    if kept == len(ended):
        return "it would have been kept"
    times = sorted(at for at in ended if at is not None)
    text = f"it would have been given up at {_spread(times)}"
    return text if not kept else f"{text}, or kept (so in {kept} of {len(ended)} cells with the change)"


def stall_text(
    who: str,
    stall: Stall,
    courses: Sequence[AssociationCourse],
    replays: Sequence[AssociationCourse],
    *,
    whole: bool = True,
) -> str:
    """The outage as it was, as the replay has it, and as it would have been. whole: False: what goes on in `courses`
    may have ended later.
    """
    waits = [course.waits_s.get(stall.tsn, OPEN) for course in courses]
    again = [course.waits_s.get(stall.tsn, OPEN) for course in replays]
    was = "for good" if stall.wait_s == OPEN else in_short(stall.wait_s, "s")
    at = in_short(stall.sent_s, "s")
    if not whole and OPEN in waits:
        lasted = "was for good" if stall.wait_s == OPEN else f"was {was}"
        text = f"the outage of what {who} sends at {at} {lasted}; how long with the change is unknown"
    elif stall.wait_s < OUTAGE_S:
        text = f"what {who} sends at {at} would have waited {_waits(waits)} for its acknowledgement, not {was}"
    elif _waits(waits) == was:
        text = f"the outage of what {who} sends at {at} would have been as long: {was}"
    else:
        text = f"the outage of what {who} sends at {at} would have been {_waits(waits)}, not {was}"
    return f"{text} (replay: {_waits(again)})"


def _waits(waits: Sequence[float]) -> str:
    ended = sorted(wait for wait in waits if wait != OPEN)
    if not ended:
        return "for good"
    return _spread(ended) + ("" if len(ended) == len(waits) else ", or for good")


def _spread(values: Sequence[float]) -> str:
    first, last = in_short(values[0], "s"), in_short(values[-1], "s")
    return first if values[-1] - values[0] < ALIKE_S or first == last else f"{first} to {last}"


def _range(values: Sequence[int]) -> str:
    least, most = min(values, default=0), max(values, default=0)
    return str(least) if least == most else f"{least} to {most}"
