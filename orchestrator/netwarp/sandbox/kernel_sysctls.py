"""The sysctls of the kernel that cells run on.

A guest kernel is booted once and its sysctls are listed on a host of a cell; the answer is cached under the kernel's
SHA-256.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
from pathlib import Path

from ..core.errors import CellError, StoreError
from ..core.scratch import scratch
from ..guestkernel import KernelBuild
from ..guestkernel.cache import kernels_dir
from ..plan.sysctls import KernelSysctls
from ..store.run_dir import CellDir, write_atomic
from .live_network import STDERR, STDOUT, guest_shell, shell_status
from .netns import PROBE
from .virtual import GuestBackend

FORMAT = 1
BOOT_S = 120
"""A boot takes about a second; after this time the guest is given up."""
SYSCTLS = Path("/proc/sys/net")
_ASK = ("find", str(SYSCTLS), "-type", "f", "-printf", "%m %P\\n")


def guest_sysctls(kernel: KernelBuild, backend: GuestBackend) -> KernelSysctls:
    """The sysctls of a guest kernel, from the cache, or from a guest booted now. Raises CellError, OSError."""
    kept = kernels_dir().parent / "sysctls" / f"{kernel.sha256}.json"
    named = f"Linux {kernel.release}"
    try:
        record = json.loads(kept.read_bytes())
        if record["format"] == FORMAT:
            return KernelSysctls(named, dict(record["sysctls"]))
    except (OSError, ValueError, KeyError, TypeError):
        pass  # not asked yet, or by another version
    lines = [line.partition(" ") for line in _ask(backend).splitlines()]
    sysctls = {_name(path): bool(int(mode, 8) & 0o200) for mode, _, path in lines}
    record = {"format": FORMAT, "kernel": kernel.release, "sysctls": sysctls}
    with contextlib.suppress(StoreError):  # a cache that cannot be written: the next call boots a guest again
        write_atomic(kept, json.dumps(record, indent=1, sort_keys=True).encode() + b"\n")
    return KernelSysctls(named, sysctls)


def host_sysctls() -> KernelSysctls:
    """The sysctls of this machine's own kernel, as its first network namespace has them."""
    sysctls: dict[str, bool] = {}
    for folder, _, files in os.walk(SYSCTLS):
        for path in (Path(folder) / name for name in files):
            sysctls[_name(str(path.relative_to(SYSCTLS)))] = bool(path.stat().st_mode & 0o200)
    return KernelSysctls(f"this machine's Linux {platform.release()}", sysctls)


def _ask(backend: GuestBackend) -> str:
    with scratch("netwarp-sysctls-") as place:
        place.chmod(0o711)  # the sandbox's user, who may not be this one, must reach its directory
        directory = CellDir(place / "cell")
        environment = {"PATH": os.defpath, "LC_ALL": "C"}
        with guest_shell(
            backend, PROBE, directory, PROBE.nodes[0].name, _ASK,
            environment=environment, at=Path("/"), terminal=None,
        ) as sandbox:  # fmt: skip
            sandbox.wait(BOOT_S)
        if (status := shell_status(directory)) != 0:
            errors = (directory.root / STDERR).read_text(errors="replace").strip() or "it wrote no error"
            raise CellError(f"the guest that lists the kernel's sysctls failed with status {status}: {errors}")
        return (directory.root / STDOUT).read_text()


def _name(path: str) -> str:
    return "net." + path.replace("/", ".")
