"""The command line of this process, and commands to type next in the same directory. Standard library only."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE = __name__.partition(".")[0]


def command(*words: object) -> str:
    """A netwarp command as it is to be typed: the program as this process was started, every word quoted."""
    return shlex.join([*program(), *(str(word) for word in words)])


def program() -> list[str]:
    """The words that start netwarp: those this process was started with, else the script beside this Python."""
    script = sys.argv[0]
    if script == str(Path(__file__).parents[1] / "__main__.py"):  # python -m
        return sys.orig_argv[: len(sys.orig_argv) - len(sys.argv) + 1]
    if Path(script).name == "netwarp" and os.sep in script and os.access(script, os.X_OK):
        return [script]
    beside = Path(sys.executable).parent / "netwarp"
    if os.access(beside, os.X_OK):
        here = Path.cwd()
        return [str(beside.relative_to(here) if beside.is_relative_to(here) else beside)]
    return [sys.executable, "-m", PACKAGE]


def more(words: Sequence[str], *options: object) -> str:
    """The command of these words with options added: behind them, or before a `--` that ends the options."""
    end = words.index("--") if "--" in words else len(words)
    return command(*words[:end], *options, *words[end:])
