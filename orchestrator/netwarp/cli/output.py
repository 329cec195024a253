"""Output of commands: JSON, a console without surprises, and tables on it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, TextIO

import msgspec
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from ..core.lines import Line, lines_text
from ..core.outside_text import visible
from .escaped_streams import escaped_json, plain_stream

if TYPE_CHECKING:
    from ..engine.run_directory import Run

LEAST = 8
"""Letters of a column of texts, however narrow the terminal."""
UNWRAPPED = 1_000_000
"""Letters: more than any line or table has."""


def print_json(value: object, *, indent: int = 0) -> None:
    """One JSON value on stdout; indent 0: on one line."""
    text = msgspec.json.encode(value)
    text = msgspec.json.format(text, indent=indent) if indent else text
    sys.stdout.buffer.write(escaped_json(text) + b"\n")


def terminal_width(stream: IO[str] | None = None) -> int | None:
    """In letters, of a terminal, or as COLUMNS says. None: neither, as in a pipe; then each statement is one line,
    which grep, sed and a log can use.
    """
    stream = sys.stdout if stream is None else stream
    said = os.environ.get("COLUMNS", "")
    if said.isdecimal() and int(said):
        return int(said)
    return shutil.get_terminal_size().columns if stream.isatty() else None


def print_lines(lines: Iterable[Line]) -> None:
    """Statements on stdout."""
    print(lines_text(lines, terminal_width()))


def run_lines(run: Run) -> list[Line]:
    """Where a run's report and directory are; a script reads the last line."""
    page = [] if run.page is None else [Line(f"report: {run.page.resolve()}")]
    return [*page, Line(str(run.path))]


class EscapedConsole(Console):
    """A console that writes colours and such of its own, and of its texts no character that acts on a terminal. It cuts
    no number: a table wider than the terminal keeps its width, and the terminal wraps it.
    """

    def __init__(self, stream: TextIO, *, width: int | None = None) -> None:
        super().__init__(file=plain_stream(stream), highlight=False, markup=False, emoji=False, width=width)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """The segments, escaped; those of rich's own are marked as controls."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(visible(segment.text), segment.style)

    def print(self, *objects: Any, **options: Any) -> None:
        """As rich has it; of a table with at least the width of its numbers, and LEAST letters of each text."""
        width = self.width
        try:
            self.width = max(width, *(_least_width(each) for each in objects if isinstance(each, Table)), 0)
            super().print(*objects, **options)
        finally:
            self.width = width


def _least_width(table: Table) -> int:
    """With a border and a space on both sides of each column, whose least width it sets."""
    for column in table.columns:
        cells = [column.header, *column.cells]
        widest = max(cell_len(cell.plain if isinstance(cell, Text) else str(cell)) for cell in cells)
        column.min_width = widest if column.no_wrap else min(widest, LEAST)
    return sum((column.min_width or 0) + 3 for column in table.columns) + 1


def plain_console() -> Console:
    """Standard output, plain where it is no terminal; wrapped as `terminal_width` says."""
    width = terminal_width()
    return EscapedConsole(sys.stdout, width=UNWRAPPED if width is None else width)


def make_table(title: str, *heads: str) -> Table:
    """An empty table. A head that begins with > is of numbers: to the right, never wrapped."""
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for head in heads:
        if head.startswith(">"):
            table.add_column(Text(head[1:]), justify="right", no_wrap=True)
        else:
            table.add_column(Text(head), overflow="fold")
    return table
