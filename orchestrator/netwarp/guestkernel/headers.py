"""Makes the kernel's headers for user space without the kernel: seconds instead of minutes, and for other processors
too.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path

from ..core.errors import KernelError
from ..core.executables import find_executable
from ..core.numbers import fixed
from . import cache
from .recipe import Recipe, load_recipe
from .source import find_source
from .tool_run import Progress, Runner

ARCHES = ("x86", "arm64")
"""As the kernel's makefiles call them."""
_SIGN = "linux/sctp.h"
_FREE_BYTES = 300_000_000
_TOOLS = ("make", "gcc", "tar", "xz")


def make_headers(
    arch: str, progress: Callable[[Progress], None] = lambda _: None, recipe: Recipe | None = None
) -> Path:
    """The directory with the headers for that architecture (of ARCHES), made unless they are cached.

    The source is the distribution's package, as for the guest kernel, so that programs for either have the same
    definitions. Raises KernelError: no source, a missing tool, a failing command, a full disk.
    """
    recipe = recipe or load_recipe()
    if missing := [tool for tool in _TOOLS if find_executable(tool) is None]:
        raise KernelError(f"the kernel's headers need {', '.join(missing)}; `make setup` installs what is missing")
    source = find_source(None, recipe)
    key = hashlib.sha256(json.dumps([source.identity, arch]).encode()).hexdigest()[:16]
    target = cache.kernels_dir().parent / "headers" / f"{arch}-{key}"
    if (target / _SIGN).is_file():
        return target

    with cache.workspace(f"headers-{arch}", lambda stage: progress(Progress(stage, 0, 0, 0.0))) as work:
        if (free := shutil.disk_usage(work).free) < _FREE_BYTES:
            raise KernelError(
                f"the headers need {fixed(_FREE_BYTES / 1e9, 1)} GB below {cache.kernels_dir()}, "
                f"{fixed(free / 1e9, 1)} GB are free; NETWARP_CACHE names another place"
            )
        tree, made = work / "tree", work / "include"
        tree.mkdir()
        log_path = cache.kernels_dir() / f"headers-{arch}.log"
        with log_path.open("wb") as log:
            runner = Runner(log, log_path, recipe.identity, progress)
            runner.enter("unpacks")
            top = recipe.package  # Debian's tarball has one directory of that name
            parts = [
                f"{top}/{name}"
                for name in ("Makefile", "Kbuild", "scripts", "include", "usr", "tools/include", f"arch/{arch}")
            ]
            unpack = ["tar", "-x", "--strip-components=1", "-C", str(tree), "-f", str(source.path), "-I", "xz -T0"]
            runner.run([*unpack, f"--exclude={top}/arch/{arch}/boot/*", *parts], cwd=tree)
            runner.enter("makes the headers")
            runner.run([*recipe.make, f"ARCH={arch}", "headers"], cwd=tree)
        for header in sorted((tree / "usr/include").rglob("*.h")):  # what headers_install does, which needs rsync
            place = made / header.relative_to(tree / "usr/include")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(header, place)
        if not (made / _SIGN).is_file():
            raise KernelError(f"{source.path} made no {_SIGN}; the whole log: {log_path}")
        log_path.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(work / "replaced")
        made.rename(target)
    return target
