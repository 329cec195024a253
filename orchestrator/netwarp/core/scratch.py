"""Temporary directories that a killed process does not leave: a watcher removes them, and the next process those of
which the watcher was killed too. Standard library only.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

from .processes import await_end_of_users

DYING_S, TRIES = 2.0, 30


@contextlib.contextmanager
def scratch(prefix: str) -> Iterator[Path]:
    """A temporary directory in TMPDIR that is locked as long as this process lives, and removed when it ends, however
    it ends. Directories with the same prefix that no process has locked are removed.
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
        stack.callback(os.close, _watched(ours))
        # who owns what this process makes: in an ordinary user's guest that is not who it is
        owner = ours.stat().st_uid
        for left in ours.parent.glob(f"{prefix}*"):
            with contextlib.suppress(OSError):  # not a directory, or in use
                if left.lstat().st_uid == owner:
                    handle = _locked(left)
                    shutil.rmtree(left, ignore_errors=True)
                    os.close(handle)
        yield ours


def _watched(folder: Path) -> int:
    """Start a process that removes the directory once this one and those forked from it have ended; returns the
    descriptor by which it knows that they live. It is nobody's child and has no terminal, so that what kills a process
    with its family or its group misses it.
    """
    inode = folder.stat().st_ino
    watching, alive = os.pipe()
    child = os.fork()
    if child:
        os.close(watching)
        os.waitpid(child, 0)
        return alive
    try:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE):
                signal.signal(number, signal.SIG_IGN)
            os.dup2(watching, 0)
            os.closerange(1, os.sysconf("SC_OPEN_MAX"))  # nobody waits for the end of a pipe because of this process
            os.chdir("/")
            os.read(0, 1)  # nothing is ever written
            _remove(folder, inode)
    finally:
        os._exit(0)


def _remove(folder: Path, inode: int) -> None:
    """Remove a directory in which guests may still write while they die, on a busy machine for a while."""
    for _ in range(TRIES):
        try:
            if folder.lstat().st_ino != inode:
                return
        except FileNotFoundError:
            return
        places = [Path(top) for top, _, _ in os.walk(folder)]
        shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):  # they live longer
            await_end_of_users(places, DYING_S)


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
