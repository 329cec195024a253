"""Finds a program on this machine, in PATH or in the sbin directories, which an ordinary Debian user does not have in
PATH; and asks one for a line.

Standard library only, and no syntax newer than Python 3.7: `make doctor` runs it before the setup.
"""

from __future__ import annotations

import os
import shutil
import subprocess

SBIN = ("/usr/local/sbin", "/usr/sbin", "/sbin")


def with_sbin(path: str) -> str:
    """The PATH with the sbin directories appended that it lacks."""
    parts = [part for part in path.split(os.pathsep) if part]
    return os.pathsep.join([*parts, *(place for place in SBIN if place not in parts)])


def find_executable(name: str, path: str | None = None) -> str | None:
    """The path of the program `name`, or None. path: if given, only this PATH is searched, instead of $PATH and
    sbin.
    """
    return shutil.which(name, path=with_sbin(os.environ.get("PATH", os.defpath)) if path is None else path)


def output_of(*command: str | os.PathLike[str]) -> str:
    """What a program prints, without spaces around it; "" if it cannot be run, fails, or takes 20 s."""
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=20, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip()
