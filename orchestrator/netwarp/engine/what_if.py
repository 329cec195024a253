"""Replay of a captured association: in cells until their packets are those of the capture, then with other settings
(`netwarp explain CAPTURE --what-if "b.rto_min=300 ms"`).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..captures import read_captures
from ..captures.explanation import Explanation, Known
from ..captures.sctp.association import Association
from ..captures.sctp.event_match import EventMatch, both_ends, match_events, sent_events
from ..captures.sctp.replay_inputs import END_NAMES, ReplayInputs, View, replay_inputs
from ..captures.sctp.stalls import AssociationCourse, association_course, giving_up
from ..core.errors import CaptureError, SpecError
from ..core.types import Outcome
from ..core.wire import SCTP
from ..experiment.options import read_options
from ..experiment.problems import Problems
from ..experiment.sctp_sides import read_side
from ..experiment.toml_positions import Item
from ..store.run_locations import check_out, new_directory
from .captures import explain_captures
from .events import Progress, no_progress
from .replay_cell import (
    ROLES,
    Guess,
    alternatives,
    known_until_ns,
    repair_factor,
    replay_spec,
    settings_of,
    unsure,
    write_spec,
)
from .run_directory import Run
from .running import run

ROUNDS = 24
"""How often other guesses are tried, at most, until the replay matches."""
MOST_UNSEEN = 16
CAPTURED, CHANGED = "captured", "changed"
_CHANGE = re.compile(r"\s*([ab])\.(\w+)\s*=\s*([^,]+?)\s*")
_NAME = "what-if"


@dataclasses.dataclass(frozen=True)
class Variant:
    """What a cell shows: the factor levels' name, its match with the capture, and its course at each end."""

    repair: str
    settings: str
    cell: str
    match: EventMatch
    courses: Mapping[int, AssociationCourse]

    def as_json(self) -> dict[str, Any]:
        """For WhatIf.as_json."""
        courses = {END_NAMES[end]: course.as_json() for end, course in self.courses.items()}
        return {"repair": self.repair, "cell": self.cell, **courses}


@dataclasses.dataclass(frozen=True)
class WhatIf:
    """An association played again. guess: with which it was; match: of that cell with the capture.

    field: its course, by end. replays: cells with the captured settings that match, one for each time at which the
    network may have come back; changed: the same with the change; empty if nothing matches. failed: why a cell with the
    change did not complete; "": all did. known_until_s: from the association's beginning; what would have been later is
    not known, since nothing shows that the network came back (changed ends there too); None: it came back. spec:
    written for the user.
    """

    explanation: Explanation
    inputs: ReplayInputs
    changes: tuple[dict[str, Any], dict[str, Any]]
    guess: Guess
    match: EventMatch
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
            "replay": [each.as_json() for each in self.replays],
            "changed": [each.as_json() for each in self.changed],
            "spec": str(self.spec),
            "run_dir": str(self.run.path),
        }

    @property
    def answered(self) -> bool:
        """Whether there is a replay that matches, and its cells with the change completed."""
        return self.match.whole and bool(self.replays) and len(self.changed) == len(self.replays) and not self.failed

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
        if any(earlier.startswith(f"{match[2]}=") for earlier in found[end]):
            raise SpecError(f"--what-if: {match[1]}.{match[2]} is there twice; one value of each setting")
        found[end].append(f"{match[2]}={match[3]}")
    result: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    problems = Problems()
    for end in (0, 1):
        if found[end]:
            side = read_side(",".join(found[end]))
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
    out: str | Path | None = None,
    jobs: int | None = None,
    progress: Progress = no_progress,
) -> WhatIf:
    """Play the largest SCTP association of captures again, then with changed settings of its ends.

    paths, merge, packet_filter: as of analyze_captures. out: directory for the spec and the runs (default:
    results/what-if/<time>). Raises SpecError (a change is none), CaptureError (no association that a cell can play),
    and what `run` raises.
    """
    wanted = read_changes(changes)
    explained = explain_captures(paths, merge=merge, packet_filter=packet_filter)
    chosen = next((each for each in explained.connections if each.connection.protocol == "sctp"), None)
    if chosen is None:
        raise CaptureError("--what-if: no SCTP association is in there")
    views = [View(file.capture, connection.row) for file, connection in chosen.views]
    inputs = replay_inputs(views)
    if out is not None:
        check_out(Path(out), resume=False)
    folder = new_directory(Path("results") / _NAME).root if out is None else Path(out)
    field = {end: view_association(view, end) for end, view in inputs.views.items()}
    guess, match, tried = _fit(chosen, inputs, field, folder, jobs, progress)
    spec = replay_spec(inputs, guess)
    factors: dict[str, Any] = {}
    if repair := repair_factor(inputs):
        factors["repair"] = repair
    options = {role: dict(wanted[end]) for end, role in enumerate(ROLES) if wanted[end]}
    factors["settings"] = {
        "title": "settings of the ends",
        "levels": [CAPTURED, CHANGED],
        "level": {CHANGED: {"flow": {"s": options}}},
    }
    written = write_spec(folder / "spec", spec | {"factor": factors}, inputs)
    done = run(
        written, out=folder / "run", jobs=jobs, progress=progress, where={} if match.whole else {"settings": CAPTURED}
    )
    until_ns = known_until_ns(inputs)
    variants = _variants(done, inputs, field, until_ns)
    fitting = tuple(each for each in variants if each.settings == CAPTURED and each.match.whole)
    matching = {each.repair for each in fitting}
    return WhatIf(
        explanation=chosen,
        inputs=inputs,
        changes=wanted,
        guess=guess,
        match=match,
        field={
            end: association_course(association, int(association.row["first_ns"]), int(association.row["last_ns"]))
            for end, association in field.items()
        },
        replays=fitting,
        changed=tuple(each for each in variants if each.settings == CHANGED and each.repair in matching),
        failed=next(
            (
                str(row["reason"] or row["outcome"])
                for row in done.table("cells")
                if row["settings"] == CHANGED and row["outcome"] != Outcome.COMPLETED
            ),
            "",
        ),
        known_until_s=None if until_ns is None else (until_ns - inputs.start_ns) / 1e9,
        tried=tried,
        spec=written,
        run=done,
    )


def view_association(view: View, end: int) -> Association:
    """The association of a view, with the data of one end."""
    return Association(view.capture, view.flow, direction=end)


def _fit(
    explained: Explanation,
    inputs: ReplayInputs,
    field: Mapping[int, Association],
    folder: Path,
    jobs: int | None,
    progress: Progress,
) -> tuple[Guess, EventMatch, int]:
    """The guess whose cell is most like the capture, their match, and how many were tried."""
    best = Guess(settings_of(explained.settings, inputs))
    match: EventMatch | None = None
    pending, tried = [best], list[Guess]()
    gave_up = giving_up(field[inputs.end])
    for number in range(1, ROUNDS + 1):
        fresh = [each for place, each in enumerate(pending) if each not in (*tried, *pending[:place])]
        if not fresh:
            break
        tried += fresh
        before = match
        for guess, found in _matches(inputs, field, fresh, folder / f"fit{number}", jobs, progress):
            if match is None or found.rank > match.rank:
                best, match = guess, found
        if match is None or match.whole:
            break
        lost = _unseen(match, inputs)
        if lost is not None and len(best.unseen) < MOST_UNSEEN and lost not in best.unseen:
            pending = [dataclasses.replace(best, unseen=tuple(sorted((*best.unseen, lost))))]
            if pending[0] not in tried:
                continue
        if match is before and len(pending) > 1:
            break
        pending = list(alternatives([*explained.settings, *_ceilings(explained, field)], best, gave_up))
    if match is None:
        raise CaptureError(f"no cell of the replay ran; see {folder}")
    return best, match, len(tried)


def _ceilings(explained: Explanation, field: Mapping[int, Association]) -> Iterator[Known]:
    """rto_max of an end of which it is not known: at least the longest wait for T3 is tried."""
    there = {known.end for known in explained.settings if known.name == "rto_max"}
    for end, association in field.items():
        sent, again = association.sent, association.again
        times = sent.rows["time_ns"][again.row[again.expiries]]
        waits = [
            int(sent.rows["time_ns"][row] - sent.rows["time_ns"][sent.before[row]])
            for row in again.row[again.expiries].tolist()
        ]
        if end not in there and len(times):
            yield Known(end, "rto_max", max(waits) / 1e9, None, "s", (), ())


def _unseen(match: EventMatch, inputs: ReplayInputs) -> tuple[int, int] | None:
    """A packet that the cell's other end sent and the capture lacks: it may have been lost before it came there. (path,
    when it was sent after the association's start).
    """
    event = match.extra
    if event is None or event.key[0] == inputs.end or inputs.seen_from[1 - inputs.end] or event.path < 0:
        return None
    away = inputs.paths[event.path].round_trip_ns // 2
    return event.path, event.time_ns - away + (away if inputs.end else 0)


def _matches(
    inputs: ReplayInputs,
    field: Mapping[int, Association],
    guesses: Sequence[Guess],
    folder: Path,
    jobs: int | None,
    progress: Progress,
) -> Iterator[tuple[Guess, EventMatch]]:
    """Run a cell of each guess and compare it with the capture."""
    bare = replay_spec(inputs, Guess(({}, {})))
    levels = {}
    for number, guess in enumerate(guesses, 1):
        spec = replay_spec(inputs, guess)
        flow = {key: value for key, value in spec["flow"]["s"].items() if value != bare["flow"]["s"].get(key)}
        event = {name: value for name, value in spec["event"].items() if value != bare["event"].get(name)}
        levels[f"s{number}"] = {"flow": {"s": flow}, "event": event, "duration": spec["duration"]}
    written = write_spec(folder, bare | {"factor": {"tried": {"levels": list(levels), "level": levels}}}, inputs)
    for seed in sorted({guess.seed for guess in guesses}):
        which = [name for name, guess in zip(levels, guesses, strict=True) if guess.seed == seed]
        done = run(
            written, out=folder / f"run{seed}", seed=seed, where=[("tried", name) for name in which], jobs=jobs,
            report=False, progress=progress,
        )  # fmt: skip
        for row in done.table("cells"):
            found = _associations(done, str(row["cell_id"]), inputs)
            if found:
                yield guesses[int(str(row["tried"])[1:]) - 1], compare(field, found, inputs)


def compare(field: Mapping[int, Association], cell: Mapping[int, Association], inputs: ReplayInputs) -> EventMatch:
    """The events at the ends that were captured, in the capture and in a cell."""
    matches = {}
    for end, mine in field.items():
        other = cell[end]
        begin_ns = int(mine.row["first_ns"])
        field_paths = [
            next(row for row in mine.paths if set(mine.path_name(row).split(">")) == set(path.addresses))
            for path in inputs.paths
        ]
        matches[end] = match_events(
            sent_events(mine, field_paths, begin_ns),
            sent_events(other, sorted(other.paths, key=other.path_name), int(other.row["first_ns"])),
            int(mine.row["last_ns"]) - begin_ns,
        )
    return both_ends(matches, inputs.paths[0].round_trip_ns // 2)


def _associations(done: Run, cell: str, inputs: ReplayInputs) -> dict[int, Association]:
    """The association of a cell at the ends of which captures were given; empty if the cell did not run."""
    found: dict[int, Association] = {}
    for end in inputs.views:
        files = sorted((done.path / "cells" / cell / "capture").glob(f"{END_NAMES[end]}-*.pcap*"))
        if not files:
            return {}
        capture = read_captures(files)
        flows = [number for number, row in enumerate(capture.flows) if row["protocol"] == SCTP]
        if not flows:
            return {}
        found[end] = Association(capture, flows[0], direction=end)
    return found


def _variants(done: Run, inputs: ReplayInputs, field: Mapping[int, Association], known_ns: int | None) -> list[Variant]:
    result = []
    for row in done.table("cells"):
        cell = str(row["cell_id"])
        found = _associations(done, cell, inputs) if row["outcome"] == Outcome.COMPLETED else {}
        if not found:
            continue
        courses = {}
        for end, association in found.items():
            begin_ns = int(association.row["first_ns"])
            until_ns = begin_ns + int(field[end].row["last_ns"]) - int(field[end].row["first_ns"])
            if str(row["settings"]) == CHANGED:  # what is late or lost in the capture may come after its end
                until_ns = int(association.row["last_ns"])
                if known_ns is not None:
                    until_ns = min(until_ns, begin_ns + known_ns - inputs.begin_ns)
            courses[end] = association_course(association, begin_ns, until_ns)
        result.append(
            Variant(str(row.get("repair", "")), str(row["settings"]), cell, compare(field, found, inputs), courses)
        )
    return result
