"""Keeps the objects of a source's last build, so that the next one compiles only what changed: for bisecting.

`<cache>/objects/<key>/{tree/, files.json, unfinished.json, include/}`. The key: where the source is, the recipe, the
toolchain. files.json holds the hash of every file of the source as it was copied; a file whose hash is another is
copied anew, and make does the rest by the times of the files. unfinished.json is there from the copying until a kernel
is made: the names that changed since the last kernel, over all builds that failed in between (null: everything).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core.errors import KernelError
from ..core.scratch import write_whole
from . import cache
from .recipe import Recipe
from .source import KernelSource, contents, names, put
from .variant import Variant

_LIST, _UNFINISHED = "files.json", "unfinished.json"
_OF_HEADERS = (
    "include/uapi/",
    "arch/x86/include/uapi/",
    "arch/x86/entry/syscalls/",
    "usr/include/",
    "scripts/",
    "Makefile",
)


def objects_dir(source: KernelSource, recipe: Recipe, compiler: str, variant: Variant) -> Path:
    """The place of a source's objects."""
    place = json.dumps([str(source.path), recipe.digest, compiler, variant.digest])
    return cache.kernels_dir().parent / "objects" / hashlib.sha256(place.encode()).hexdigest()[:16]


@contextlib.contextmanager
def kept_objects(
    source: KernelSource, recipe: Recipe, compiler: str, variant: Variant, enter: Callable[[str], None]
) -> Iterator[Path]:
    """The directory of the objects, locked. Raises KernelError if the source is no directory."""
    if source.kind != "directory":
        raise KernelError(f"--incremental needs a tree that changes, and {source.path} is none; leave it out")
    folder = objects_dir(source, recipe, compiler, variant)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / ".lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            enter("waits for another build of this tree")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def synchronise(source: KernelSource, folder: Path) -> frozenset[str] | None:
    """Bring folder/tree to the state of the source. Returns the names that changed since the last kernel made there
    (finished()); None: everything is new.

    Only what this function copied is changed or removed there, and what make left in the place of a file of the source.
    Raises KernelError if the source changed meanwhile.
    """
    tree, record = folder / "tree", folder / _LIST
    before = _read(record)
    if before is None or not tree.is_dir():
        shutil.rmtree(tree, ignore_errors=True)
        before = {}
    earlier = _unfinished(folder)
    record.unlink(missing_ok=True)  # a killed synchronisation begins anew
    # first: a file that becomes a directory is in the way of what is in that, a directory of a link too
    for name in before.keys() - set(names(source.path)):
        (tree / name).unlink(missing_ok=True)
    now: dict[str, str] = {}
    total = hashlib.sha256()
    for name, head, content in contents(source.path):
        total.update(head)
        total.update(content)
        now[name] = hashlib.sha256(head + content).hexdigest()
        if before.get(name) != now[name]:
            _clear(tree / name)
            put(tree / name, head, content)
    if source.identity != f"tree {total.hexdigest()}":
        raise KernelError(f"{source.path} changed while it was being copied; start again")
    changed = None
    if before and earlier is not None:
        changed = earlier.union(name for name in before.keys() | now.keys() if before.get(name) != now.get(name))
    write_whole(folder / _UNFINISHED, json.dumps(None if changed is None else sorted(changed)))
    write_whole(record, json.dumps(now))
    return changed


def finished(folder: Path) -> None:
    """A kernel was made of what synchronise() copied: the next changes are counted from here."""
    (folder / _UNFINISHED).unlink(missing_ok=True)


def configures(changed: frozenset[str] | None, tree: Path) -> bool:
    """True if the configuration has to be made again."""
    return (
        changed is None
        or not (tree / ".config").is_file()
        or any(Path(name).name.startswith("Kconfig") or name.startswith(("scripts/", "Makefile")) for name in changed)
    )


def makes_headers(changed: frozenset[str] | None, include: Path) -> bool:
    """True if the headers for user space have to be made again."""
    return changed is None or not include.is_dir() or any(name.startswith(_OF_HEADERS) for name in changed)


def _unfinished(folder: Path) -> frozenset[str] | None:
    """Names that no kernel was made of since they changed. None: of no file was one made."""
    try:
        left = json.loads((folder / _UNFINISHED).read_bytes())
    except FileNotFoundError:
        return frozenset()
    except ValueError:
        return None
    return None if left is None else frozenset(left)


def _clear(place: Path) -> None:
    if place.is_dir() and not place.is_symlink():  # its files are gone from the source: only what make left is there
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


def _read(record: Path) -> dict[str, str] | None:
    try:
        return dict(json.loads(record.read_bytes()))
    except (OSError, ValueError):
        return None
