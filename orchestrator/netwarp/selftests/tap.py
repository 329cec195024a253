"""KTAP, the kernel's form of test results (Documentation/dev-tools/ktap.rst): reads a test's own lines, writes ours."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

SKIPPED = 4
"""A test's exit status (kselftest.h: KSFT_SKIP)."""
Verdict = Literal["pass", "fail", "skip"]
_DIRECTIVES = ("skip", "xfail")
_RESULT = re.compile(r"^(?:#\s*)*\s*(not ok|ok) \d+\b\s*-?\s*([^#]*)(?:#\s*(\w+)\s*(.*))?$")


@dataclass(frozen=True, slots=True)
class Case:
    """A result that a test prints itself. note: the text after its directive."""

    name: str
    verdict: Verdict
    note: str = ""


def cases(output: str) -> tuple[Case, ...]:
    """The results in a test's output, in order; a line that begins with `# ` counts too (a test within a test)."""
    results = []
    for line in output.splitlines():
        result = _RESULT.match(line)
        if result is None:
            continue
        directive = (result[3] or "").lower()
        verdict: Verdict = "skip" if directive == "skip" else "pass" if result[1] == "ok" else "fail"
        if verdict == "fail" and directive == "xfail":
            verdict = "pass"
        results.append(Case(result[2].strip(), verdict, (result[4] or "").strip() if directive in _DIRECTIVES else ""))
    return tuple(results)


def verdict_of(status: int) -> Verdict:
    """The meaning of a test's exit status."""
    return "pass" if status == 0 else "skip" if status == SKIPPED else "fail"


def head(count: int) -> list[str]:
    """The first lines of a report of so many tests."""
    return ["KTAP version 1", f"1..{count}"]


def report(number: int, name: str, verdict: Verdict, note: str, output: Iterable[str] = ()) -> Iterator[str]:
    """The lines of one test: its output as diagnostics, then the result."""
    yield f"# selftests: {name}"
    for line in output:
        yield f"# {line}"
    directive = f" # SKIP {note}" if verdict == "skip" else f" # {note}" if note else ""
    yield f"{'not ok' if verdict == 'fail' else 'ok'} {number} selftests: {name}{directive}"


def not_passed(results: Iterable[tuple[str, Verdict, str]]) -> Iterator[str]:
    """Diagnostics after the last result: each test that failed or was skipped, and why, where many others passed.
    results: name, verdict and note of each.
    """
    words = {"fail": "failed", "skip": "skipped"}
    for name, verdict, note in results:
        if verdict != "pass":
            yield f"# {words[verdict]}: {name}: {note.partition(chr(10))[0] or 'it gives no reason'}"


def counted(cases: Sequence[Case]) -> dict[Verdict, int]:
    """The number of each verdict."""
    names: tuple[Verdict, ...] = ("pass", "fail", "skip")
    return {name: sum(case.verdict == name for case in cases) for name in names}
