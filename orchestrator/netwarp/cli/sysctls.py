"""The sysctls of the kernel of a run, for the plan to check; where they cannot be had, that is said."""

from __future__ import annotations

import subprocess
import sys

from ..core.errors import BackendUnavailable, CellError
from ..plan.sysctls import KernelSysctls
from ..sandbox.choose import choose
from ..sandbox.kernel_sysctls import guest_sysctls, host_sysctls
from ..sandbox.virtual import GuestBackend


def kernel_sysctls(backend: str) -> KernelSysctls | None:
    """Of the kernel that the back end of this name runs; None after saying why not."""
    try:
        chosen = choose(backend)
        if chosen.kernel is None:
            return host_sysctls()
        assert isinstance(chosen.backend, GuestBackend)
        return guest_sysctls(chosen.kernel, chosen.backend)
    except BackendUnavailable:
        why = f"no kernel to ask, the back end {backend} cannot run here; netwarp doctor says why"
    except (CellError, OSError, subprocess.TimeoutExpired) as error:
        why = str(error)
    print(f"netwarp: names of sysctls are not checked: {why}", file=sys.stderr)
    return None
