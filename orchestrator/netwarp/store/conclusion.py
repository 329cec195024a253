"""conclusion.json of a run: what a command concluded from its cells, in the words of its terminal and of its report."""

from __future__ import annotations

import hashlib

from ..core.frozen import Frozen
from .run_dir import RunDir, read_json, write_json

FORMAT = 1
READ = ("cells.csv", "measurements.csv")
"""The tables that a conclusion is drawn from."""


class Sentence(Frozen, frozen=True):
    """One thing that is said. name: what it is about ("": nothing more to say). remedy: what to do about it. cells: ids
    of those that show it.
    """

    text: str
    name: str = ""
    remedy: str = ""
    cells: tuple[str, ...] = ()


class Part(Frozen, frozen=True):
    """Sentences below a title; numbered: the worst first. rows: of a table below them, their first the heads."""

    title: str
    sentences: tuple[Sentence, ...] = ()
    numbered: bool = False
    rows: tuple[tuple[str, ...], ...] = ()


class Conclusion(Frozen, frozen=True, kw_only=True):
    """What `command` concluded. answer: in one sentence. about: what was looked at. tables: `tables_digest` of the run
    when it was drawn.
    """

    command: str
    answer: str
    about: tuple[Sentence, ...] = ()
    parts: tuple[Part, ...] = ()
    tables: str = ""
    format: int = FORMAT


def tables_digest(run: RunDir) -> str:
    """SHA-256 of the tables that a conclusion is drawn from; "" where they are not there."""
    digest = hashlib.sha256()
    for name in READ:
        path = run.tables / name
        if not path.is_file():
            return ""
        digest.update(path.read_bytes())
    return digest.hexdigest()


def write_conclusion(run: RunDir, conclusion: Conclusion) -> None:
    """Keep it with the run. Raises StoreError."""
    write_json(run.conclusion, conclusion)


def read_conclusion(run: RunDir) -> Conclusion | None:
    """That of a run; None: no command concluded anything from it. Raises StoreError."""
    return read_json(run.conclusion, Conclusion) if run.conclusion.exists() else None
