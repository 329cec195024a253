"""Tables on a terminal: no number is cut or broken, however narrow it is."""

from __future__ import annotations

import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netwarp.cli.output import make_table, plain_console

NUMBERS = st.floats(-1e9, 1e9, allow_nan=False).map(lambda value: f"{value:.4f} \u00b1 0.123")


@given(
    st.integers(10, 140),
    st.lists(st.text("abcdefg -", min_size=1, max_size=30), min_size=1, max_size=3),
    st.lists(NUMBERS, min_size=1, max_size=8),
)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_number_is_whole(
    capsys: pytest.CaptureFixture[str], width: int, texts: list[str], numbers: list[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(width))
        table = make_table(
            "A title", *[f"text {n}" for n in range(len(texts))], *[f">{n} Mbit/s" for n in range(len(numbers))]
        )
        table.add_row(*texts, *numbers)
        plain_console().print(table)
    out = capsys.readouterr().out
    assert "\u2026" not in out
    (row,) = [line for line in out.splitlines() if numbers[0] in line]
    assert [field.strip() for field in re.split("\u2502", row)[1 + len(texts) : -1]] == numbers
    assert all(f"{n} Mbit/s" in out for n in range(len(numbers)))
    letters = re.sub(r"[^a-g]", "", out.split("\u2521")[1])
    assert all(letters.count(letter) == "".join(texts).count(letter) for letter in "abcdefg"), (
        "no letter of a text is cut"
    )
