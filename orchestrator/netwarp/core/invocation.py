"""netwarp commands as a user should type them next, in the same directory, with the program that was started now.

Standard library only: the doctor, which runs before anything is installed, prints such commands too.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

PACKAGE = __name__.partition(".")[0]


def command(*words: object) -> str:
    """A netwarp command as a user should type it: the program path that started this process, every word quoted."""
    return shlex.join([*program(), *(str(word) for word in words)])


def program() -> list[str]:
    """The words that start netwarp: the beginning of this process' own command line; if this process was not started as
    netwarp (a notebook, a test), the `netwarp` script in the directory of this Python.
    """
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
    """The command of these words with options added: at its end, or before a `--`, after which no option counts."""
    end = words.index("--") if "--" in words else len(words)
    return command(*words[:end], *options, *words[end:])
