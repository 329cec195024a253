"""A script on all its versions of IP: played, judged at several tolerances from the same recording, kept."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ...core.errors import CellError
from ...sandbox.children import Children
from ...store.console import Splat, splats
from ..guest import in_words, last_line
from ..tap import Verdict
from .addresses import Version
from .compile import START_NS, compile_script, versions_of
from .guest import Bench, play, shell_output
from .judge import Judge, Tolerance
from .parser import parse_script, read_text
from .record import Record
from .script import Script, ScriptError, Unsupported
from .timeline import timeline, write_capture

MS_US = 1000
"""The tolerance that counts are given for, beside 0 and each script's own."""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A script on one version of IP, at the tolerance asked for.

    reason: why it failed or was skipped, with the packets; needs_us: the tolerance at which all its times are right,
    None if it did not run. own, within_1ms, exact: whether it holds at its own tolerance, at 1 ms, at 0.
    splats: the kernel's reports of its own faults, with any of which the case has failed.
    """

    version: Version
    verdict: Verdict
    reason: str = ""
    needs_us: int | None = None
    own: bool = False
    within_1ms: bool = False
    exact: bool = False
    virtual_s: float | None = None
    wall_s: float = 0.0
    timeline: str = ""
    splats: tuple[Splat, ...] = ()


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """A script on all its versions. reason: why none was played, ""."""

    name: str
    cases: tuple[CaseResult, ...]
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """fail if a case failed; skip if all were skipped."""
        if any(case.verdict == "fail" for case in self.cases):
            return "fail"
        return "skip" if all(case.verdict == "skip" for case in self.cases) else "pass"


def play_script(
    bench: Bench, file: Path, versions: tuple[Version, ...], place: Path, guests: Children, *,
    files: Sequence[Path] = (), tolerance: Tolerance | None = None,
) -> ScriptResult:  # fmt: skip
    """Play a script. place: a new directory, with one of each case in it. files: those that its commands run.
    tolerance: None: the script's own.

    What is no script has failed; a construct that this player has no means for is a skip. Raises CellError if the run
    was stopped.
    """
    try:
        script = parse_script(read_text(file))
        wanted = versions_of(script, versions)
    except Unsupported as error:
        return ScriptResult(file.name, tuple(CaseResult(one, "skip", str(error)) for one in versions), str(error))
    except ScriptError as error:
        return ScriptResult(file.name, tuple(CaseResult(one, "fail", str(error)) for one in versions), str(error))
    cases = tuple(_case(bench, script, one, place / one, guests, files, tolerance) for one in wanted)
    return ScriptResult(file.name, cases)


def _case(
    bench: Bench,
    script: Script,
    version: Version,
    place: Path,
    guests: Children,
    files: Sequence[Path],
    tolerance: Tolerance | None,
) -> CaseResult:
    try:
        program = compile_script(script, version)
    except Unsupported as error:
        return CaseResult(version, "skip", str(error))
    except ScriptError as error:
        return CaseResult(version, "fail", str(error))
    try:
        record, wall_s = play(bench, program, place, guests, files)
    except CellError as error:
        if guests.stopped:
            raise
        faults = splats(place / "console.txt")
        why = in_words(faults) if faults else str(error)
        return CaseResult(version, "fail", f"could not be played: {why}", splats=faults)
    if faults := splats(place / "console.txt"):
        return CaseResult(version, "fail", in_words(faults), wall_s=wall_s, splats=faults)
    judge = Judge(program, record)
    write_capture(record, place / "tun0.pcap")
    text = timeline(program, judge)
    (place / "timeline.txt").write_text(text)
    own = Tolerance(program.tolerance_us, program.tolerance_percent)
    failure = judge.first_failure(tolerance or own)
    if failure is not None and (lack := _lack(record, shell_output(place))):
        return CaseResult(version, "skip", lack, wall_s=wall_s)
    if failure is not None and not record.ended and record.stopped is None and not record.failed:
        failure = replace(failure, reason=f"{failure.reason}; the guest's last words: {last_line(place)}")
    times = [begun.t_ns for begun in record.begun.values()]
    times += [returned.t_ns for returned in record.returned.values()]
    times += [packet.t_ns for packet in record.packets if packet.event >= 0]
    last_ns = max(times, default=START_NS)
    return CaseResult(
        version, "pass" if failure is None else "fail", "" if failure is None else failure.text(),
        judge.needed_us() if record.ended else None, judge.first_failure(own) is None,
        judge.first_failure(Tolerance(MS_US)) is None, judge.first_failure(Tolerance(0)) is None,
        (last_ns - START_NS) / 1e9, wall_s, text,
    )  # fmt: skip


def _lack(record: Record, output: str) -> str:
    """What the kernel or this machine has not and the script needs, "" if it is something else that failed."""
    if "tun0" in record.failed.get(-1, ""):
        return f"this kernel has no TUN device ({record.failed[-1]})"
    if not any(status for _, _, status in record.shells):
        return ""
    for line in output.splitlines():
        if line.endswith((": command not found", ": not found")):
            return f"this machine has no {line.rsplit(':', 2)[-2].strip()}"
        if (setting := re.search(r"cannot stat (/proc/sys/\S+): No such file", line)) is not None:
            return f"this kernel has no {setting[1]}"
        if (kind := re.search(r"Specified qdisc kind is unknown|Unknown qdisc .*", line)) is not None:
            return f"this kernel lacks a qdisc ({kind[0]})"
    return ""
