"""The engine: everything the command line can do, as functions with typed keyword arguments.

They report progress to a callback (events.py), return typed results, and never print, parse arguments or exit.
A name is imported when it is first used: who looks into a capture needs no sandbox.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .agreement import BackendAgreement, agree_backends, agree_runs
    from .analysis import Analyzed, analyze, report
    from .calibration import Calibrated, calibrate
    from .captures import AnalyzedCaptures, analyze_captures
    from .cleaning import Freed, remove_captures, remove_derived
    from .comparison import RunComparison, compare_runs
    from .events import CellFinished, CellsFinished, CellsStarted, CellTime, Event, Notice, Progress
    from .export import export_captures
    from .planning import load_experiment, plan_experiment
    from .run_directory import Run, open_run
    from .running import RunInterrupted, RunOutOfSpace, resume, run

_DEFINED_IN = {
    "agreement": ("BackendAgreement", "agree_backends", "agree_runs"),
    "analysis": ("Analyzed", "analyze", "report"),
    "calibration": ("Calibrated", "calibrate"),
    "captures": ("AnalyzedCaptures", "analyze_captures"),
    "cleaning": ("Freed", "remove_captures", "remove_derived"),
    "comparison": ("RunComparison", "compare_runs"),
    "events": ("CellFinished", "CellsFinished", "CellsStarted", "CellTime", "Event", "Notice", "Progress"),
    "export": ("export_captures",),
    "planning": ("load_experiment", "plan_experiment"),
    "run_directory": ("Run", "open_run"),
    "running": ("RunInterrupted", "RunOutOfSpace", "resume", "run"),
}
_MODULE = {name: module for module, names in _DEFINED_IN.items() for name in names}

__all__ = [
    "Analyzed",
    "AnalyzedCaptures",
    "BackendAgreement",
    "Calibrated",
    "CellFinished",
    "CellTime",
    "CellsFinished",
    "CellsStarted",
    "Event",
    "Freed",
    "Notice",
    "Progress",
    "Run",
    "RunComparison",
    "RunInterrupted",
    "RunOutOfSpace",
    "agree_backends",
    "agree_runs",
    "analyze",
    "analyze_captures",
    "calibrate",
    "compare_runs",
    "export_captures",
    "load_experiment",
    "open_run",
    "plan_experiment",
    "remove_captures",
    "remove_derived",
    "report",
    "resume",
    "run",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name, from the module that defines it."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
