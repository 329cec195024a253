"""Where the built programs and the kernel are; one sentence and a remedy where they are not."""

from __future__ import annotations

import hashlib
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.errors import BackendUnavailable
from ..doctor import check_virtual
from ..guestkernel import KernelBuild, find_kernel


def build_directory() -> Path:
    """Where `make setup` puts the built programs."""
    return CHECKOUT / "build"


def usable_kernel() -> KernelBuild:
    """The kernel of the virtual back end; raises BackendUnavailable with every remedy where it cannot run here."""
    problems = check_virtual()
    kernel = None if problems else find_kernel()
    if kernel is None:
        text = "\n".join(f"  {problem.what}\n    {problem.remedy}" for problem in problems)
        raise BackendUnavailable(f"the virtual back end cannot run here:\n{text}")
    return kernel


IN_GUEST = ("bin/cell-init", "bin/sender", "bin/receiver", "lib/seed.so")
"""The programs that play a part in what a capture holds."""


def program_digests() -> dict[str, str]:
    """SHA-256 of every program of a guest: with the kernel's, what makes two runs the same instrument."""
    return {name: hashlib.sha256((build_directory() / name).read_bytes()).hexdigest() for name in IN_GUEST}
