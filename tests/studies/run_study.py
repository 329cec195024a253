"""Runs one study and says what came of it: refused in a sentence, or COMPLETED with numbers that hold, or wrong."""

from __future__ import annotations

import hashlib
import re
import shutil
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import netwarp
from netwarp.core.executables import find_executable
from netwarp.experiment.toml_writer import toml_text

from .beside import again
from .oracle.judge import Judged, judge_run
from .oracle.with_tshark import differences

OWN_PROGRAM = re.compile(r"tool\d+\.(sender|receiver) (ended with status|died of)")
"""A program of the user's (ping, iperf3) that ends with an error where an event took its network away: it decides by
itself what is an error, and no message of it is parsed.
"""
SHRINK_S = 60
"""For making a study small that shows something wrong."""
UNSUPPORTED_BY_DESIGN = re.compile(r"DualPI2|dualpi2|sch_dualpi2|6\.17|qemu")
"""Reasons of UNSUPPORTED cells that docs/spec.md states: what this kernel does not have."""


@dataclass
class Verdict:
    """What came of a study. wrong: (a mark that is equal where it is the same again, a sentence)."""

    number: int
    refused: str = ""
    unsupported: str = ""
    failed: int = 0
    """Cells that the network's own doing failed."""
    cells: int = 0
    wrong: list[tuple[str, str]] = field(default_factory=list)
    judged: Judged = field(default_factory=Judged)
    twice: bool = False


def tried(
    experiment: netwarp.Experiment, number: int, place: Path, *, twice: bool = False, report: bool = False
) -> Verdict:
    """Plan it, run it, hold its numbers; twice: run it again elsewhere and compare every byte."""
    verdict = Verdict(number)
    shutil.rmtree(place, ignore_errors=True)
    try:
        experiment.plan()
    except netwarp.SpecError as error:
        verdict.refused = str(error)
        return verdict
    except Exception as error:  # noqa: BLE001  (any other end of a plan is what is looked for)
        _crashed(verdict, "plan", error)
        return verdict
    try:
        run = experiment.run(out=place / "once", backend="virtual", jobs=1, report=report)
    except netwarp.BackendUnavailable:
        raise
    except Exception as error:  # noqa: BLE001
        _crashed(verdict, "run", error)
        return verdict
    disturbed = "[event." in experiment.to_toml()
    for row in run.table("cells"):
        verdict.cells += 1
        if row["outcome"] == "UNSUPPORTED" and UNSUPPORTED_BY_DESIGN.search(str(row["reason"])):
            verdict.unsupported = str(row["reason"])
        elif row["outcome"] == "FAILED" and OWN_PROGRAM.match(str(row["reason"])) and disturbed:
            verdict.failed += 1
        elif row["outcome"] != "COMPLETED":
            reason = f"{row['outcome']}: {row['reason']}"
            verdict.wrong.append((_mark(reason), f"{row['cell_id']} {reason}"))
    try:
        verdict.judged = judge_run(place / "once")
    except Exception as error:  # noqa: BLE001
        _crashed(verdict, "oracle", error)
    for difference in verdict.judged.differences:
        metric = re.sub(r"^\S+ (?=\S)", "", difference.metric) if difference.flow == "kernel" else difference.metric
        verdict.wrong.append((f"{'kernel' if difference.flow == 'kernel' else 'number'} {metric}", str(difference)))
    if report and find_executable("tshark"):
        verdict.wrong += [("tshark", text) for text in differences(place / "once")]
    if twice:
        verdict.twice = True
        experiment.run(out=place / "twice", backend="virtual", jobs=1, report=False)
        if digests(place / "once") != digests(place / "twice"):
            verdict.wrong.append(("twice", "the same plan gave other captures or tables"))
    return verdict


def _crashed(verdict: Verdict, what: str, error: Exception) -> None:
    where = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{what}: {type(error).__name__}: {str(error)[:300]} ({Path(where.filename).name}:{where.lineno})"
    verdict.wrong.append((_mark(f"{what} {type(error).__name__} {Path(where.filename).name}"), said))


def _mark(text: str) -> str:
    """The text without its numbers and names of flows."""
    text = re.sub(r"\b(?:f|x|many|web|tool)\d+(?:\.back)?\b", "FLOW", text.split("; ")[0])
    return re.sub(r"\d[\d.]*", "N", text)[:160]


def digests(run: Path) -> dict[str, str]:
    """Of every capture and table of a run."""
    files = [*run.glob("cells/*/capture/*"), *run.glob("tables/*.csv")]
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def smaller(
    document: Mapping[str, Any], shows: Callable[[dict[str, Any]], bool], seconds: float = SHRINK_S
) -> dict[str, Any]:
    """The document with as much left out as goes in that time while it still shows what it showed."""
    until = time.monotonic() + seconds
    now: dict[str, Any] = dict(document)
    changed = True
    while changed:
        changed = False
        for path in sorted(_paths(now), key=len):
            candidate = _without(now, path)
            if time.monotonic() > until:
                return now
            if candidate is not None and shows(candidate):
                now, changed = candidate, True
    return now


def smallest(document: Mapping[str, Any], mark: str, place: Path) -> str:
    """The smallest study that shows a mark, as TOML."""

    def shows(candidate: dict[str, Any]) -> bool:
        try:
            experiment = again(candidate)
        except netwarp.SpecError:
            return False
        found = tried(experiment, 0, place, twice=mark == "twice", report=mark == "tshark")
        return any(each == mark for each, _ in found.wrong)

    return f"# {mark}\n{toml_text(smaller(document, shows))}"


KEPT = ("format", "name", "duration")


def _paths(table: Mapping[str, Any], before: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in table.items():
        if not before and key in KEPT:
            continue
        found.append((*before, key))
        if isinstance(value, Mapping):
            found += _paths(value, (*before, key))
    return found


def _without(document: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any] | None:
    copy = dict(document)
    if len(path) == 1:
        if path[0] not in copy:
            return None
        del copy[path[0]]
        return copy
    inner = copy.get(path[0])
    if not isinstance(inner, Mapping):
        return None
    smaller_inner = _without(inner, path[1:])
    if smaller_inner is None:
        return None
    copy[path[0]] = smaller_inner
    if not smaller_inner:
        del copy[path[0]]
    return copy
