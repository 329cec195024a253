"""netwarp: transport-protocol experiments on unmodified Linux kernels.

    import netwarp

    experiment = netwarp.load_experiment("choi2009")     # or the path of a spec; checked
    netwarp.plan_experiment(experiment).cells            # what would run
    run = netwarp.run(experiment, where={"outage": "10 s"}, out="results/mine")
    run.table("measurements")                            # rows: dicts of text and numbers
    netwarp.analyze(run.path)                            # derived files and tables again
    netwarp.report(run.path)
    netwarp.analyze_captures(["a.pcap"]).files              # captures of any origin

`run`, `resume`, `calibrate` and `agree_backends` take `progress`, a function that is called with an `Event` each.
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
    from .engine import (
        Analyzed,
        AnalyzedCaptures,
        BackendAgreement,
        Calibrated,
        CellFinished,
        CellsFinished,
        CellsStarted,
        CellTime,
        Event,
        Freed,
        Notice,
        Progress,
        Run,
        RunComparison,
        RunInterrupted,
        RunOutOfSpace,
        agree_backends,
        agree_runs,
        analyze,
        analyze_captures,
        calibrate,
        compare_runs,
        export_captures,
        load_experiment,
        open_run,
        plan_experiment,
        remove_captures,
        remove_derived,
        report,
        resume,
        run,
    )

__all__ = [
    "Analyzed",
    "AnalyzedCaptures",
    "BackendAgreement",
    "BackendUnavailable",
    "Calibrated",
    "CaptureError",
    "CellError",
    "CellFinished",
    "CellTime",
    "CellsFinished",
    "CellsStarted",
    "DiskFull",
    "Event",
    "Freed",
    "KernelError",
    "NetwarpError",
    "Notice",
    "Progress",
    "Run",
    "RunComparison",
    "RunInterrupted",
    "RunOutOfSpace",
    "SpecError",
    "StoreError",
    "__version__",
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
    """A public name, from the room that defines it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    errors = importlib.import_module(".core.errors", __name__)
    return getattr(errors if hasattr(errors, name) else importlib.import_module(".engine", __name__), name)
