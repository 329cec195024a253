"""One line of the doctor's report, and helpers of its checks. Standard library only: there may be no virtual
environment yet.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

from ..core.numbers import fixed


@dataclass(frozen=True)
class Finding:
    """`state`: ok; missing: the virtual back end cannot run; warning: it can, with a drawback; note: only other back
    ends need it. `remedy` is empty if nothing has to be done.
    """

    what: str
    state: str
    detail: str
    remedy: str = ""


def answers_in_child(expression: str) -> bool:
    """True if an expression over `libc` is. A child process evaluates it: the call may change a process for good.

    If a signal ended the child there is no answer (somebody killed it, or the call itself is deadly here): it is
    repeated once.
    """
    code = f"import ctypes; libc = ctypes.CDLL(None, use_errno=True); raise SystemExit(not ({expression}))"
    # -I -S: nothing of the caller's environment, no site packages
    command = [sys.executable, "-ISc", code]
    for _ in range(2):
        status = subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode
        if status >= 0:
            return status == 0
    return False


def gigabytes(count: int) -> str:
    """In words."""
    return f"{fixed(count / 1e9, 1)} GB"
