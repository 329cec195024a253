"""The results as a table of a page in Markdown, between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ..core.errors import SpecError
from .guest import Result
from .tap import counted

BEGIN, END = "<!-- selftests -->", "<!-- /selftests -->"
_LONGEST_NOTE = 120


def rows(results: Sequence[Result]) -> list[str]:
    """A row a test: verdict, its own results, virtual and wall time, the reason if it was skipped or stopped."""
    lines = [
        "| test | verdict | passed, failed, skipped inside | virtual s | wall s | reason |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for result in results:
        inside = counted(result.cases)
        shown = ", ".join(str(inside[name]) for name in ("pass", "fail", "skip")) if result.cases else ""
        virtual = "" if result.virtual_s is None else f"{result.virtual_s:.1f}"
        note = result.note.replace("|", "/")[:_LONGEST_NOTE]
        lines.append(
            f"| `{result.test.name}` | {result.verdict} | {shown} | {virtual} | {result.wall_s:.1f} | {note} |"
        )
    return lines


def update_page(page: Path, lines: Sequence[str]) -> None:
    """Put the lines between the marks of a page. Raises SpecError if it has none."""
    text = page.read_text()
    if BEGIN not in text or END not in text:
        raise SpecError(f"{page}: has no {BEGIN} ... {END} for the table to stand in")
    block = "\n".join([BEGIN, *lines, END])
    page.write_text(re.sub(rf"{BEGIN}.*?{END}", lambda _: block, text, flags=re.DOTALL))
