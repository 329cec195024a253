"""The engine: everything the command line can do, as functions with typed keyword arguments.

They report progress to a callback (events.py), return typed results, and never print, parse arguments or exit.
"""

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
