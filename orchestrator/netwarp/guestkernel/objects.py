"""Keeps the objects of a source's last build, so that the next one compiles only what changed: for bisecting.

`<cache>/objects/<key>/{tree/, files.json, include/}`. The key: where the source is, the recipe, the toolchain.
files.json holds the hash of every file of the source as it was copied; a file whose hash is another is copied anew, and
make does the rest by the times of the files.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core.errors import KernelError
from . import cache
from .recipe import Recipe
from .source import Source, contents, put

_LIST = "files.json"
_OF_HEADERS = (
    "include/uapi/",
    "arch/x86/include/uapi/",
    "arch/x86/entry/syscalls/",
    "usr/include/",
    "scripts/",
    "Makefile",
)


def objects_dir(source: Source, recipe: Recipe, compiler: str) -> Path:
    """Where a source's objects are kept."""
    place = json.dumps([str(source.path), recipe.digest, compiler])
    return cache.kernels_dir().parent / "objects" / hashlib.sha256(place.encode()).hexdigest()[:16]


@contextlib.contextmanager
def kept_objects(source: Source, recipe: Recipe, compiler: str, enter: Callable[[str], None]) -> Iterator[Path]:
    """The directory of the objects, locked. Raises KernelError if the source is no directory."""
    if source.kind != "directory":
        raise KernelError(f"--incremental needs a tree that changes, and {source.path} is none; leave it out")
    folder = objects_dir(source, recipe, compiler)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            enter("waits for another build of this tree")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def synchronise(source: Source, folder: Path) -> frozenset[str] | None:
    """Bring folder/tree to the state of the source. Returns the names that changed; None: everything is new.

    Only what this function copied is ever changed or removed there. Raises KernelError if the source changed meanwhile.
    """
    tree, record = folder / "tree", folder / _LIST
    before = _read(record)
    if before is None or not tree.is_dir():
        shutil.rmtree(tree, ignore_errors=True)
        before = {}
    record.unlink(missing_ok=True)  # a killed synchronisation begins anew
    now: dict[str, str] = {}
    total = hashlib.sha256()
    for name, head, content in contents(source.path):
        total.update(head)
        total.update(content)
        now[name] = hashlib.sha256(head + content).hexdigest()
        if before.get(name) != now[name]:
            (tree / name).unlink(missing_ok=True)
            put(tree / name, head, content)
    for name in before.keys() - now.keys():
        (tree / name).unlink(missing_ok=True)
    if source.identity != f"tree {total.hexdigest()}":
        raise KernelError(f"{source.path} changed while it was being copied; start again")
    new = record.with_suffix(".new")
    new.write_text(json.dumps(now))
    os.replace(new, record)
    if not before:
        return None
    return frozenset(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))


def configures(changed: frozenset[str] | None, tree: Path) -> bool:
    """Whether the configuration has to be made again."""
    return (
        changed is None
        or not (tree / ".config").is_file()
        or any(Path(name).name.startswith("Kconfig") or name.startswith(("scripts/", "Makefile")) for name in changed)
    )


def makes_headers(changed: frozenset[str] | None, include: Path) -> bool:
    """Whether the headers for user space have to be made again."""
    return changed is None or not include.is_dir() or any(name.startswith(_OF_HEADERS) for name in changed)


def _read(record: Path) -> dict[str, str] | None:
    try:
        return dict(json.loads(record.read_bytes()))
    except (OSError, ValueError):
        return None
