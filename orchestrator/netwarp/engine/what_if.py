"""Replay of a captured association: in cells until their packets are those of the capture, then with other settings
(`netwarp explain CAPTURE --what-if "b.rto_min=300 ms"`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..captures.explanation import Explanation
from ..captures.sctp.association import Association
from ..captures.sctp.event_match import WITHIN_NS, WITHIN_RATIO, EventMatch
from ..captures.sctp.replay_inputs import END_NAMES, ReplayInputs, View, replay_inputs
from ..captures.sctp.stalls import OPEN, AssociationCourse, association_course
from ..core.errors import CaptureError, SpecError
from ..core.types import Outcome
from ..experiment.options import read_options
from ..experiment.problems import Problems
from ..experiment.sctp_sides import read_side
from ..experiment.toml_positions import Item
from ..store.run_locations import check_out, new_directory
from .captures import explain_captures
from .events import Progress, no_progress
from .replay_cell import (
    OWN,
    ROLES,
    TO_THE_FIRST_LOSS,
    Guess,
    Settings,
    known_until_ns,
    levels_of,
    options_of,
    repair_factor,
    unsure,
    write_spec,
)
from .replay_fits import Fits, other_fits
from .replay_search import associations, compare, fit, view_association
from .run_directory import Run
from .running import run
from .what_if_words import what_if_conclusion

CAPTURED, CHANGED, DRAWN = "captured", "changed", "drawn"
"""Settings of the cells that answer: those of the capture, and those with the change, with HEARTBEATs as captured and
drawn from the first loss on.
"""
_CHANGE = re.compile(r"\s*([ab])\.(\w+)\s*=\s*([^,]+?)\s*")
_NAME = "what-if"
THRESHOLD = "failover_threshold"
"""What explain infers; options_of() has the options that set it."""
DRAWS = 3
"""Repetitions of the cells that answer: the kernels draw the instants of HEARTBEATs, which move data. The first is held
against the capture.
"""


@dataclasses.dataclass(frozen=True)
class Variant:
    """What a cell shows: the factor levels' names, its match with the capture, and its course at each end. fit: number
    of its settings among Fits.extremes; changed: with the change; draw: of the HEARTBEATs' instants, DRAWS or more:
    of DRAWN.
    """

    repair: str
    fit: int
    changed: bool
    draw: int
    cell: str
    match: EventMatch
    courses: Mapping[int, AssociationCourse]

    def as_json(self) -> dict[str, Any]:
        """For WhatIf.as_json."""
        courses = {END_NAMES[end]: course.as_json() for end, course in self.courses.items()}
        return {"repair": self.repair, "fit": self.fit, "draw": self.draw, "cell": self.cell, **courses}


@dataclasses.dataclass(frozen=True)
class OutageRange:
    """How long a chunk waited for its acknowledgement: in the capture, and with the change, the least and the most of
    all settings that match (OPEN: for good). end: that sent it; tsn: relative; sent_s: from the association's start.
    known: False where the network was not seen to come back, and the wait may have ended later than that.
    """

    end: int
    tsn: int
    sent_s: float
    was_s: float
    low_s: float
    high_s: float
    known: bool = True

    @property
    def agrees(self) -> bool:
        """Whether both ends are the same as far as timers are."""
        if self.high_s == OPEN:
            return self.low_s == OPEN
        return self.high_s - self.low_s <= max(WITHIN_NS / 1e9, WITHIN_RATIO * self.high_s)

    def as_json(self) -> dict[str, Any]:
        """For WhatIf.as_json; null: for good."""
        table = dataclasses.asdict(self) | {"end": END_NAMES[self.end], "agrees": self.agrees}
        return {key: None if value == OPEN else value for key, value in table.items()}


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """An association played again. guess: with which it was; match: of that cell with the capture.

    field: its course, by end. fits: the sets of settings that match; None: nothing does. replays: cells with the
    captured settings that match, one for each of Fits.extremes and each time at which the network may have come back;
    changed: the same with the change, DRAWS of each, and DRAWS with drawn HEARTBEATs; empty if nothing matches. failed:
    why a cell with the change did not complete; "": all did. known_until_s: from the association's beginning; what
    would have been later is not known, since nothing shows that the network came back (changed ends there too); None:
    it came back. spec: written for the user.
    """

    explanation: Explanation
    inputs: ReplayInputs
    changes: tuple[dict[str, Any], dict[str, Any]]
    guess: Guess
    match: EventMatch
    fits: Fits | None
    field: Mapping[int, AssociationCourse]
    replays: tuple[Variant, ...]
    changed: tuple[Variant, ...]
    failed: str
    known_until_s: float | None
    tried: int
    spec: Path
    run: Run

    def as_json(self) -> dict[str, Any]:
        """The object under `what_if` of `netwarp explain --what-if --json`."""
        ends = self.explanation.connection.ends
        return {
            "ends": dict(zip(END_NAMES, ends, strict=True)),
            "changes": dict(zip(END_NAMES, self.changes, strict=True)),
            "settings": dict(zip(END_NAMES, self.guess.settings, strict=True)),
            "matches": self.match.whole,
            "answered": self.answered,
            "failed": self.failed,
            "known_until_s": self.known_until_s,
            "events": self.match.events,
            "matched": self.match.matched,
            "largest_difference_s": self.match.largest_ns / 1e9,
            "parting": self.match.parting,
            "side_by_side": [
                {"event": event.text, "capture_s": event.time_ns / 1e9, "replay_s": None if at is None else at / 1e9}
                for event, at in self.match.pairs
            ],
            "capture": {END_NAMES[end]: course.as_json() for end, course in self.field.items()},
            "settings_tried": 0 if self.fits is None else self.fits.tried,
            "settings_that_match": [each.as_json() for each in (() if self.fits is None else self.fits.matching)],
            "settings_run": [each.as_json() for each in (() if self.fits is None else self.fits.extremes)],
            "settings_agree": self.agree,
            "outages": [each.as_json() for each in self.outages],
            "replay": [each.as_json() for each in self.replays],
            "changed": [each.as_json() for each in self.changed],
            "spec": str(self.spec),
            "run_dir": str(self.run.path),
        }

    @property
    def answered(self) -> bool:
        """Whether there is a replay that matches, and its cells with the change completed."""
        each = DRAWS if self.guess.heartbeats == OWN else 2 * DRAWS
        there = self.replays and len(self.changed) == each * len(self.replays)
        return bool(self.match.whole and there and not self.failed)

    @property
    def outages(self) -> tuple[OutageRange, ...]:
        """Of each stall of the capture the range with the change."""
        if not self.answered:
            return ()
        result = []
        for end, course in sorted(self.field.items()):
            for stall in course.stalls:
                waits = [variant.courses[end].waits_s.get(stall.tsn, OPEN) for variant in self.changed]
                known = self.known_until_s is None or OPEN not in waits
                result.append(OutageRange(end, stall.tsn, stall.sent_s, stall.wait_s, min(waits), max(waits), known))
        return tuple(result)

    @property
    def agree(self) -> bool:
        """Whether all settings that match give the same outages and the same end, at each time of the repair and with
        each draw.
        """
        for same in {(variant.repair, variant.draw) for variant in self.changed}:
            courses = [variant.courses for variant in self.changed if (variant.repair, variant.draw) == same]
            for end, course in self.field.items():
                mine = [each[end] for each in courses]
                waits = [[each.waits_s.get(stall.tsn, OPEN) for each in mine] for stall in course.stalls]
                times = waits or [[each.longest_wait_s for each in mine]]
                times.append([OPEN if each.given_up_s is None else each.given_up_s for each in mine])
                if not all(OutageRange(end, 0, 0.0, 0.0, min(each), max(each)).agrees for each in times):
                    return False
        return True

    @property
    def unsure(self) -> bool:
        """Whether the capture leaves open when the network came back."""
        return bool(unsure(self.inputs))


def read_changes(texts: Sequence[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The changes of a and b: "b.rto_min=300 ms, a.sack_delay=40 ms". Raises SpecError."""
    found: tuple[list[str], list[str]] = ([], [])
    for part in (part for text in texts for part in text.split(",")):
        match = _CHANGE.fullmatch(part)
        if match is None:
            raise SpecError(
                f'--what-if: "{part[:60]}" is no setting of an end; a asked for the association, b answered; for '
                'example --what-if "b.rto_min=300 ms"'
            )
        end = END_NAMES.index(match[1])
        if match[2] == THRESHOLD and match[3].isdecimal():  # as explain says it
            found[end].extend(f"{key}={value}" for key, value in options_of(THRESHOLD, int(match[3]), end).items())
            continue
        if any(earlier.startswith(f"{match[2]}=") for earlier in found[end]):
            raise SpecError(f"--what-if: {match[1]}.{match[2]} is there twice; one value of each setting")
        found[end].append(f"{match[2]}={match[3]}")
    result: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    problems = Problems()
    for end in (0, 1):
        if found[end]:
            try:
                side = read_side(",".join(found[end]))
            except SpecError as error:
                name, text = END_NAMES[end], str(error)
                raise SpecError(
                    f"--what-if: {name}'s {text}" if text[:1] == '"' else f"--what-if: {name}.{text}"
                ) from error
            options = side.options(connects=end == 0)
            if refused := sorted(set(side.settings) - set(options)):
                raise SpecError(f"--what-if: {END_NAMES[end]}.{refused[0]}: only a, which asks, has this setting")
            result[end].update(options)
            table = {
                key: Item(value, f"--what-if: {END_NAMES[end]}.{key}={value}", 0, "") for key, value in options.items()
            }
            read_options(Item(table, "--what-if", 0, ""), ROLES[end], "sctp", None, problems)
    problems.check()
    return result


def what_if(
    paths: Sequence[str | Path],
    changes: Sequence[str],
    *,
    merge: bool = False,
    packet_filter: str | None = None,
    captured_at: Sequence[str] = (),
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress = no_progress,
    arguments: Sequence[str] = (),
) -> WhatIf:
    """Play the largest SCTP association of captures again, then with changed settings of its ends.

    paths, merge, packet_filter, captured_at: as of analyze_captures. out: directory for the spec and the runs (default:
    results/what-if/<time>). arguments: the words of the command line, for the manifest. Raises SpecError (a change is
    none), CaptureError (no association that a cell can play), and what `run` raises.
    """
    wanted = read_changes(changes)
    explained = explain_captures(paths, merge=merge, packet_filter=packet_filter, captured_at=captured_at)
    chosen = next((each for each in explained.connections if each.connection.protocol == "sctp"), None)
    if chosen is None:
        raise CaptureError("--what-if: no SCTP association is in there")
    views = [View(file.capture, connection.row) for file, connection in chosen.views]
    inputs = replay_inputs(views)
    if out is not None:
        check_out(Path(out), resume=False)
    folder = new_directory(Path("results") / _NAME).root if out is None else Path(out)
    field = {end: view_association(view, end) for end, view in inputs.views.items()}
    until_ns = known_until_ns(inputs)
    guess, match, tried = fit(chosen, inputs, field, folder, jobs, progress)
    courses = {
        end: association_course(association, int(association.row["first_ns"]), int(association.row["last_ns"]))
        for end, association in field.items()
    }
    fits = None
    if match.whole:
        fits = other_fits(
            chosen, inputs, field, courses, guess, wanted, lambda cell: _courses(cell, inputs, until_ns),
            folder, jobs, progress,
        )  # fmt: skip
    written = write_spec(folder / "spec", _last_spec(inputs, guess, fits, wanted), inputs)

    def judged(done: Run) -> WhatIf:
        variants = _variants(done, inputs, field, until_ns)
        fitting = tuple(each for each in variants if not each.changed and not each.draw and each.match.whole)
        matching = {(each.fit, each.repair) for each in fitting}
        return WhatIf(
            explanation=chosen,
            inputs=inputs,
            changes=wanted,
            guess=guess,
            match=match,
            fits=fits,
            field=courses,
            replays=fitting,
            changed=tuple(each for each in variants if each.changed and (each.fit, each.repair) in matching),
            failed=next(
                (
                    str(row["reason"] or row["outcome"])
                    for row in done.table("cells")
                    if str(row["settings"]).startswith((CHANGED, DRAWN)) and row["outcome"] != Outcome.COMPLETED
                ),
                "",
            ),
            known_until_s=None if until_ns is None else (until_ns - inputs.start_ns) / 1e9,
            tried=len(tried),
            spec=written,
            run=done,
        )

    return judged(
        run(
            written, out=folder / "run", jobs=jobs, progress=progress, arguments=arguments,
            conclude=lambda done: what_if_conclusion(judged(done)),
        )
    )  # fmt: skip


def _last_spec(inputs: ReplayInputs, guess: Guess, fits: Fits | None, changes: Settings) -> dict[str, Any]:
    """The cells that answer: each set of settings as captured and, if the replay matches, with the change."""
    guesses = {CAPTURED: guess}
    if fits is not None:
        for number, each in enumerate(fits.extremes, 1):
            after = f" {number}" if number > 1 else ""
            changed = each.guess.changed(changes)
            guesses |= {CAPTURED + after: each.guess, CHANGED + after: changed}
            if changed.heartbeats != OWN:
                guesses[DRAWN + after] = dataclasses.replace(changed, heartbeats=TO_THE_FIRST_LOSS)
    spec, levels = levels_of(inputs, guesses)
    spec |= {"seed": guess.seed, "repetitions": DRAWS}
    settings = {"title": "settings of the ends", "levels": list(levels), "level": levels}
    repair = repair_factor(inputs)
    return spec | {"factor": {"settings": settings} | ({"repair": repair} if repair else {})}


def _courses(
    cell: Mapping[int, Association], inputs: ReplayInputs, known_ns: int | None
) -> dict[int, AssociationCourse]:
    """The courses of a cell with the change: what is late or lost in the capture may come after its end."""
    courses = {}
    for end, association in cell.items():
        begin_ns, until_ns = int(association.row["first_ns"]), int(association.row["last_ns"])
        if known_ns is not None:
            until_ns = min(until_ns, begin_ns + known_ns - inputs.begin_ns)
        courses[end] = association_course(association, begin_ns, until_ns)
    return courses


def _variants(done: Run, inputs: ReplayInputs, field: Mapping[int, Association], known_ns: int | None) -> list[Variant]:
    result = []
    for row in done.table("cells"):
        cell = str(row["cell_id"])
        found = associations(done, cell, inputs) if row["outcome"] == Outcome.COMPLETED else {}
        if not found:
            continue
        name, _, number = str(row["settings"]).partition(" ")
        if name != CAPTURED:
            courses = _courses(found, inputs, known_ns)
        else:
            courses = {}
            for end, association in found.items():
                lasted_ns = int(field[end].row["last_ns"]) - int(field[end].row["first_ns"])
                begin_ns = int(association.row["first_ns"])
                courses[end] = association_course(association, begin_ns, begin_ns + lasted_ns)
        match = compare(field, found, inputs)
        variant = Variant(
            str(row.get("repair", "")),
            int(number or 1),
            name != CAPTURED,
            int(str(row["repetition"])) + DRAWS * (name == DRAWN),
            cell,
            match,
            courses,
        )
        result.append(variant)
    return result
