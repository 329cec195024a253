"""Finds a program on this machine: in PATH, or in sbin, which an ordinary Debian user has not in PATH.

Standard library only, and no syntax newer than Python 3.7's: `make doctor` needs it before set-up.
"""

from __future__ import annotations

import os
import shutil

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def with_sbin(path: str) -> str:
    """A PATH with the directories of sbin behind its own, where it has not all of them."""
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join([*parts, *(place for place in SBIN if place not in parts)])


def find_executable(name: str, path: str | None = None) -> str | None:
    """The file that runs as `name`, or None. path: searched alone, instead of PATH and sbin."""
    return shutil.which(name, path=with_sbin(os.environ.get("PATH", os.defpath)) if path is None else path)
