"""Finds settings with which a cell plays a captured association: its packets are those of the capture."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..captures import read_captures
from ..captures.capture import Capture
from ..captures.explanation import Explanation, Known
from ..captures.first_difference import packets_since
from ..captures.inference import timer_bounds
from ..captures.sctp.association import Association
from ..captures.sctp.event_match import EventMatch, both_ends, match_events, sent_events
from ..captures.sctp.replay_inputs import END_NAMES, ReplayInputs, View, closing
from ..captures.sctp.settings import LINUX
from ..captures.sctp.stalls import giving_up
from ..captures.stream import read_stream
from ..core.errors import CaptureError
from ..core.scratch import scratch
from ..core.types import Outcome
from ..core.wire import SCTP
from ..measure.cell_records import read_cell_records
from ..testbed.arguments import receiver_addresses, sender_addresses
from ..testbed.layout import make_layout
from .events import Progress
from .replay_cell import Guess, alternatives, levels_of, ms_of, settings_of, write_spec
from .run_directory import Run
from .running import run

ROUNDS = 24
"""The most rounds of other guesses until the replay matches."""
MOST_UNSEEN = 16
WAITS = 3
"""So many of the shortest waits for T3 are tried as RTOs."""
EARLY_NS = 1_000_000
"""Before a capture's first packet, since a cell's may be so much earlier."""
USUAL = {
    "rto_initial": (0.1, 3.0), "rto_min": (0.1, 1.0), "rto_max": (0.2, 60.0), "sack_delay": (0.02, 0.5),
    "sack_frequency": (1.0, 4.0), "heartbeat_interval": (1.0, 30.0), "association_max_retrans": (2.0, 20.0),
    "failover_threshold": (0.0, 5.0), "init_attempts": (2.0, 8.0), "init_max_timeout": (1.0, 60.0),
    "max_burst": (1.0, 16.0),
}  # fmt: skip
"""The least and the largest that is tried of what a capture leaves open, in s or a count: values of products
(stack-profiles/) and of RFC 9260 16.
"""
OF_SENDER = ("rto_initial", "rto_min", "rto_max", "association_max_retrans", "failover_threshold", "max_burst")
"""failover_threshold also where there is one path: an end sends HEARTBEATs on one that it takes for failed."""
OF_RECEIVER = ("sack_delay", "sack_frequency")
COUNTS = ("sack_frequency", "association_max_retrans", "failover_threshold", "init_attempts", "max_burst")
UNITS = {name: "" if name in COUNTS else "s" for name in USUAL}


def view_association(view: View, end: int) -> Association:
    """The association of a view, with the data of one end."""
    return Association(view.capture, view.flow, direction=end)


def fit(
    explained: Explanation,
    inputs: ReplayInputs,
    field: Mapping[int, Association],
    folder: Path,
    jobs: int | None,
    progress: Progress,
) -> tuple[Guess, EventMatch, list[Guess]]:
    """The guess whose cell is most like the capture, their match, and all that were tried. Raises CaptureError."""
    best = Guess(settings_of(explained.settings, inputs))
    match: EventMatch | None = None
    pending, tried = [best], list[Guess]()
    gave_up = giving_up(field[inputs.end])
    known = [*explained.settings, *ceilings(explained, field)]
    unknown = [*of_waits(known, field), *left_open(known, inputs)]
    for number in range(1, ROUNDS + 1):
        fresh = [each for place, each in enumerate(pending) if each not in (*tried, *pending[:place])]
        if not fresh:
            break
        tried += fresh
        before = match
        for place, cell in play(inputs, fresh, folder / f"fit{number}", jobs, progress):
            found = compare(field, cell, inputs)
            if match is None or found.rank > match.rank:
                best, match = fresh[place], found
        if match is None or match.whole:
            break
        lost = _unseen(match, inputs)
        if lost is not None and len(best.unseen) < MOST_UNSEEN and lost not in best.unseen:
            more = dataclasses.replace(best, unseen=tuple(sorted((*best.unseen, lost))))
            if more not in tried:
                pending = [more]
                continue
        if match is before and len(pending) > 1:
            if not unknown:
                break
            known, unknown = [*known, *unknown], []
        pending = [each for each in alternatives(known, best, gave_up) if accepted(each)]
    if match is None:
        raise CaptureError(f"no cell of the replay ran; see {folder}")
    return best, match, tried


def ceilings(explained: Explanation, field: Mapping[int, Association]) -> Iterator[Known]:
    """rto_max of an end of which it is not known: at least the longest wait for T3 is tried."""
    there = {known.end for known in explained.settings if known.name == "rto_max"}
    for end, association in field.items():
        waits = _waits_ns(association)
        if end not in there and waits:
            yield Known(end, "rto_max", max(waits) / 1e9, None, "s", (), ())


def _waits_ns(association: Association) -> list[int]:
    """How long the data had waited that T3 sent again."""
    sent, again = association.sent, association.again
    rows = again.row[again.expiries]
    waits: list[int] = (sent.rows["time_ns"][rows] - sent.rows["time_ns"][sent.before[rows]]).tolist()
    return waits


def of_waits(known: Sequence[Known], field: Mapping[int, Association]) -> Iterator[Known]:
    """The shortest times that data waited for T3, as the least and the first RTO, where the capture does not bound
    these: a wait may be one of them without showing which.
    """
    bounded = {(each.end, each.name) for each in known if each.high is not None}
    for end, association in field.items():
        for wait_ns in sorted(_waits_ns(association))[:WAITS]:
            low_ns, high_ns = timer_bounds(wait_ns, wait_ns)
            yield from (
                Known(end, name, low_ns / 1e9, high_ns / 1e9, "s", (), ())
                for name in ("rto_min", "rto_initial")
                if (end, name) not in bounded
            )


def left_open(known: Sequence[Known], inputs: ReplayInputs) -> Iterator[Known]:
    """The settings of which the capture shows nothing, though they may matter in it: from the least usual value to the
    largest.
    """
    there = {(each.end, each.name) for each in known if (each.low, each.high) != (None, None)}
    for end in (0, 1):
        for name, (least, most) in USUAL.items():
            if (end, name) not in there and not without_effect(end, name, inputs, known=False):
                yield Known(end, name, least, most, UNITS[name], (), ())


def without_effect(end: int, name: str, inputs: ReplayInputs, known: bool) -> bool:
    """Whether a setting does nothing in this association."""
    if name.startswith("init_"):
        return not known
    if name in OF_SENDER:
        return not inputs.messages[end] and name != "association_max_retrans"
    return name in OF_RECEIVER and not inputs.messages[1 - end]


def accepted(guess: Guess) -> bool:
    """Whether the kernel takes these settings."""
    for settings in guess.settings:
        floor, ceiling = (ms_of(settings.get(key, f"{LINUX[key]} s")) for key in ("rto_min", "rto_max"))
        if floor > ceiling or (settings.get("sack_frequency") == 1 and "sack_delay" in settings):
            return False
    return True


def _unseen(match: EventMatch, inputs: ReplayInputs) -> tuple[int, int] | None:
    """A packet that the cell's other end sent and the capture lacks: it may have been lost before it came there. (path,
    when it was sent after the association's start).
    """
    event = match.extra
    if event is None or event.key[0] == inputs.end or inputs.seen_from[1 - inputs.end] or event.path < 0:
        return None
    away = inputs.paths[event.path].round_trip_ns // 2
    return event.path, event.time_ns - away + inputs.begin_ns - inputs.start_ns


def play(
    inputs: ReplayInputs, guesses: Sequence[Guess], folder: Path, jobs: int | None, progress: Progress
) -> Iterator[tuple[int, dict[int, Association]]]:
    """Run a cell of each guess: its number, and the association at the ends that were captured, of each that
    completed.
    """
    bare, levels = levels_of(inputs, {f"s{number}": guess for number, guess in enumerate(guesses)})
    written = write_spec(folder, bare | {"factor": {"tried": {"levels": list(levels), "level": levels}}}, inputs)
    for seed in sorted({guess.seed for guess in guesses}):
        which = [name for name, guess in zip(levels, guesses, strict=True) if guess.seed == seed]
        done = run(
            written, out=folder / f"run{seed}", seed=seed, where=[("tried", name) for name in which], jobs=jobs,
            report=False, progress=progress,
        )  # fmt: skip
        for row in done.table("cells"):
            found = associations(done, str(row["cell_id"]), inputs) if row["outcome"] == Outcome.COMPLETED else {}
            if found:
                yield int(str(row["tried"])[1:]), found


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
        closed = closing(mine)
        # a cell closes at a alone
        until_ns = closed[0] - 1 if closed is not None and closed[1] == 1 else int(mine.row["last_ns"])
        matches[end] = match_events(
            sent_events(mine, field_paths, begin_ns),
            sent_events(
                other,
                sorted(other.paths, key=other.path_name),
                int(other.row["first_ns"]),
                turned=other.direction != end,
            ),
            until_ns - begin_ns,
        )
    return both_ends(matches, inputs.paths[0].round_trip_ns // 2)


def associations(done: Run, cell_id: str, inputs: ReplayInputs) -> dict[int, Association]:
    """The association of a cell at the ends of which captures were given; empty if the cell did not run. Of one that
    was up before the capture: from then on. Its direction is then the other one if the other end sent first.
    """
    directory = done.directory.cell(cell_id)
    found: dict[int, Association] = {}
    for end in inputs.views:
        files = sorted(directory.capture.glob(f"{END_NAMES[end]}-*.pcap*"))
        if not files:
            return {}
        capture = read_captures(files) if inputs.begun else _from_then_on(done, cell_id, files, end, inputs)
        flows = [number for number, row in enumerate(capture.flows) if row["protocol"] == SCTP]
        if not flows:
            return {}
        turned = not inputs.begun and int(capture.flows[flows[0]]["port"][1]) != inputs.ports[1]
        found[end] = Association(capture, flows[0], direction=end ^ turned)
    return found


def _from_then_on(done: Run, cell_id: str, files: Sequence[Path], end: int, inputs: ReplayInputs) -> Capture:
    """What a cell's end captured since the instant at which the capture begins that is played again."""
    (cell,) = (each for each in done.plan.cells if each.id == cell_id)
    t0_ns = read_cell_records(done.directory.cell(cell_id).init_log).ready.t0_realtime_ns
    since_ns = t0_ns + cell.flows[0].start_ns + inputs.begin_ns - inputs.start_ns - EARLY_NS
    flow, layout = cell.flows[0], make_layout(cell)
    addresses = (sender_addresses, receiver_addresses)[end](flow, layout)
    with scratch("netwarp-later-") as folder:
        later = [packets_since(file, since_ns, folder) for file in files]
        capture = read_stream(later, keep=None, captured_at=addresses[:1]).capture
    flows = capture.flows.copy()
    flows["first_ns"] = since_ns + EARLY_NS  # the times of events count from it
    return dataclasses.replace(capture, flows=flows)
