"""Collects the files of a cell's machines as if they were of one: on the controller's clock, in one init.ndjson."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ...core.errors import CellError
from ...core.types import Check
from ...store.init_records import End, InitRecord, Memory, Ready, Start, Ticks, Timeline, Waiting, read_init_log
from ...store.ndjson import last, of_kind
from ...store.run_dir import CellDir
from .cell_run import CellRun
from .commands import Played

PCAP_HEADER, RECORD_HEADER = 24, 16
NS = 1_000_000_000
MONOTONIC = ("_t_ns", "monotonic_ns")
"""Ends of the names of the apps' members that are times of CLOCK_MONOTONIC, beside t_ns itself (docs/formats.md)."""
WORST_LAST = ("completed", "unsupported", "timed_out", "failed")
SINGLE = (Start, Ready, Waiting, Ticks, End, Memory)
"""Records of which the whole cell has one; the others are kept of every machine."""


@dataclass(frozen=True, slots=True)
class Clocks:
    """error_ns: by how much times of two machines may be wrong against each other. shown: for environment.json."""

    error_ns: int
    shown: dict[str, object]
    check: Check


def merge(
    directory: CellDir,
    left: Mapping[str, Path],
    t0_realtime_ns: int,
    clock_error_ns: int = 0,
    commands: Sequence[Played] = (),
) -> list[str]:
    """Make init.ndjson, captures, records and console of a cell of what each machine left (name -> a directory).

    Every time is moved to the clock on which T0 is t0_realtime_ns, and to the first machine's CLOCK_MONOTONIC.
    clock_error_ns: what those clocks may be wrong by. commands: of the user's, as they ran here.
    Returns the machines that left no end record.
    """
    records = {name: _records(place / "init.ndjson") for name, place in left.items()}
    ready = {name: last(theirs, Ready) for name, theirs in records.items()}
    reference = next((record for record in ready.values() if record is not None), None)
    for name, place in left.items():
        mine = ready[name]
        shifted = mine is not None and reference is not None
        realtime_ns = t0_realtime_ns - mine.t0_realtime_ns if mine is not None else 0
        monotonic_ns = reference.t0_monotonic_ns - mine.t0_monotonic_ns if mine and reference else 0
        for path in sorted((place / "capture").glob("*.pcap")):
            shift_capture(path, directory.capture / path.name, realtime_ns)
        for path in sorted(p for p in (place / "apps").iterdir() if p.is_file()):
            data = path.read_bytes()
            if path.suffix == ".ndjson" and shifted:
                data = b"".join(_shift_record(line, monotonic_ns) for line in data.splitlines(keepends=True))
            (directory.apps / path.name).write_bytes(data)
    _write_console(directory, left)
    if reference is not None:
        took_ns = [each.ended_ns - each.began_ns for each in commands] + [_event_ns(each) for each in records.values()]
        event_error_ns = max(took_ns, default=0)
        reference = replace(
            reference, t0_realtime_ns=t0_realtime_ns, clock_error_ns=clock_error_ns, event_error_ns=event_error_ns
        )
    merged = _merge_records(records, reference, [_command_record(each) for each in commands])
    directory.init_log.write_bytes(msgspec.json.Encoder().encode_lines(merged))
    return [name for name, theirs in records.items() if last(theirs, End) is None]


def _event_ns(records: Sequence[InitRecord]) -> int:
    """The longest that an event took, from the begin of its first step to that of its last: what follows "up" waits for
    the card.
    """
    steps: dict[int, list[int]] = {}
    for step in of_kind(records, Timeline):
        if step.t_ns is not None and step.verb not in ("spawn", "dump"):
            steps.setdefault(step.at_ns, []).append(step.t_ns)
    return max((max(times) - min(times) for times in steps.values()), default=0)


def shift_capture(source: Path, to: Path, shift_ns: int) -> None:
    """Copy a nanosecond pcap with every time moved. Raises CellError: one cannot be written then."""
    data = bytearray(source.read_bytes())
    at = PCAP_HEADER
    while shift_ns and at + RECORD_HEADER <= len(data):
        seconds, nanoseconds, captured = struct.unpack_from("=III", data, at)
        moved_s, moved_ns = divmod(seconds * NS + nanoseconds + shift_ns, NS)
        if not 0 <= moved_s < 1 << 32:
            raise CellError(f"{source.name}: has times that are none of our clock")
        struct.pack_into("=II", data, at, moved_s, moved_ns)
        at += RECORD_HEADER + captured
    to.write_bytes(data)


def clocks_of(ran: CellRun, most_ns: int) -> Clocks:
    """Of each machine the offsets (and bounds) before and after, and what the cell must pass.

    All times are corrected by the offset of before: at the end they are wrong by the drift and the later bound. The
    times of two machines may be wrong against each other by the errors of both.
    """
    errors: dict[str, int] = {}
    shown: dict[str, object] = {}
    for name, pairs in ran.offsets.items():
        (before, bound), (after, bound_after) = pairs[0], pairs[-1]
        drift = after - before
        errors[name] = max(bound, abs(drift) + bound_after)
        shown[name] = {"offset_ns": before, "bound_ns": bound, "drift_ns": drift, "drift_bound_ns": bound + bound_after}
    worst = sum(sorted(errors.values())[-2:])
    text = f"times of two machines may be wrong against each other by {worst} ns, at most {most_ns}"
    check = Check("clocks of the machines", worst <= most_ns, text)
    return Clocks(worst, {"clock_error_ns": worst, "clocks": shown}, check)


def _command_record(played: Played) -> Timeline:
    return Timeline(
        step=None, verb="command", at_ns=played.at_ns, t_ns=played.began_ns, link=played.link, action=played.action,
        ended_ns=played.ended_ns,
    )  # fmt: skip


def _records(path: Path) -> list[InitRecord]:
    return read_init_log(path) if path.exists() else []


def _shift_record(line: bytes, shift_ns: int) -> bytes:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return line
    if not isinstance(record, dict):
        return line
    for key, value in record.items():
        if (key == "t_ns" or key.endswith(MONOTONIC)) and isinstance(value, int):
            record[key] = value + shift_ns
    return json.dumps(record).encode() + b"\n"


def _write_console(directory: CellDir, left: Mapping[str, Path]) -> None:
    with directory.console.open("w") as console:
        for name, place in left.items():
            for path in (place / "console.txt", place / "log.txt"):
                lines = path.read_text(errors="replace").splitlines() if path.exists() else []
                console.writelines(f"{name}: {line}\n" for line in lines if line and not line.startswith("@"))


def _merge_records(
    records: Mapping[str, list[InitRecord]], ready: Ready | None, commands: Sequence[Timeline]
) -> list[InitRecord]:
    merged: list[InitRecord] = []
    merged += [start for theirs in records.values() for start in of_kind(theirs, Start)][:1]
    for name, theirs in records.items():
        merged += [replace(record, on=name) for record in theirs if not isinstance(record, SINGLE)]
    merged += [ready] if ready is not None else []
    merged += commands
    ticks = [record for theirs in records.values() for record in of_kind(theirs, Ticks)]
    if ticks:  # of the machine that was late most often: the others do not make up for it
        latest = max(ticks, key=lambda record: record.late / max(1, record.ticks))
        merged.append(replace(latest, worst_ns=max(record.worst_ns for record in ticks)))
    ends = [(name, end) for name, theirs in records.items() if (end := last(theirs, End)) is not None]
    # of machines that were ended because another one had failed there is none
    if ends and (len(ends) == len(records) or any(end.reason != "completed" for _, end in ends)):
        name, worst = max(ends, key=lambda pair: WORST_LAST.index(pair[1].reason))
        if worst.reason != "completed":
            worst = replace(worst, message=f"machine {name}: {worst.message}")
        merged.append(replace(worst, t_ns=max(end.t_ns or 0 for _, end in ends)))
    return merged
