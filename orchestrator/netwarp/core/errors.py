"""The error tree. Every message says what is wrong, where, and what to do.

NetwarpError            base; `exit_status` is what the command line returns for it
  SpecError             bad spec, arguments or profile: nothing was run (2)
  BackendUnavailable    this machine cannot run the back end: text carries the remedy (77)
  CellError             a cell could not be run; becomes an Outcome, never escapes a run (1)
  CaptureError          a capture or an analyser table cannot be read (1)
  StoreError            a run directory is missing something, or cannot be written (1)
    DiskFull            it cannot be written for want of room: the run ends at once, what is finished is kept (1)
  KernelError           the guest kernel cannot be built or found as asked (1)
"""

from __future__ import annotations


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
    """There is no room left where the run directory is."""


class KernelError(NetwarpError):
    """The guest kernel cannot be built, or not be found as asked."""
