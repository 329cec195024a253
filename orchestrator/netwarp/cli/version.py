"""`netwarp --version`: what to say in a report of a bug, and in a paper."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from ..core.errors import KernelError
from ..core.version import __version__


class Version(argparse.Action):
    """Print and exit."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """As argparse calls it."""
        print("\n".join(version_lines()))
        parser.exit()


def version_lines() -> list[str]:
    """netwarp with the commit of its checkout or wheel, where one is known; the guest's kernel; this machine's."""
    import platform  # here, as the next: every command has --version, and few need either

    from ..store.manifest import git_state

    commit, dirty = git_state()
    of = "" if commit is None else f" (commit {commit}{', with uncommitted changes' if dirty else ''})"
    return [
        f"netwarp {__version__}{of}",
        f"guest kernel: {_guest_kernel()}",
        f"this machine: Linux {platform.release()} {platform.machine()}, Python {platform.python_version()}",
    ]


def _guest_kernel() -> str:
    from ..guestkernel import find_kernel

    try:
        kernel = find_kernel()
    except KernelError as error:
        return f"none: {error}"
    if kernel is None:
        return "none built (make kernel)"
    return f"Linux {kernel.release}, sha256 {kernel.sha256}, from {kernel.source}"
