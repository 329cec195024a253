"""Quantities: exact, both ways, and errors that show a correct example."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.units import EXAMPLES, Kind, Quantity, QuantityError, format_quantity, parse_quantity, same_value


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("500 kbit/s", "rate", 500_000),
        ("500kbit/s", "rate", 500_000),
        ("0.5 Mbit/s", "rate", 500_000),
        ("1Gbit/s", "rate", 10**9),
        ("200 ms", "time", 200_000_000),
        ("1.12 s", "time", 1_120_000_000),
        ("2 min", "time", 120 * 10**9),
        ("0 s", "time", 0),
        ("-0 s", "time", 0),
        ("1e-3 s", "time", 10**6),
        ("64 KiB", "data", 65_536),
        ("64 kB", "data", 64_000),
        ("65536 B", "data", 65_536),
        (".5 KiB", "data", 512),
        ("1 %", "ratio", 0.01),
        ("1e-5", "ratio", 1e-5),
        ("2.5E-4", "ratio", 2.5e-4),
        ("0", "ratio", 0.0),
        ("45 packets", "packets", 45),
        ("1 packet", "packets", 1),
        ("1 bdp", "bdp", 1.0),
        ("0.5bdp", "bdp", 0.5),
        ("  7 s ", "time", 7 * 10**9),
    ],
)
def test_parses_to_base_units(text: str, kind: Kind, value: float) -> None:
    assert parse_quantity(text) == Quantity(kind, value)
    assert parse_quantity(text, kind) == Quantity(kind, value)


def test_decimal_not_binary() -> None:
    # 0.1 + 0.2 style errors would show here: 4.35 * 100 is 434.99999999999994 in binary
    assert parse_quantity("4.35 us").value == 4350
    assert parse_quantity("0.29 kbit/s").value == 290
    assert isinstance(parse_quantity("4.35 us").value, int)


@pytest.mark.parametrize(
    ("text", "kind", "says"),
    [
        ("200", "time", "bare number"),
        ("0", "time", "bare number"),
        ("5", None, "bare number"),
        ("1", "ratio", "bare number"),  # the whole, or 1 %
        ("0.5", "ratio", "bare number"),
        ("0.01", None, "bare number"),
        ("", "time", "not a number"),
        ("fast", "rate", "not a number"),
        ("nan s", "time", "not a number"),
        ("inf s", "time", "not a number"),
        ("1_000 s", "time", "unknown unit"),
        ("٣ s", "time", "not a number"),
        ("10 Mbps", "rate", 'write "Mbit/s"'),
        ("10 mbit/s", "rate", 'did you mean "Mbit/s"'),
        ("10 seconds", "time", 'write "s"'),
        ("10 parsec", "time", "known: "),
        ("20 mbit/s", "time", "unknown unit 'mbit/s' of a time (known: h, min, ms, ns, s, us)"),
        ("20 kbps", "time", "unknown unit 'kbps' of a time (known: h, min, ms, ns, s, us)"),
        ("20 mb", None, 'did you mean "MB"'),
        ("10 ms", "rate", "is a time, but a rate is wanted"),
        ("-1 Mbit/s", "rate", "negative"),
        ("0.5 ns", "time", "not a whole number of ns"),
        ("0.5 packets", "packets", "not a whole number of packets"),
        ("101 %", "ratio", "more than the whole"),
        ("1e30 s", "time", "too large"),
        ("1e999999999 s", "time", "unknown unit"),
        ("1" * 100 + " s", "time", "not a number"),
    ],
)
def test_errors_say_what_and_show_an_example(text: str, kind: Kind | None, says: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_quantity(text, kind)
    assert says in str(caught.value)
    assert EXAMPLES[kind or "time"] in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        (Quantity("time", 200_000_000), "200 ms"),
        (Quantity("time", 100 * 10**9), "100 s"),
        (Quantity("time", 0), "0 s"),
        (Quantity("rate", 500_000), "500 kbit/s"),
        (Quantity("rate", 0), "0 bit/s"),
        (Quantity("data", 65_536), "64 KiB"),
        (Quantity("data", 1500), "1500 B"),
        (Quantity("data", 0), "0 B"),
        (Quantity("ratio", 0.01), "1 %"),
        (Quantity("packets", 50), "50 packets"),
        (Quantity("bdp", 1.5), "1.5 bdp"),
    ],
)
def test_formats(quantity: Quantity, text: str) -> None:
    assert format_quantity(quantity) == text


integers = st.integers(0, 2**63 - 1)
quantities = st.one_of(
    st.builds(Quantity, st.sampled_from(["time", "data", "rate", "packets"]), integers),
    st.builds(Quantity, st.just("ratio"), st.floats(0, 1)),
    st.builds(Quantity, st.just("bdp"), st.floats(1e-6, 1e6)),
)


@given(quantities)
def test_round_trip(quantity: Quantity) -> None:
    assert parse_quantity(format_quantity(quantity), quantity.kind) == quantity


@given(integers, st.sampled_from(["ns", "us", "ms", "s", "min", "h"]), st.sampled_from(["", " ", "  "]))
def test_scale_and_space(number: int, unit: str, space: str) -> None:
    scale = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}[unit]
    if number * scale > 2**63 - 1:
        with pytest.raises(QuantityError, match="too large"):
            parse_quantity(f"{number}{space}{unit}")
    else:
        assert parse_quantity(f"{number}{space}{unit}").value == number * scale


@given(st.text(max_size=100))
def test_never_anything_but_a_quantity_or_its_error(text: str) -> None:
    with contextlib.suppress(QuantityError):
        assert parse_quantity(text).value >= 0


def test_same_value() -> None:
    assert same_value("10s", "10 s")
    assert same_value("0.5 Mbit/s", "500kbit/s")
    assert same_value("1 %", "1e-2")
    assert not same_value("10 s", "10 ms")
    assert not same_value("10 s", "10 B")
    assert same_value(" tcp", "tcp")
    assert not same_value("tcp", "sctp")
