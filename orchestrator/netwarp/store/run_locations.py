"""Chooses the directory of a run: --out, or a new one under results/<name>/; and checks what may be written there."""

from __future__ import annotations

import fnmatch
import itertools
import os
import time
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import SpecError, StoreError
from ..plan.schedules import undisturbed
from ..plan.types import Plan
from .plan_file import read_plan
from .run_dir import LOCK, UNFINISHED, RunDir

BEGUN = (LOCK, "manifest.json", "outputs.json", "spec", f".*{UNFINISHED}", "cells")
"""The names in a run directory before its plan.json is written."""
NAMED = 3


def choose_directory(out: Path | None, resume: bool, plan: Plan) -> RunDir:
    """--out, or the newest run of this plan when resuming, or a new one under results/. Raises SpecError."""
    base = Path("results") / plan.name
    if out is not None:
        check_out(out, resume)
        return RunDir(out)
    return _newest(base, plan) if resume else new_directory(base)


def refuse_used(out: Path) -> None:
    """Raise SpecError unless a directory is empty, or not there yet."""
    if os.path.lexists(out) and not out.is_dir():
        raise SpecError(f"{out}: is a file; name a new directory")
    if out.is_dir() and any(out.iterdir()):
        raise SpecError(f"{out}: is not empty; name a new directory")


def check_out(out: Path, resume: bool, parts: Iterable[str] = ()) -> None:
    """Raise SpecError if resuming is asked for in a directory that is not a run, or if a run would be written among
    other files.

    parts: names of the runs that a directory of several holds (`agree`); their content is not checked.
    """
    if out.exists() and not out.is_dir():
        raise SpecError(f"{out}: is a file; --out wants a directory")
    holds = sorted(os.listdir(out)) if out.is_dir() else []
    runs = [out, *(out / part for part in parts)]
    if resume and not any((run / name).exists() for run in runs for name in ("plan.json", LOCK)):
        raise SpecError(f"{out}: there is no run to go on with; look at the name, or leave --resume away to start one")
    if any((run / "plan.json").exists() for run in runs):
        return
    strangers = [
        name for name in holds if name not in parts and not any(fnmatch.fnmatch(name, pattern) for pattern in BEGUN)
    ]
    if strangers:
        named = ", ".join(strangers[:NAMED]) + (", ..." if len(strangers) > NAMED else "")
        raise SpecError(f"{out}: holds files that are not netwarp's ({named}); --out wants a new or an empty directory")


def _newest(base: Path, plan: Plan) -> RunDir:
    """The newest run of this plan, otherwise the newest run. Raises SpecError if there is none."""
    runs = [RunDir(path.parent) for path in base.glob("*/plan.json") if not path.parent.is_symlink()]
    runs.sort(key=lambda run: run.plan.stat().st_mtime_ns, reverse=True)
    if not runs:
        raise SpecError(f"{base}: there is no run to resume; leave --resume away, or name it with --out")
    return next((run for run in runs if _is_of(run, plan)), runs[0])


def _is_of(run: RunDir, plan: Plan) -> bool:
    try:
        return undisturbed(read_plan(run).with_outputs(plan)) == plan
    except StoreError:  # of another version, or damaged
        return False


def new_directory(base: Path) -> RunDir:
    """A new directory named after the time in UTC; a number is appended if the name is taken."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    for number in itertools.count(1):
        directory = base / (stamp if number == 1 else f"{stamp}-{number}")
        try:
            directory.mkdir(parents=True)
        except FileExistsError:
            continue
        break
    return RunDir(directory)


def link_latest(directory: RunDir, plan: Plan) -> None:
    """Point results/<name>/latest at this run, which has ended. Does nothing for a run elsewhere."""
    base, root = Path("results") / plan.name, directory.root.resolve()
    if root.parent != base.resolve():
        return
    temporary = base / f".latest.{os.getpid()}"
    temporary.unlink(missing_ok=True)
    temporary.symlink_to(root.name)
    os.replace(temporary, base / "latest")
