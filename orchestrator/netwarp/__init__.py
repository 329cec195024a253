"""netwarp: transport-protocol experiments on unmodified Linux kernels.

    import netwarp

    experiment = netwarp.load_experiment("choi2009")     # or the path of a spec; checked
    netwarp.plan_experiment(experiment).cells            # what would run
    run = netwarp.run(experiment, where={"outage": "10 s"}, out="results/mine")
    run.table("measurements")                            # rows: dicts of text and numbers
    netwarp.load_run(run.path).metric("goodput_bit_s")   # a polars data frame (docs/notebook.md)
    netwarp.analyze(run.path)                            # derived files and tables again
    netwarp.report(run.path)
    netwarp.analyze_captures(["a.pcap"]).files              # captures of any origin

`run`, `calibrate` and `agree_backends` take `progress`, a function that is called with an `Event` each.
Nothing prints or exits; every error is a NetwarpError. A name is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .core.version import __version__

if TYPE_CHECKING:
    from .core.errors import (
        BackendUnavailable,
        CaptureError,
        CellError,
        DiskFull,
        KernelError,
        NetwarpError,
        SpecError,
        StoreError,
    )
    from .engine.analysis import Analyzed, analyze, report
    from .engine.calibration import Calibrated, calibrate
    from .engine.captures import AnalyzedCaptures, ExplainedCaptures, analyze_captures, explain_captures
    from .engine.claim_sources import ClaimsBySources, claims_by_sources
    from .engine.cleaning import Freed, remove_captures, remove_derived, unpack
    from .engine.compare import agree_runs, compare_exactly, compare_runs
    from .engine.compare_packets import compare_packets
    from .engine.data_frames import load_run
    from .engine.events import CellFinished, CellsFinished, CellsStarted, CellTime, Event, Notice, Progress
    from .engine.experiment import Experiment
    from .engine.export import export_captures, export_har
    from .engine.merging import merge_runs
    from .engine.planning import plan_experiment
    from .engine.run_again import agree_backends, replay, verify
    from .engine.run_directory import Run, open_run
    from .engine.running import RunInterrupted, RunOutOfSpace, run
    from .engine.sctp_advice import SctpAdvice, advise_sctp
    from .engine.sctp_bounds import SctpBudget
    from .engine.sctp_check import SctpCheck, SctpNetwork, check_sctp
    from .engine.search import SearchResult, search
    from .engine.what_if import WhatIf, what_if
    from .experiment.study import load_experiment
    from .results.run_comparison import RunComparison

_DEFINED_IN = {
    "core.errors": (
        "BackendUnavailable", "CaptureError", "CellError", "DiskFull", "KernelError", "NetwarpError", "SpecError",
        "StoreError",
    ),
    "engine.analysis": ("Analyzed", "analyze", "report"),
    "engine.calibration": ("Calibrated", "calibrate"),
    "engine.captures": ("AnalyzedCaptures", "ExplainedCaptures", "analyze_captures", "explain_captures"),
    "engine.claim_sources": ("ClaimsBySources", "claims_by_sources"),
    "engine.cleaning": ("Freed", "remove_captures", "remove_derived", "unpack"),
    "engine.compare": ("agree_runs", "compare_exactly", "compare_runs"),
    "engine.compare_packets": ("compare_packets",),
    "engine.data_frames": ("load_run",),
    "engine.events": ("CellFinished", "CellTime", "CellsFinished", "CellsStarted", "Event", "Notice", "Progress"),
    "engine.experiment": ("Experiment",),
    "engine.export": ("export_captures", "export_har"),
    "engine.merging": ("merge_runs",),
    "engine.planning": ("plan_experiment",),
    "engine.run_directory": ("Run", "open_run"),
    "engine.run_again": ("agree_backends", "replay", "verify"),
    "engine.running": ("RunInterrupted", "RunOutOfSpace", "run"),
    "engine.sctp_advice": ("SctpAdvice", "advise_sctp"),
    "engine.sctp_bounds": ("SctpBudget",),
    "engine.sctp_check": ("SctpCheck", "SctpNetwork", "check_sctp"),
    "engine.search": ("SearchResult", "search"),
    "engine.what_if": ("WhatIf", "what_if"),
    "experiment.study": ("load_experiment",),
    "results.run_comparison": ("RunComparison",),
}  # fmt: skip
_MODULE = {name: module for module, names in _DEFINED_IN.items() for name in names}

__all__ = [
    "Analyzed", "AnalyzedCaptures", "BackendUnavailable", "Calibrated", "CaptureError",
    "CellError", "CellFinished", "CellTime", "CellsFinished", "CellsStarted", "ClaimsBySources", "DiskFull",
    "Event", "Experiment", "ExplainedCaptures", "Freed", "KernelError", "NetwarpError", "Notice", "Progress", "Run",
    "RunComparison", "RunInterrupted", "RunOutOfSpace", "SctpAdvice", "SctpBudget", "SctpCheck", "SctpNetwork",
    "SearchResult", "SpecError", "StoreError", "WhatIf", "__version__", "advise_sctp", "agree_backends",
    "agree_runs", "analyze", "analyze_captures", "calibrate", "check_sctp", "claims_by_sources",
    "compare_exactly", "compare_packets", "compare_runs", "explain_captures", "export_captures", "export_har",
    "load_experiment", "load_run", "merge_runs", "open_run",
    "plan_experiment", "remove_captures", "remove_derived", "replay", "report", "run", "search", "unpack",
    "verify", "what_if",
]  # fmt: skip


def __dir__() -> list[str]:
    """The public names, for completion: they are there although none is imported yet."""
    return [*__all__, *(name for name in globals() if name.startswith("__"))]


def __getattr__(name: str) -> Any:
    """A public name, from the module that defines it."""
    if name not in _MODULE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f".{_MODULE[name]}", __name__), name)
