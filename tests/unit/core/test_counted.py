"""Counted nouns in sentences: 1 has no plural, and one function makes both forms."""

from __future__ import annotations

import re
from pathlib import Path

import netwarp
import pytest
from netwarp.core.numbers import with_unit
from netwarp.core.units import Quantity, counted, format_quantity, parse_quantity

SOURCES = Path(netwarp.__file__).parent


def test_one_and_many() -> None:
    assert counted(1, "cell") == "1 cell"
    assert counted(0, "cell") == "0 cells"
    assert counted(12345, "T3 expiry", "T3 expiries") == "12\u202f345 T3 expiries"


@pytest.mark.parametrize("unit", ["chunks", "packets", "messages", "events", "timeouts"])
def test_a_measured_one(unit: str) -> None:
    assert with_unit(1.0, unit) == f"1 {unit[:-1]}"
    assert with_unit(2.0, unit) == f"2 {unit}"
    assert with_unit(1.5, unit) == f"1.500 {unit}"


@pytest.mark.parametrize("unit", ["s", "ms", "bit/s", "packets/s"])
def test_symbols_have_no_plural(unit: str) -> None:
    assert with_unit(1.0, unit) == f"1 {unit}"


def test_a_queue_of_one_packet_reads_back() -> None:
    text = format_quantity(Quantity("packets", 1))
    assert text == "1 packet"
    assert parse_quantity(text) == Quantity("packets", 1)


@pytest.mark.parametrize("path", sorted(SOURCES.glob("present/**/*.j2")) + sorted(SOURCES.glob("present/**/*.js")))
def test_pages_count_by_the_function(path: Path) -> None:
    """A number right before a plural noun in a template or script would say "1 cells"."""
    nouns = r"(cells|claims|checks|tests|quantities|interfaces|sysctls|netem qdiscs|numbers|conditions)\b"
    number = r"(\| length(?: - \w+ \| length)? ?\}\}|\.length\}|\b(?:shown|count)\})"
    assert re.findall(rf"{number} {nouns}", path.read_text(encoding="utf-8")) == []
