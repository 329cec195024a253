"""Results in the form that NIPA, the CI of Linux' network developers, collects (github.com/linux-netdev/nipa)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..core.errors import SpecError
from .guest import Result
from .tap import Case

_TARGETS = {"packetdrill": "net/packetdrill"}
"""Collections whose folder in the kernel's source has another name."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What a result file says of itself. branch: of branches.json, as executor what the manifest must say too; link:
    where people find the folder of --out.
    """

    executor: str
    branch: str
    link: str


def namify(text: str) -> str:
    """A name as NIPA writes it: every run of other characters than letters and digits is one `-`."""
    return re.sub(r"[^0-9a-zA-Z]+", "-", text).strip("-")


def result_file(results: Sequence[Result], origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """The content of a result file. A failed test is not run again (`retry` is left out): in virtual time it would be
    the same run.
    """
    tests = [_entry(number, result, origin) for number, result in enumerate(results, 1)]
    return _file(tests, origin, started, ended)


def build_failure(why: str, origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """That of a kernel that does not build: one test, `build`."""
    entry: dict[str, object] = {"test": "build", "group": "build", "result": "fail", "link": origin.link, "reason": why}
    return _file([entry], origin, started, ended)


def write_result_file(file: Path, content: dict[str, object]) -> None:
    """Put it into its place at once: a collector that reads meanwhile finds all of it, or none. Raises SpecError."""
    work = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        work.write_text(json.dumps(content, indent=1) + "\n")
        work.rename(file)
    except OSError as error:
        raise SpecError(f"--nipa {file}: {error.strerror}") from error


def _file(tests: list[dict[str, object]], origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    return {
        "executor": origin.executor, "branch": origin.branch, "start": str(started), "end": str(ended),
        "link": origin.link, "results": tests,
    }  # fmt: skip


def _entry(number: int, result: Result, origin: Origin) -> dict[str, object]:
    entry: dict[str, object] = {
        "test": namify(result.test.name.partition(":")[2]),
        "group": f"selftests-{namify(_TARGETS.get(result.test.collection, result.test.collection))}",
        "result": result.verdict,
        "link": f"{origin.link.rstrip('/')}/{result.test.folder(number)}",
        "time": round(result.wall_s, 1),
    }
    if result.cases:
        entry["results"] = [_case(case) for case in result.cases]
    return entry


def _case(case: Case) -> dict[str, object]:
    return {"test": namify(case.name), "result": case.verdict}
