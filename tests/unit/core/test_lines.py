"""Text for a terminal: columns of any fields never touch, and statements wrap at the terminal's width only."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from netwarp.core.lines import Line, columns, letters, lines_text
from rich.cells import cell_len

FIELDS = st.text(
    "ab0123456789.,:;-+/% \u00e9\u00df\u00b5\u2192\u2265\u03a9\u0416\ud55c\uae00\u6f22\u5b57\uff21", max_size=12
)
"""Letters of one and of two places."""
WORDS = st.lists(st.text("abcdefgh/.-=", min_size=1, max_size=40), min_size=1, max_size=30)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[list[str]], set[int]]:
    count = draw(st.integers(1, 6))
    rows = draw(st.lists(st.lists(FIELDS, min_size=count, max_size=count), min_size=1, max_size=8))
    return rows, draw(st.sets(st.integers(0, count - 1)))


def places(line: str) -> list[str]:
    """A line as a terminal shows it: a place each; a wide letter has two. By rich, which draws terminals."""
    shown = []
    for letter in line:
        shown += [letter, *[""] * (cell_len(letter) - 1)] if cell_len(letter) else []
    return shown


@given(tables())
def test_columns_never_touch(table: tuple[list[list[str]], set[int]]) -> None:
    rows, right = table
    shown = [places(line.lead + line.text) for line in columns(rows, right=right)]
    widths = [max(cell_len(row[number]) for row in rows) for number in range(len(rows[0]))]
    for row, line in zip(rows, shown, strict=True):
        at = 0
        for number, (field, width) in enumerate(zip(row, widths, strict=True)):
            text = "".join(line[at : at + width])
            assert text.strip(" ") == field.strip(" ")
            assert text.endswith(field) if number in right else text.startswith(field)
            at += width
            assert {*line[at : at + 2]} <= {" "}, "two spaces between two columns"
            at += 2


@given(st.lists(st.text(), min_size=2, max_size=4))
def test_a_field_is_one_line_whatever_is_in_it(fields: list[str]) -> None:
    (line,) = columns([fields])
    assert (line.lead + line.text).isprintable()


@given(st.text())
def test_letters_are_as_wide_as_a_terminal_draws_them(text: str) -> None:
    plain = "".join(letter for letter in text if letter.isprintable() and cell_len(letter) <= 2)
    joined = re.sub(
        "[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U0001f1e6-\U0001f1ff\u1100-\u11ff\ud7b0-\ud7ff]", "", plain
    )
    ours, theirs = letters(joined), sum(cell_len(letter) for letter in joined)
    assert ours >= theirs, "a field that is taken for narrower than it is would touch the next"


@given(WORDS, st.integers(1, 30), st.integers(20, 120))
def test_a_statement_wraps_at_the_width_below_its_first_word(words: list[str], indent: int, width: int) -> None:
    line = Line(" " * (indent - 1) + "-", " ".join(words))
    shown = line.wrapped(width)
    assert " ".join(part.strip() for part in [shown[0][indent:], *shown[1:]]) == " ".join(words)
    assert all(part[:indent].strip() == "" and part[indent] != " " for part in shown[1:])
    longest = max(map(len, words))
    assert all(len(part) <= max(width, indent + max(longest, 24)) for part in shown)


@given(WORDS)
def test_a_pipe_has_a_line_a_statement(words: list[str]) -> None:
    assert lines_text([Line("  ", " ".join(words))]).count("\n") == 0
