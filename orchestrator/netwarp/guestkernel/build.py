"""Builds a guest kernel, or its headers alone, from a source and this checkout's recipe, in a copy, into the cache."""

from __future__ import annotations

import datetime
import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from ..core.errors import DoesNotBuild, KernelError
from ..core.executables import find_executable, output_of, with_sbin
from ..core.numbers import fixed
from . import cache
from .cache import KernelBuild
from .congestion import check_congestion
from .recipe import Patch, Recipe, explain, is_known, load_recipe, parse_config, unmet
from .source import KernelSource, file_sha256, find_source, release_of, unpack
from .tool_run import Progress, Runner
from .variant import KEPT, PLAIN, Variant

_TOOLS = ("make", "gcc", "ld", "flex", "bison", "bc", "tar", "xz", "patch", "strip")
CCACHE = Path("/usr/lib/ccache")
"""Debian's: links of the names of compilers."""
_HEADERS_TOOLS = ("make", "gcc", "tar", "xz")
HEADERS_ARCHES = ("x86", "arm64")
"""As the kernel's makefiles call them."""
_HEADERS_SIGN = "linux/sctp.h"
_HEADERS_BYTES = 300_000_000


def build_kernel(
    source: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[Progress], None] = lambda _: None,
    recipe: Recipe | None = None,
    *,
    variant: Variant = PLAIN,
) -> KernelBuild:
    """Build the kernel from `source`, unless it is cached.

    source: as for find_source(); None: the distribution's package. jobs: compilers at once (None: one per core).
    variant: what is changed in it. progress: called from this thread during the build. Raises DoesNotBuild: a patch or
    option that does not apply, a compiler error; KernelError: no source, a missing tool, a full disk. KeyboardInterrupt
    is passed on after every child has ended and the unfinished build is removed.
    """
    recipe = recipe or load_recipe()
    _need_tools("the kernel build needs", _TOOLS)
    tree = find_source(source, recipe)
    base = recipe.for_release(release_of(tree))
    recipe = variant.on(base)
    compiler = toolchain()
    key = kernel_key(tree, recipe, compiler, variant)
    target = cache.kernels_dir() / key
    if target.exists() and (build := cache.read_build(target)) is not None:
        return build
    started = time.monotonic()

    def enter(stage: str) -> None:
        progress(Progress(stage, 0, 0, time.monotonic() - started))

    with cache.workspace(key, enter) as work:
        if target.exists() and (build := cache.read_build(target)) is not None:  # the one we waited for
            return build
        _need_room("building needs", work, recipe.free_bytes)
        log_path = cache.kernels_dir() / f"{key}.log"
        with log_path.open("wb") as log:
            runner = Runner(log, log_path, recipe.identity | _compiled_before(), progress)
            release = _make(tree, recipe, variant, work, jobs or len(os.sched_getaffinity(0)), runner)
        kernel = work / "kernel"
        build = KernelBuild(
            key=key,
            binary=kernel / "linux",
            include=kernel / "include",
            release=release,
            sha256=file_sha256(kernel / "linux"),
            source=tree.text,
            kind=tree.kind,
            compiler=compiler,
            recipe=base.digest,
            config_sha256=file_sha256(kernel / "config"),
            built_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            variant=variant.label,
        )
        log_path.rename(kernel / "build.log")
        cache.write_record(kernel, build)
        return cache.install(kernel, key)


def find_build(name: str, beside: Path) -> KernelBuild | None:
    """The kernel that a spec names: the build of a tree or tarball as it is now, if `name` is a path (a relative one
    begins at `beside`); otherwise as find_named(). None: it is not built. Raises KernelError if there is no such path.
    """
    if "/" not in name:
        return cache.find_named(name)
    recipe = load_recipe()
    source = find_source(beside / Path(name).expanduser(), recipe)
    key = kernel_key(source, recipe.for_release(release_of(source)), toolchain())
    place = cache.kernels_dir() / key
    return cache.read_build(place) if place.is_dir() else None


def toolchain() -> str:
    """Compiler, linker and C library as one line: the binary depends on all three."""
    lines = []
    for tool in ("gcc", "ld"):
        answer = subprocess.run(
            [tool, "--version"], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}
        )
        lines.append(answer.stdout.splitlines()[0])
    # getconf, not this Python: the compiler may be that of another root (setup/wheels.sh)
    return ", ".join([*lines, output_of("getconf", "GNU_LIBC_VERSION") or "another C library"])


def _compiled_before() -> dict[str, str]:
    """The environment in which gcc is ccache's, where that is installed: a file that was compiled before, in any tree,
    is not compiled again, and the objects are the same.
    """
    if not CCACHE.is_dir():
        return {}
    kept = cache.kernels_dir().parent / "ccache"
    return {"PATH": with_sbin(f"{CCACHE}{os.pathsep}{os.environ.get('PATH', os.defpath)}"), "CCACHE_DIR": str(kept)}


def kernel_key(source: KernelSource, recipe: Recipe, compiler: str, variant: Variant = PLAIN) -> str:
    """16 hex digits of the SHA-256 of everything from which the binary is made."""
    inputs = json.dumps([source.identity, recipe.digest, compiler, *([variant.digest] if variant.label else [])])
    return hashlib.sha256(inputs.encode()).hexdigest()[:16]


def _make(source: KernelSource, recipe: Recipe, variant: Variant, work: Path, jobs: int, runner: Runner) -> str:
    """Unpack, patch, configure, compile; leaves work/kernel/{linux, config, include/} and returns the release."""
    tree = work / "tree"
    runner.enter("unpacks")
    unpack(source, tree, recipe, runner)
    _prepare(recipe, variant, tree, runner)
    _compile(recipe, tree, jobs, runner)
    _headers(recipe, tree, jobs, runner)
    return _collect(tree, work / "kernel", variant, runner)


def _prepare(recipe: Recipe, variant: Variant, tree: Path, runner: Runner) -> None:
    runner.enter("patches")
    for patch in recipe.patches:
        apply_patch(patch, tree)
    check_congestion(variant, tree)
    variant.lay(tree)
    runner.enter("configures")
    configure(recipe, tree, runner)


def _compile(recipe: Recipe, tree: Path, jobs: int, runner: Runner) -> None:
    runner.enter("compiles")
    runner.run([*recipe.make, f"-j{jobs}", "ARCH=um", "linux"], cwd=tree, objects=recipe.objects)


def _headers(recipe: Recipe, tree: Path, jobs: int, runner: Runner) -> None:
    runner.enter("makes the headers")  # ARCH=um has none; the guest's system calls are x86-64's
    runner.run([*recipe.make, f"-j{jobs}", "ARCH=x86", "headers"], cwd=tree)


def _collect(tree: Path, kernel: Path, variant: Variant, runner: Runner) -> str:
    """Puts the parts of a kernel's directory into the new directory `kernel`; returns the release."""
    runner.enter("installs")
    kernel.mkdir()
    runner.run(["strip", "-o", str(kernel / "linux"), str(tree / "linux")], cwd=tree)
    shutil.copyfile(tree / ".config", kernel / "config")
    _copy_headers(tree / "usr/include", kernel / "include")
    for path in sorted(path for pattern in variant.kept for path in tree.rglob(pattern)):
        place = kernel / KEPT / path.relative_to(tree)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return (tree / "include/config/kernel.release").read_text().strip()


def _copy_headers(made: Path, target: Path) -> None:
    """The work of headers_install, which needs rsync."""
    for header in sorted(made.rglob("*.h")):
        place = target / header.relative_to(made)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(header, place)


def configure(recipe: Recipe, tree: Path, runner: Runner) -> None:
    """Runs allnoconfig with the fragment and olddefconfig, and checks that every option took.

    KCONFIG_ALLCONFIG keeps options off that the fragment only makes visible: fewer files, and nothing that was not
    asked for. Raises KernelError that names each option that did not take, with the reason as far as the Kconfig files
    show it.
    """
    wanted = tree / "netwarp.config"
    wanted.write_text("".join(f"{option.line}\n" for option in recipe.fragment))
    runner.run([*recipe.make, "ARCH=um", f"KCONFIG_ALLCONFIG={wanted.name}", "allnoconfig"], cwd=tree)
    runner.run([*recipe.make, "ARCH=um", "olddefconfig"], cwd=tree)
    config = parse_config((tree / ".config").read_text())
    failed = [
        option
        for option in unmet(recipe.fragment, config)
        if option.name not in recipe.where_possible
        and (option.name not in recipe.where_known or is_known(option.name, tree))
    ]
    if failed:
        lines = "\n".join(f"  {explain(option, config, tree)}" for option in failed)
        raise DoesNotBuild(f"the kernel's configuration did not take {len(failed)} of the fragment's options:\n{lines}")


def apply_patch(patch: Patch, tree: Path) -> bool:
    """Apply one patch; False if the tree has it already. Raises KernelError if it fits neither way."""

    def attempt(*options: str) -> subprocess.CompletedProcess[bytes]:
        command = ["patch", "-p1", "--force", "--fuzz=0", "--silent", "--no-backup-if-mismatch", *options]
        return subprocess.run(command, cwd=tree, input=patch.text, capture_output=True, check=False)

    if attempt("--reverse", "--dry-run").returncode == 0:
        return False
    if (tried := attempt("--forward", "--dry-run")).returncode != 0:
        said = (tried.stdout + tried.stderr).decode(errors="replace").strip()
        raise DoesNotBuild(f"patch {patch.name} does not fit this source:\n{said}")
    attempt("--forward").check_returncode()
    return True


def make_headers(arch: str, progress: Callable[[Progress], None] = lambda _: None) -> Path:
    """The directory with the headers for user space of that architecture (of HEADERS_ARCHES), made unless they are
    cached: seconds instead of a kernel's minutes, and for other processors too.

    The source is the distribution's package, as for the guest kernel, so that programs for either have the same
    definitions. Raises KernelError: no source, a missing tool, a failing command, a full disk.
    """
    recipe = load_recipe()
    _need_tools("the kernel's headers need", _HEADERS_TOOLS)
    source = find_source(None, recipe)
    key = hashlib.sha256(json.dumps([source.identity, arch]).encode()).hexdigest()[:16]
    target = cache.kernels_dir().parent / "headers" / f"{arch}-{key}"
    if (target / _HEADERS_SIGN).is_file():
        return target
    with cache.workspace(f"headers-{arch}", lambda stage: progress(Progress(stage, 0, 0, 0.0))) as work:
        _need_room("the headers need", work, _HEADERS_BYTES)
        tree, made = work / "tree", work / "include"
        tree.mkdir()
        log_path = cache.kernels_dir() / f"headers-{arch}.log"
        with log_path.open("wb") as log:
            runner = Runner(log, log_path, recipe.identity, progress)
            runner.enter("unpacks")
            top = recipe.package  # Debian's tarball has one directory of that name
            parts = ("Makefile", "Kbuild", "scripts", "include", "usr", "tools/include", f"arch/{arch}")
            unpacking = ["tar", "-x", "--strip-components=1", "-C", str(tree), "-f", str(source.path), "-I", "xz -T0"]
            unpacking += [f"--exclude={top}/arch/{arch}/boot/*", *(f"{top}/{name}" for name in parts)]
            runner.run(unpacking, cwd=tree)
            runner.enter("makes the headers")
            runner.run([*recipe.make, f"ARCH={arch}", "headers"], cwd=tree)
        _copy_headers(tree / "usr/include", made)
        if not (made / _HEADERS_SIGN).is_file():
            raise KernelError(f"{source.path} made no {_HEADERS_SIGN}; the whole log: {log_path}")
        log_path.unlink()
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(work / "replaced")
        made.rename(target)
    return target


def _need_tools(what: str, tools: tuple[str, ...]) -> None:
    if missing := [tool for tool in tools if find_executable(tool) is None]:
        raise KernelError(f"{what} {', '.join(missing)}; `make setup` installs what is missing")


def _need_room(what: str, place: Path, needed_bytes: int) -> None:
    if (free := shutil.disk_usage(place).free) < needed_bytes:
        raise KernelError(
            f"{what} {fixed(needed_bytes / 1e9, 1)} GB below {cache.kernels_dir()}, "
            f"{fixed(free / 1e9, 1)} GB are free; NETWARP_CACHE names another place"
        )
