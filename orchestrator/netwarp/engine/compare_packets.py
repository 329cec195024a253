"""Compares what stacks did in two runs: packets without what is drawn at random, whatever kernel and seed were."""

from __future__ import annotations

import json
from pathlib import Path

from ..captures.first_difference import behaviour_difference_of_files
from ..core.errors import CaptureError, StoreError
from ..measure.capture_point import capture_named
from ..measure.cell_records import read_cell_records
from ..results.run_comparison import CellPair, RunComparison, Side
from ..store.manifest import Manifest
from ..store.run_dir import RunDir, read_json
from .compare import cell_keys, compare_cell, matched

WITHIN_NS = 20_000
"""Times of equal packets may differ by this: a read of the clock takes 256 ns of virtual time, and another kernel may
read it more often.
"""


def compare_packets(a: str | Path, b: str | Path, *, within_ns: int = WITHIN_NS) -> RunComparison:
    """If the cells of two runs, of other kernels or seeds too, have equal packets (captures/random_fields.py) at times
    within that of each other. A pair is `equal` then; `words` say what differs first. Raises StoreError.
    """
    runs = RunDir(Path(a)), RunDir(Path(b))
    stored = [
        {name: _without_draws(run.cell(name).cell.read_bytes()) for name in sorted(run.finished())} for run in runs
    ]
    if not all(stored):
        raise StoreError(f"{runs[not stored[1]].root}: has no finished cell: nothing was compared")
    pairs = tuple(_pair(compare_cell(pair, *runs, words=False), *runs, within_ns) for pair in matched(*stored))
    first, second = (
        Side(name, run.root, read_json(run.manifest, Manifest)) for name, run in zip("AB", runs, strict=True)
    )
    return RunComparison(first, second, cells=pairs)


def _without_draws(cell: bytes) -> bytes:
    read = cell_keys(cell)
    return json.dumps({key: value for key, value in read.items() if key not in ("kernel", "seed")}).encode()


def _pair(pair: CellPair, a: RunDir, b: RunDir, within_ns: int) -> CellPair:
    if pair.status != "differ" or pair.a is None or pair.b is None:
        return pair
    there, here = a.cell(pair.a), b.cell(pair.b)
    for name in pair.captures:
        files = [capture_named(cell.root, name) for cell in (there, here)]
        if files[0] is None or files[1] is None:
            return CellPair(pair.a, pair.b, "no captures", f"capture {name} is in one of the runs only")
        try:
            difference = behaviour_difference_of_files(files[0], files[1], within_ns)
            t0_ns = read_cell_records(here.init_log).ready.t0_realtime_ns
        except CaptureError as error:
            return CellPair(pair.a, pair.b, "differ", f"capture {name}: {error}", (name,))
        if difference is not None:
            return CellPair(pair.a, pair.b, "differ", f"capture {name}: {difference.words(t0_ns)}", (name,))
    return CellPair(pair.a, pair.b, "equal")
