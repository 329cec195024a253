"""Time series for drawing: rounded and thinned to about the resolution of a screen."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from ..results.rows import BINNED
from ..store.derived import CellSeries

MOST_POINTS = 3000
"""Points of a sampled series. More are thinned to the smallest and largest of each bucket, so that no peak is lost."""
PLACES = {"_bit_s": 0, "_bytes": 0, "_packets": 0, "_s": 6, "_ratio": 6}


def compact_series(series: CellSeries) -> dict[str, Any]:
    """series.json for the page (docs/formats.md), with `thinned`: whether any samples were left out."""
    flows: dict[str, Any] = {}
    thinned = False
    for name, flow in series.flows.items():
        samples: dict[str, Any] = {}
        for path, columns in flow.samples.items():
            samples[path], cut = thin(columns)
            thinned |= cut
        flows[name] = {
            **{key: rounded(key, getattr(flow, key)) for key in BINNED if key == BINNED[0] or getattr(flow, key)},
            "states": {
                path: [[rounded("t_s", [at])[0], state] for at, state in changes]
                for path, changes in flow.states.items()
            },
            "paths": {
                path: {key: rounded(key, value) for key, value in columns.items()}
                for path, columns in flow.paths.items()
            },
            "samples": samples,
        }
        flows[name] |= {"trace": flow.trace} if flow.trace else {}
    plain: dict[str, Any] = msgspec.to_builtins(series)
    return plain | {"flows": flows, "thinned": thinned}


def rounded(key: str, values: Any) -> Any:
    """Numbers of a column to the places its unit needs; whole numbers as such. Other things as they are."""
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        return values
    places = next((places for suffix, places in PLACES.items() if key.endswith(suffix)), 9)
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        return values
    result: list[float | int | None] = np.round(numbers, places).tolist()
    if places == 0 and np.isfinite(numbers).all():
        return np.round(numbers).astype(np.int64).tolist()
    return result


def thin(columns: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """A sampler's columns as {name: {"t_s": [...], "v": [...]}}, each thinned alone, and whether anything was."""
    times = np.asarray(columns.get("t_s") or (), dtype=np.float64)
    result: dict[str, Any] = {}
    cut = False
    for key, values in columns.items():
        if key == "t_s" or len(values) != len(times) or not len(times):
            continue
        numbers = np.asarray(values, dtype=np.float64)  # null -> nan
        keep = keep_extremes(numbers, MOST_POINTS)
        cut |= len(keep) < len(times)
        result[key] = {"t_s": rounded("t_s", times[keep].tolist()), "v": rounded(key, numbers[keep].tolist())}
    return result, cut


def keep_extremes(values: NDArray[np.float64], most: int) -> NDArray[np.intp]:
    """Indices, ascending, of at most `most` values that draw the same: of each bucket its smallest and largest."""
    if len(values) <= most:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), most // 2 + 1).astype(np.intp)
    finite = np.where(np.isnan(values), 0.0, values)
    kept = [
        index
        for start, end in itertools.pairwise(edges)
        for index in (start + int(finite[start:end].argmin()), start + int(finite[start:end].argmax()))
    ]
    return np.unique(np.asarray([0, *kept, len(values) - 1], dtype=np.intp))
