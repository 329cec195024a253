"""A kernel as it is asked for in one word: SOURCE, SOURCE@COMMIT, with +PATCH as often as wanted.

6.12                       a release that is built; 7b0c6d9f03a1e5c2, the key of a build; 6.12+debug, a variant
linux-source-6.12          a package of the distribution, or its file (.deb)
~/linux                    a tree as it is now; linux.tar.xz, a tarball
~/linux@v6.12              a commit of a git repository
6.12+fix.patch             the source of that build with a patch (.patch, .diff, .mbox); ~/linux@v6.12+a.patch+b.patch
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ..core.errors import KernelError
from .build import build_kernel
from .cache import KernelBuild, find_named
from .recipe import load_recipe
from .source import find_source
from .tool_run import Progress
from .variant import combined, patched

PATCHES = (".patch", ".diff", ".mbox")
EXAMPLE = "for example 6.12, 6.12+fix.patch, ~/linux, ~/linux@v6.12"


@dataclass(frozen=True, slots=True)
class AskedKernel:
    """A kernel that was asked for. source: a path, a package, or the name of a build; patches: files."""

    text: str
    source: str
    patches: tuple[Path, ...] = ()


def parse_asked(text: str) -> AskedKernel:
    """Divide the word. A path that exists is never divided. Raises KernelError: a patch that is not there."""
    source = text
    patches: list[Path] = []
    while not Path(source).expanduser().exists():
        before, plus, last = source.rpartition("+")
        if not plus or Path(last).suffix not in PATCHES:
            break
        file = Path(last).expanduser()
        if not before:
            raise KernelError(f"{text}: a patch of which kernel? {EXAMPLE}")
        if not file.is_file():
            raise KernelError(f"{text}: there is no file {last}; a patch is a file of `git format-patch` or `git diff`")
        source, patches = before, [file, *patches]
    return AskedKernel(text, source, tuple(patches))


def source_of(build: KernelBuild) -> Path:
    """What a kernel was built from, as find_source() takes it. Raises KernelError if it is not here any more."""
    name = build.source.split()[0] if build.kind == "package" else build.source
    source = Path(name)
    try:
        found = find_source(source, load_recipe())
    except KernelError as error:
        raise KernelError(
            f"Linux {build.release} was built from {build.source}, which is not here: name its source "
            f"(a package's file, a tarball or a tree) in place of the release\n{error}"
        ) from error
    if build.kind in ("package", "commit") and found.text != build.source:
        raise KernelError(f"Linux {build.release} was built from {build.source}, and {found.text} is here now")
    return source


def build_asked(
    asked: AskedKernel, jobs: int | None = None, progress: Callable[[Progress], None] = lambda _: None
) -> tuple[KernelBuild, Path | None]:
    """The kernel, built unless it is, and its source, as find_source() takes it (None: only the kernel is here).

    Raises KernelError: it cannot be had; DoesNotBuild: as of build_kernel().
    """
    build = None if Path(asked.source).expanduser().exists() else find_named(asked.source)
    if build is None:
        source = Path(asked.source).expanduser()
        if not {"/", "@"} & set(asked.source) and not source.exists() and not asked.source.startswith("linux-source-"):
            raise KernelError(f"{asked.text}: there is no such path, and no such kernel is built; {EXAMPLE}")
    elif asked.patches:
        source = source_of(build)
    else:
        try:
            return build, source_of(build)
        except KernelError:
            return build, None
    variant = combined(patched(file) for file in asked.patches)
    return build_kernel(source, jobs, progress, variant=variant), source
