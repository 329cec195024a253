"""The programs that a spec brings: their command lines, the rights they run with, and the refusal of a stranger's."""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Iterable
from pathlib import Path

from ..core.errors import SpecError
from ..core.types import Cell
from ..core.units import counted
from .privileges import User, unprivileged

MOST_NAMED = 20
LONGEST = 200
ALLOW = "--allow-programs"


def own_programs(cells: Iterable[Cell]) -> tuple[str, ...]:
    """The command lines of the programs that cells bring, each once, in printable characters."""
    programs = (flow.program for cell in cells for flow in cell.flows if flow.program is not None)
    lines = dict.fromkeys(
        arguments for program in programs for arguments in (program.sender, program.receiver) if arguments
    )
    return tuple(_printable(shlex.join(arguments)) for arguments in lines)


def _printable(text: str) -> str:
    text = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."


def user_words(user: User | None) -> str:
    """The name of the user as which a sandbox runs; None: that of this process."""
    uid = os.geteuid() if user is None else user.uid
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def programs_notice(cells: Iterable[Cell], user: User | None) -> str:
    """One line on the programs that a spec brings and their rights; "" if it brings none."""
    names = dict.fromkeys(line.split(" ", 1)[0] for line in own_programs(cells))
    if not names:
        return ""
    named = ", ".join(list(names)[:MOST_NAMED]) + (", ..." if len(names) > MOST_NAMED else "")
    return f"runs programs of its own, with the rights of {user_words(user)}: {named} (netwarp plan SPEC --steps)"


def refuse_programs(cells: Iterable[Cell], path: Path, *, allowed: bool) -> bool:
    """True if cells bring programs, which are allowed. Raises SpecError, with all of them, if they are not."""
    lines = own_programs(cells)
    if lines and not allowed:
        listed = "".join(f"\n  {line}" for line in lines[:MOST_NAMED])
        more = f"\n  ... and {len(lines) - MOST_NAMED} more" if len(lines) > MOST_NAMED else ""
        raise SpecError(
            f"{path}: brings {counted(len(lines), 'program')} of its own, which would run with the rights of "
            f"{user_words(unprivileged())}; read them, then add {ALLOW}:{listed}{more}"
        )
    return bool(lines)
