"""The error classes. Every message says what is wrong, where, and what to do.

NetwarpError            base class; `exit_status` is the command line's exit status
  SpecError             wrong spec, arguments or profile; nothing was run (2)
  BackendUnavailable    this machine cannot run the back end; the text says how to remedy it (77)
  CellError             a cell could not be run; it becomes the cell's Outcome and never leaves a run (1)
  CaptureError          a capture or a table of the analyser cannot be read (1)
  StoreError            a run directory lacks something or cannot be written (1)
    DiskFull            the disk is full: the run ends at once and keeps its finished cells (1)
  KernelError           the guest kernel cannot be built, or the one asked for is not there (1)
    DoesNotBuild        this source's fault, not the machine's: another commit may build (3)
"""

from __future__ import annotations

import errno
import os
import re

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "make room there, or name another place"),
    **dict.fromkeys((errno.EACCES, errno.EPERM), "change its rights, or name another place"),
    errno.EROFS: "name another place",
    errno.ENOENT: "look at the name",
    errno.EEXIST: "a file is there where a directory must be, or the other way round: name another place",
    errno.ENOTDIR: "a part of the name is a file and no directory: name another place",
    errno.EISDIR: "it is a directory where a file must be: name another place",
}
"""errno -> what to do."""


class NetwarpError(Exception):
    """Base of every error a user can meet."""

    exit_status = 1


class SpecError(NetwarpError):
    """The spec, a profile or an argument is wrong; nothing was run."""

    exit_status = 2


class BackendUnavailable(NetwarpError):
    """The chosen back end cannot run on this machine."""

    exit_status = 77


class CellError(NetwarpError):
    """One cell could not be run."""


class CaptureError(NetwarpError):
    """A capture cannot be read."""


class StoreError(NetwarpError):
    """A run directory is incomplete or cannot be written."""


class DiskFull(StoreError):
    """The disk that holds the run directory is full."""


class KernelError(NetwarpError):
    """The guest kernel cannot be built, or the one asked for is not there."""


class DoesNotBuild(KernelError):
    """A patch, an option or the compiler refused the source: not a fault of the machine."""

    exit_status = 3


def os_words(error: OSError) -> str:
    """What the system refused, where, and what to do: "out/x.html: No space left on device; make room there, ..."."""
    if error.args and isinstance(error.args[0], list):  # shutil.Error, of a tree: its first file
        _, place, why = error.args[0][0]
        found = re.match(r"\[Errno (\d+)\]", str(why))
        number = int(found[1]) if found else 0
        return f"{place}: {reason_words(OSError(number, os.strerror(number))) if number else why}"
    where = "" if error.filename is None else f"{error.filename}: "
    return f"{where}{reason_words(error)}"


def reason_words(error: OSError) -> str:
    """The same without the place."""
    remedy = _REMEDIES.get(error.errno or 0, "")
    return "; ".join(filter(None, (error.strerror or str(error), remedy)))
