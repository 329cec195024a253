"""Results in the form that NIPA, the CI of Linux' network developers, collects (github.com/linux-netdev/nipa)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ..core.errors import SpecError, StoreError
from ..store.run_dir import write_atomic
from .guest import Result

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


@dataclass(frozen=True, slots=True)
class Entry:
    """A test of a result file. place: below the origin's link; cases: (name, result) of what is inside it; crashes: the
    fingerprint of each report of the kernel about itself.
    """

    test: str
    group: str
    result: str
    place: str
    cases: tuple[tuple[str, str], ...] = ()
    time_s: float | None = None
    crashes: tuple[str, ...] = ()


def namify(text: str) -> str:
    """A name as NIPA writes it: every run of other characters than letters and digits is one `-`."""
    return re.sub(r"[^0-9a-zA-Z]+", "-", text).strip("-")


def result_file(results: Sequence[Result], origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """The content of a result file. A failed test is not run again (`retry` is left out): in virtual time it would be
    the same run.
    """
    entries = [
        Entry(
            result.test.name.partition(":")[2], group_of(result.test.collection), result.verdict,
            result.test.folder(number), tuple((case.name, case.verdict) for case in result.cases),
            round(result.wall_s, 1), tuple(splat.fingerprint or namify(splat.line) for splat in result.splats),
        )
        for number, result in enumerate(results, 1)
    ]  # fmt: skip
    return entries_file(entries, origin, started, ended)


def entries_file(entries: Sequence[Entry], origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """The content of a result file of these tests."""
    return _file([_entry(entry, origin) for entry in entries], origin, started, ended)


def group_of(collection: str) -> str:
    """NIPA's group of a collection of selftests."""
    return f"selftests-{namify(_TARGETS.get(collection, collection))}"


def build_failure(why: str, origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    """That of a kernel that does not build: one test, `build`."""
    entry: dict[str, object] = {"test": "build", "group": "build", "result": "fail", "link": origin.link, "reason": why}
    return _file([entry], origin, started, ended)


def write_result_file(file: Path, content: dict[str, object]) -> None:
    """Put it into its place at once: a collector that reads meanwhile finds all of it, or none. Raises SpecError."""
    try:
        write_atomic(file, (json.dumps(content, indent=1) + "\n").encode())
    except StoreError as error:  # whose status is that of a failed test
        raise SpecError(f"--nipa {error}") from error


def _file(tests: list[dict[str, object]], origin: Origin, started: datetime, ended: datetime) -> dict[str, object]:
    return {
        "executor": origin.executor, "branch": origin.branch, "start": str(started), "end": str(ended),
        "link": origin.link, "results": tests,
    }  # fmt: skip


def _entry(entry: Entry, origin: Origin) -> dict[str, object]:
    said: dict[str, object] = {
        "test": namify(entry.test), "group": entry.group, "result": entry.result,
        "link": f"{origin.link.rstrip('/')}/{entry.place}".rstrip("/"),
    }  # fmt: skip
    if entry.time_s is not None:
        said["time"] = entry.time_s
    if entry.crashes:
        said["crashes"] = list(entry.crashes)
    if entry.cases:
        said["results"] = [{"test": namify(name), "result": result} for name, result in entry.cases]
    return said
