"""manifest.json: everything needed to say what a run was, and to repeat it.

`engine` writes it; reports, comparisons and merges read it, also that of an old run: a new field needs a default.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from ..core.checkout import CHECKOUT, INSTALLED
from ..core.frozen import Frozen
from ..core.outside_text import one_line
from ..core.version import __version__
from .run_dir import FORMAT_VERSION

PACKAGES = ("numpy", "msgspec", "pyroute2", "zstandard", "plotly", "matplotlib", "jinja2")


class Manifest(Frozen, frozen=True):
    """Written at the start, and again with `ended_utc` at the end.

    kernel_sha256, programs: of the binaries in the guest. git_commit, git_dirty: of netwarp's own checkout, None
    outside one. wall_s: duration of the cells; None if a run was resumed. kernel_source: the source it was built from,
    or its package. uml_mode: release of each guest kernel -> "ptrace" or "seccomp": how it runs programs on this
    machine.
    """

    format_version: int
    netwarp_version: str
    spec: str
    spec_path: str
    spec_sha256: str
    arguments: tuple[str, ...]
    seed: int
    repetitions: int
    backend: str
    jobs: int
    kernel_release: str
    kernel_sha256: str
    programs: dict[str, str]
    git_commit: str | None
    git_dirty: bool | None
    tools: dict[str, str]
    host_cores: int
    host_kernel: str
    host_cpu: str
    host_load_1min: float
    started_utc: str
    ended_utc: str | None = None
    wall_s: float | None = None
    kernel_source: str = ""
    other_programs: tuple[str, ...] = ()
    """Of a run put together from others by its cells: those whose programs or analyser are other builds, as "path:
    names".
    """
    uml_mode: dict[str, str] = msgspec.field(default_factory=dict)
    software: dict[str, str] = msgspec.field(default_factory=dict)
    """What cells are made and analysed with: digests of netwarp's own source and of the analyser's core, and the
    versions of Python and packages. Empty in runs of before 2026-11-23.
    """

    def __post_init__(self) -> None:
        """Whatever a machine's files called these things: each text becomes one line that acts on no terminal."""
        for name in self.__struct_fields__:
            msgspec.structs.force_setattr(self, name, _one_lines(getattr(self, name)))

    def other_software(self, software: Mapping[str, str]) -> list[str]:
        """The names of what differs in this run's software from another's; [] also where one of them is not known."""
        if not self.software or not software:
            return []
        return sorted(
            name for name in self.software.keys() | software.keys() if self.software.get(name) != software.get(name)
        )

    @property
    def sets(self) -> list[str]:
        """The arguments of --set on the command line, in order."""
        words = self.arguments
        apart = [word for word, before in zip(words[1:], words, strict=False) if before == "--set"]
        return apart + [word.removeprefix("--set=") for word in words if word.startswith("--set=")]


def _one_lines(value: Any) -> Any:
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, tuple):
        return tuple(map(_one_lines, value))
    return {one_line(key): _one_lines(child) for key, child in value.items()} if isinstance(value, dict) else value


def identity_of(kernels: Iterable[tuple[str, str]]) -> tuple[str, str]:
    """(release, sha256) of several kernels, given as such pairs: all releases, and a digest of their hashes."""
    builds = sorted(kernels)
    digest = hashlib.sha256("\n".join(sha256 for _, sha256 in builds).encode()).hexdigest()
    return ", ".join(release for release, _ in builds), digest


def now_utc() -> str:
    """ISO 8601, seconds, Z."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def git_state() -> tuple[str | None, bool | None]:
    """(commit, whether tracked files differ from it) of netwarp's checkout, or (commit, False) of its wheel; None where
    neither is known.
    """
    if INSTALLED:
        return json.loads((CHECKOUT / "commit.json").read_bytes())["commit"], False

    def git(*arguments: str) -> str | None:
        try:
            done = subprocess.run(["git", "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "HEAD")
    changes = git("status", "--porcelain", "--untracked-files=no")
    return commit, None if changes is None else bool(changes)


def cpu_model() -> str:
    """The processor's name, as /proc/cpuinfo has it."""
    for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def tool_versions() -> dict[str, str]:
    """Versions of Python and of the packages that compute numbers."""
    return {"python": platform.python_version(), **{name: version(name) for name in PACKAGES}}


def new_manifest(
    *,
    spec: str,
    spec_path: Path,
    spec_sha256: str,
    arguments: tuple[str, ...],
    seed: int,
    repetitions: int,
    backend: str,
    jobs: int,
    kernel: tuple[str, str],
    kernel_source: str,
    uml_mode: dict[str, str],
    programs: dict[str, str],
    software: dict[str, str],
) -> Manifest:
    """A manifest of a run that starts now. kernel: (release, SHA-256)."""
    commit, dirty = git_state()
    return Manifest(
        format_version=FORMAT_VERSION,
        netwarp_version=__version__,
        spec=spec,
        spec_path=str(spec_path),
        spec_sha256=spec_sha256,
        arguments=arguments,
        seed=seed,
        repetitions=repetitions,
        backend=backend,
        jobs=jobs,
        kernel_release=kernel[0],
        kernel_sha256=kernel[1],
        kernel_source=kernel_source,
        uml_mode=uml_mode,
        programs=programs,
        software=software,
        git_commit=commit,
        git_dirty=dirty,
        tools=tool_versions(),
        host_cores=os.cpu_count() or 1,
        host_kernel=platform.release(),
        host_cpu=cpu_model(),
        host_load_1min=os.getloadavg()[0],
        started_utc=now_utc(),
    )
