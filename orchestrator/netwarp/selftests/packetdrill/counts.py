"""Counts over many scripts: how many hold at which tolerance, and the table of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...core.errors import SpecError
from ...core.outside_text import markdown, markdown_code
from ...store.run_dir import write_atomic
from .cases import CaseResult, ScriptResult

FLAKY = (
    "tcp_blocking_blocking-connect", "tcp_blocking_blocking-read", "tcp_eor_no-coalesce-retrans",
    "tcp_fast_recovery_prr-ss.*", "tcp_sack_sack-route-refresh-ip-tos", "tcp_slow_start_slow-start-after-win-update",
    "tcp_timestamping.*", "tcp_user_timeout_user-timeout-probe", "tcp_zerocopy_cl.*", "tcp_zerocopy_epoll_.*",
    "tcp_tcp_info_tcp-info-.*-limited",
)  # fmt: skip
"""The patterns of scripts whose failures the kernel's runner forgave on slow machines, until 5ef7fdf52c0f (August 2025)
forgave all there: regular expressions of names.
"""
BEGIN, END = "<!-- packetdrill -->", "<!-- /packetdrill -->"
_HEAD = "| kernel | scripts | of them | cases | pass at their own tolerance | at 1 ms | at 0 | fail | skip |"
_RULE = "| --- | --- | --- | --- | --- | --- | --- | --- | --- |"


@dataclass(frozen=True, slots=True)
class Counts:
    """Of scripts and their cases. own, within_1ms, exact: cases that hold at these tolerances."""

    scripts: int
    cases: int
    own: int
    within_1ms: int
    exact: int
    failed: int
    skipped: int


def count(results: Iterable[ScriptResult]) -> Counts:
    """The counts of some scripts."""
    scripts = list(results)
    cases: list[CaseResult] = [case for script in scripts for case in script.cases]
    return Counts(
        len(scripts), len(cases), sum(case.own for case in cases), sum(case.within_1ms for case in cases),
        sum(case.exact for case in cases), sum(case.verdict == "fail" for case in cases),
        sum(case.verdict == "skip" for case in cases),
    )  # fmt: skip


def group_of(name: str) -> str:
    """The subject of a script: the first word behind `tcp_` of its name."""
    match = re.match(r"tcp_(accecn|fast_recovery|fastopen_server|limited_transmit|slow_start|tcp_info|ts_recent|"
                     r"user_timeout|syscall_bad_arg|urg_ptr|[a-z0-9]+)", name)  # fmt: skip
    return f"tcp_{match[1]}" if match is not None else name.removesuffix(".pkt")


def rows(results: Sequence[ScriptResult], release: str) -> dict[str, str]:
    """Rows of the table by their first two cells: all scripts of a kernel, each group of more than one, the flaky."""
    groups: dict[str, list[ScriptResult]] = {"all": list(results)}
    for result in results:
        groups.setdefault(f"{group_of(result.name)}*", []).append(result)
    shown = {name: of for name, of in groups.items() if name == "all" or len(of) > 2}
    rest = [result for name, of in groups.items() if name not in shown for result in of]
    if rest:
        shown["the others"] = rest
    for pattern in FLAKY:
        if found := [one for one in results if re.match(pattern, one.name)]:
            shown[f"flaky: `{pattern}`"] = found
    lines = {}
    for name, of in shown.items():
        sums = count(of)
        named = name if name.startswith(("all", "the", "flaky")) else markdown_code(name)
        cells = [release, named, str(sums.scripts), str(sums.cases), *map(str, (sums.own, sums.within_1ms, sums.exact))]
        lines[f"{release} {name}"] = f"| {' | '.join([*cells, str(sums.failed), str(sums.skipped)])} |"
    for result in results:
        if result.verdict != "pass":
            reason = next((case.reason for case in result.cases if case.reason), result.reason).split("\n")[0]
            fields = (release, markdown_code(result.name), "1", str(len(result.cases)), markdown(reason[:90]))
            line = f"| {' | '.join(fields)} | | | | |"
            lines[f"{release} {result.name}"] = line
    return lines


def update_table(page: Path, new: dict[str, str], release: str) -> None:
    """Put a kernel's rows between the marks of a page, where they replace those of the same kernel; the latest kernel
    is first. Raises SpecError if the page has no marks.
    """
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SpecError(f"{page}: has no {BEGIN} ... {END} for the table to stand in")
    old = text[text.index(BEGIN) : text.index(END)]
    kept = [line for line in old.splitlines() if line.startswith("| ") and not line.startswith(("| kernel", "| ---"))]
    lines = [line for line in kept if not line.startswith(f"| {release} |")] + list(new.values())
    lines.sort(key=_release, reverse=True)
    block = "\n".join([BEGIN, _HEAD, _RULE, *lines, END])
    write_atomic(page, text.replace(old + END, block).encode())


def _release(row: str) -> list[int]:
    """The numbers of a row's kernel, to sort by."""
    return [int(number) for number in re.findall(r"\d+", row.split("|")[1])]
