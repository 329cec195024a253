"""The results as a table of a page in Markdown, between two marks."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import SpecError
from ..core.outside_text import markdown, markdown_code
from ..store.run_dir import write_atomic
from .guest import Result
from .tap import counted

BEGIN, END = "<!-- selftests -->", "<!-- /selftests -->"
HEAD = (
    "| test | verdict | inside: passed, failed, skipped | virtual s | wall s | kernel | reason |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)
_LONGEST_NOTE = 80


def rows(results: Sequence[Result], kernel: str) -> dict[str, str]:
    """Test -> its row: verdict, its own results, virtual and wall time, the reason if it was skipped or stopped."""
    lines = {}
    for result in results:
        inside = counted(result.cases)
        shown = ", ".join(str(inside[name]) for name in ("pass", "fail", "skip")) if result.cases else ""
        virtual = "" if result.virtual_s is None else f"{result.virtual_s:.1f}"
        note = markdown(textwrap.shorten(result.note, _LONGEST_NOTE, placeholder=" ..."))
        cells = [markdown_code(result.test.name), result.verdict, shown, virtual, f"{result.wall_s:.1f}", kernel, note]
        lines[result.test.name] = f"| {' | '.join(cells)} |"
    return lines


def update_page(page: Path, new: dict[str, str]) -> None:
    """Put rows between the marks of a page, where they replace those of the same tests; the others stay. Raises
    SpecError if the page has no marks.
    """
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SpecError(f"{page}: has no {BEGIN} ... {END} for the table to stand in")
    old = text[text.index(BEGIN) : text.index(END)]
    kept = {row[1]: row[0] for row in re.finditer(r"^\| `([^`]+)` \|.*$", old, re.MULTILINE)}
    block = "\n".join([BEGIN, *HEAD, *{**kept, **new}.values(), END])
    write_atomic(page, text.replace(old + END, block).encode())
