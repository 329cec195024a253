"""The report's numbers, links and series as pure functions."""

from __future__ import annotations

import json
import math
import re
from urllib.parse import unquote

import numpy as np
import pytest
from hypothesis import given as holds_for
from hypothesis import strategies as st
from netwarp.core import numbers
from netwarp.present.figures.description import Axis
from netwarp.present.html import file_name, script_json, url
from netwarp.present.result_tables import difference
from netwarp.present.series import MOST_POINTS, compact_series, keep_extremes
from netwarp.present.style import MARKERS, looks
from netwarp.store.derived import CellSeries, FlowSeries, Sampled

floats = st.floats(min_value=-1e12, max_value=1e12)


def parsed(text: str) -> float:
    """A number as shown, read back."""
    return float(text.replace(numbers.MINUS, "-").replace(numbers.THIN, ""))


@holds_for(floats, st.integers(0, 9))
def test_fixed_is_the_number_rounded(value: float, places: int) -> None:
    text = numbers.fixed(value, places)
    # half a unit of the last place, and what two floats of this size can differ by
    assert abs(parsed(text) - value) <= 0.500001 * 10**-places + 4 * math.ulp(value)
    assert len(text.partition(".")[2]) == places
    assert not re.fullmatch(rf"{numbers.MINUS}[0{numbers.THIN}.]+", text), "no negative nothing"


@holds_for(st.floats(min_value=1e-4, max_value=1e8))
def test_readable_keeps_four_digits(value: float) -> None:
    assert parsed(numbers.readable(value)) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.18, "0.18"), (-0.05, "−0.05"), (1400.0, "1400"), (1.7e-5, "1.7×10⁻⁵"), (0.0, "0"), (-2.5e-7, "−2.5×10⁻⁷")],
)
def test_given_adds_no_digits(value: float, shown: str) -> None:
    assert numbers.given(value) == shown


def test_nothing_is_a_dash_not_a_zero() -> None:
    assert numbers.fixed(None, 2) == numbers.readable(math.nan) == numbers.with_unit(None, "s") == numbers.DASH


@pytest.mark.parametrize(
    ("values", "unit", "expected"),
    [
        ([488_281.2, None], "bit/s", (1e3, "kbit/s")),
        ([2_000_000_000.0], "bit/s", (1e9, "Gbit/s")),
        ([62_393.8], "byte/s", (1e3, "kbyte/s")),
        ([12.0], "bit/s", (1.0, "bit/s")),
        ([70_000.0], "s", (1.0, "s")),
        ([0.0123, -0.5], "s", (1e-3, "ms")),
        ([2.56e-7], "s", (1e-6, "\u00b5s")),
        ([0.0, None], "s", (1.0, "s")),
        ([], "bytes", (1.0, "bytes")),
    ],
)
def test_scale(values: list[float | None], unit: str, expected: tuple[float, str]) -> None:
    assert numbers.scale(values, unit) == expected


@pytest.mark.parametrize(
    ("value", "reference", "text", "sign", "grade"),
    [
        (0.0971, 0.097, "+0.1\u202f%", 1, 0),
        (0.1248, 0.123, "+1.5\u202f%", 1, 1),
        (0.0747, 0.119, "−37\u202f%", -1, 3),
        (0.1077, 0.119, "−9.5\u202f%", -1, 2),
        (5.0, 5.0, "±0.0\u202f%", 0, 0),
        (0.3, 0.0, "+0.3000", 1, 3),
    ],
)
def test_difference(value: float, reference: float, text: str, sign: int, grade: int) -> None:
    found = difference(value, reference)
    assert found is not None
    assert (found.text, found.sign, found.grade) == (text, sign, grade)


def test_no_difference_without_both() -> None:
    assert difference(None, 1.0) is None
    assert difference(1.0, None) is None


@holds_for(
    st.recursive(st.none() | floats | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner))
)
def test_script_json_is_json_that_ends_no_script(value: object) -> None:
    text = script_json(value)
    assert json.loads(text) == value
    assert not set("<>&\u2028\u2029") & set(text)


@holds_for(st.text(min_size=1), st.text(min_size=1))
def test_file_names_are_harmless_and_differ(one: str, other: str) -> None:
    name = file_name(one)
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.+-]*", name)
    assert len(name) < 200
    assert (file_name(one) == file_name(other)) == (one == other)


@holds_for(st.text(min_size=1))
def test_urls_decode_to_their_parts(part: str) -> None:
    address = url("..", "cells", part)
    assert address.isascii()
    assert address.startswith("../cells/")
    assert address.count("/") == 2
    assert unquote(address.removeprefix("../cells/")) == part


@holds_for(st.lists(st.floats(allow_nan=True, allow_infinity=False), min_size=1, max_size=400), st.integers(4, 100))
def test_thinning_keeps_every_extreme(values: list[float], most: int) -> None:
    series = np.asarray(values)
    kept = keep_extremes(series, most)
    assert len(kept) <= most + 2
    assert (np.diff(kept) > 0).all()
    assert kept[0] == 0
    assert kept[-1] == len(values) - 1
    numbers_there = series[~np.isnan(series)]
    if len(numbers_there) == len(series):
        assert {series.min(), series.max()} <= set(series[kept])


def sampled(columns: Sampled) -> CellSeries:
    """A cell's series with these samples of the path p1 of the flow f."""
    flow = FlowSeries(goodput_bit_s=(), paths={}, samples={"p1": columns}, states={})
    return CellSeries(bin_s=1.0, duration_s=500.0, flows={"f": flow}, faults=[], events=[])


def test_long_series_are_thinned_and_say_so() -> None:
    times = np.arange(50_000) / 100
    wave = np.where(times == 250.0, 9e6, 15_000)
    found = compact_series(sampled({"t_s": times.tolist(), "cwnd_bytes": wave.tolist()}))
    points = found["flows"]["f"]["samples"]["p1"]["cwnd_bytes"]
    assert found["thinned"] is True
    assert len(points["v"]) <= MOST_POINTS + 2
    assert points["t_s"][points["v"].index(9_000_000)] == 250.0


def test_samples_that_are_missing_stay_missing() -> None:
    found = compact_series(sampled({"t_s": [0.0, 1.0, 2.0], "srtt_s": [0.1, None, 0.3]}))
    assert json.loads(script_json(found["flows"]["f"]["samples"]["p1"]["srtt_s"]["v"])) == [0.1, None, 0.3]


def test_looks_are_all_different_and_stable() -> None:
    names = [f"v{number}" for number in range(24)]
    found = looks(names)
    assert len({(look.light, look.marker) for look in found.values()}) == 24
    assert {look.marker for look in looks(names[:8]).values()} == set(MARKERS)
    assert {name: found[name] for name in names[:5]} == looks(names[:5])


def test_decimals_show_four_digits_of_the_largest() -> None:
    assert numbers.decimals([61_893.0]) == 0
    assert numbers.decimals([0.1248, None]) == 4
    assert numbers.decimals([]) == 0


def test_levels_on_top_of_each_other_share_a_label() -> None:
    at = (64.0, 716.0, 717.0, 1452.0, 1453.0, 65536.0)
    axis = Axis("size", "B", "log", at, tuple(f"{value:g}" for value in at))
    assert axis.ticks == ("64", "716/717", "", "1452/1453", "", "65536")
    places = Axis("outage", "s", "linear", (0.0, 5.0, 10.0, 20.0), ("0", "5", "10", "20"))
    assert places.ticks == places.text
    assert Axis("one", "", "category", (0.0,), ("x",)).ticks == ("x",)
