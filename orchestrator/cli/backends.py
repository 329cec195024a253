"""Which back end runs a plan, and why."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass

from ..backends import GuestBackend, Progress, SandboxBackend, VirtualBackend, netns_backend
from ..doctor import check_virtual
from ..errors import BackendUnavailable
from ..kernel import KernelBuild, find_kernel
from ..model import Problem
from .programs import build_directory

BACKENDS = ("auto", "virtual", "guest", "netns", "hosts")
HOST_KERNEL = "host"
"""Stands for the digest of a kernel that no file of this machine is known to be."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """A back end that can run here. kernel: the guest's, None on the host's own. why: of `auto`, a sentence, or ""."""

    backend: SandboxBackend
    kernel: KernelBuild | None
    why: str = ""

    @property
    def identity(self) -> tuple[str, str]:
        """(release, sha256) of the kernel under test."""
        if self.kernel is None:
            return f"{platform.release()} {platform.version()}", HOST_KERNEL
        return self.kernel.release, self.kernel.sha256


def choose(name: str, progress: Progress = lambda cell_id, virtual_s: None) -> Chosen:
    """The back end of that name (of BACKENDS). Raises BackendUnavailable with every remedy where it cannot run here."""
    if name == "hosts":
        raise BackendUnavailable("the back end 'hosts' is not built yet; use --backend virtual")
    if name == "netns":
        backend, problems = netns_backend(build_directory(), progress)
        if problems:
            raise BackendUnavailable(cannot("netns", problems))
        return Chosen(backend, None)
    problems = check_virtual()
    kernel = None if problems else find_kernel()
    if kernel is not None:
        kind = GuestBackend if name == "guest" else VirtualBackend
        return Chosen(kind(kernel.binary, build_directory(), problems=check_virtual, progress=progress), kernel)
    said = cannot("guest" if name == "guest" else "virtual", problems)
    if name == "auto":
        other, more = netns_backend(build_directory(), progress)
        if not more:
            return Chosen(other, None, f"{said}\nso cells run on this machine's own kernel, on the wall clock (netns)")
        said += "\n" + cannot("netns", more)
    raise BackendUnavailable(said)


def cannot(name: str, problems: Sequence[Problem]) -> str:
    """Why a back end cannot run here, and every remedy."""
    text = "\n".join(f"  {problem.what}\n    {problem.remedy}" for problem in problems)
    return f"the {name} back end cannot run here:\n{text}"
