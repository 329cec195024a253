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
    with contextlib.ExitStack() as stack:
        while True:
            made = tempfile.TemporaryDirectory(prefix=prefix)
            try:
                stack.callback(os.close, _locked(Path(made.name)))
            except (BlockingIOError, FileNotFoundError):  # another process has just taken it for one that was left
                made.cleanup()
                continue
            except OSError:  # a file system without locks: nobody can lock it to remove it either
                pass
            break
        ours = Path(stack.enter_context(made))
        # who owns what this process makes: in an ordinary user's guest that is not who it is
        owner = ours.stat().st_uid
        for left in ours.parent.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):  # not a directory, or in use
                if left.lstat().st_uid == owner:
                    handle = _locked(left)
                    shutil.rmtree(left, ignore_errors=True)
                    os.close(handle)
        yield ours


def _locked(folder: Path) -> int:
    """The lock of a directory: its file descriptor. Raises OSError: BlockingIOError if another process has it,
    FileNotFoundError if one removed it meanwhile.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()
    except OSError:
        os.close(handle)
        raise
    return handle


def write_whole(path: Path, text: str) -> None:
    """Write a small file by one rename, so that nobody reads half of it. Raises OSError; a crash may still lose it."""
    new = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        new.write_text(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
