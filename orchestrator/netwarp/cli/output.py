"""Output of commands: JSON, a console without surprises, and tables on it."""

from __future__ import annotations

import os
import sys

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

PLAIN_WIDTH = 120


def print_json(value: object, *, indent: int = 0) -> None:
    """One JSON value on stdout; indent 0: on one line."""
    text = msgspec.json.encode(value)
    sys.stdout.buffer.write((msgspec.json.format(text, indent=indent) if indent else text) + b"\n")


def plain_console() -> Console:
    """Standard output, plain where it is no terminal, and then as wide as COLUMNS says, or of a fixed width."""
    console = Console(highlight=False, markup=False)
    if not console.is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        console.width = PLAIN_WIDTH
    return console


def make_table(title: str, *heads: str) -> Table:
    """An empty table. A head that begins with > is of numbers: to the right, never wrapped."""
    table = Table(title=title or None, title_justify="left", title_style="bold")
    for head in heads:
        if head.startswith(">"):
            table.add_column(Text(head[1:]), justify="right", no_wrap=True)
        else:
            table.add_column(Text(head), overflow="fold")
    return table
