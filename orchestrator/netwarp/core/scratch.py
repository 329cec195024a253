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

LOCK = ".in-use"


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A temporary directory in TMPDIR that is locked as long as this process lives. Directories with the same prefix
    that no process has locked are removed.
    """
    _sweep(Path(tempfile.gettempdir()), prefix)
    with tempfile.TemporaryDirectory(prefix=prefix) as name, open(Path(name) / LOCK, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield Path(name)


def _sweep(place: Path, prefix: str) -> None:
    for left in place.glob(f"{prefix}*"):
        # not ours, a link, or made this very moment and not locked yet: leave it
        with contextlib.suppress(OSError):
            if left.lstat().st_uid != os.geteuid() or left.is_symlink():
                continue
            handle = os.open(left / LOCK, os.O_RDWR | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(handle)


def write_whole(path: Path, text: str) -> None:
    """Write a small file by one rename, so that nobody reads half of it. Raises OSError; a crash may still lose it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
