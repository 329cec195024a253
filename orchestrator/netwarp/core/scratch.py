"""Temporary directories that do not accumulate: each process removes those that killed processes left. Standard library
only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A temporary directory in TMPDIR that is locked as long as this process lives. Directories with the same prefix
    that no process has locked are removed.
    """
    place = Path(tempfile.gettempdir())
    for left in place.glob(f"{prefix}*"):
        if (handle := _locked(left)) is not None:
            shutil.rmtree(left, ignore_errors=True)
            os.close(handle)
    made = tempfile.TemporaryDirectory(prefix=prefix)
    while (handle := _locked(Path(made.name))) is None:  # another process has just taken it for one that was left
        made.cleanup()
        made = tempfile.TemporaryDirectory(prefix=prefix)
    try:
        with made:
            yield Path(made.name)
    finally:
        os.close(handle)


def _locked(folder: Path) -> int | None:
    """The lock of a directory of ours that nobody has locked."""
    handle = None
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        if os.fstat(handle).st_uid == os.geteuid():
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if folder.exists():
                return handle
    except OSError:
        pass
    if handle is not None:
        os.close(handle)
    return None


def write_whole(path: Path, text: str) -> None:
    """Write a small file by one rename, so that nobody reads half of it. Raises OSError; a crash may still lose it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
