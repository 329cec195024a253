"""The cache of built kernels: `<cache>/kernels/<key>/{linux, include/, config, build.log, build.json}`; and the kernels
that were installed as wheels (netwarp-kernel, netwarp-kernel-7.3), which have the same directories.

A kernel appears by one rename of a finished directory, and is used only while its binary has the hash in its
build.json. The remains of an interrupted build are never read, and the next build removes them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import importlib.util
import json
import logging
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from ..core.errors import KernelError
from ..core.outside_text import one_line
from .recipe import load_recipe, release_numbers, same_release
from .source import file_sha256

log = logging.getLogger(__name__)
RECORD = "build.json"
WHEELS = "netwarp_kernels"
_FORMAT = 1
_WORK = ".building-"
_RECORD_BYTES = 1 << 20
_NO_RECORD = (OSError, ValueError, TypeError, KeyError, RecursionError)
"""Errors of reading a record that is missing or damaged."""
_KINDS = ("package", "tarball", "directory", "commit")
_ROOT_GUESSED = (6, 12)


@dataclasses.dataclass(frozen=True)
class KernelBuild:
    """One usable guest kernel.

    key: its directory's name ("" for a kernel named by NETWARP_KERNEL that netwarp did not build). binary: the
    executable. include: its user-space headers (None if unknown). release: `uname -r` of the guest. sha256: of the
    executable; two kernels are the same if and only if it is equal. source, compiler: as text. kind: package, tarball,
    directory, commit or environment. recipe: digest of fragment, patches and pins. config_sha256: of the whole .config.
    built_at: UTC, ISO 8601. variant: the label of what was changed on top of the recipe; "": nothing.
    """

    key: str
    binary: Path
    include: Path | None
    release: str
    sha256: str
    source: str
    kind: str
    compiler: str
    recipe: str
    config_sha256: str
    built_at: str
    variant: str = ""


def kernels_dir() -> Path:
    """`$NETWARP_CACHE/kernels`, by default `~/.cache/netwarp/kernels`."""
    return Path(os.environ.get("NETWARP_CACHE") or Path.home() / ".cache/netwarp").absolute() / "kernels"


def list_kernels() -> list[KernelBuild]:
    """Every usable kernel of the cache and of wheels, the newest first. Plain files there (logs) are ignored without a
    warning.
    """
    folders: dict[str, Path] = {}
    for place in (*_wheels(), kernels_dir()):
        with contextlib.suppress(FileNotFoundError):
            folders |= {path.name: path for path in place.iterdir() if path.is_dir() and not path.name.startswith(".")}
    builds = [build for path in folders.values() if (build := read_build(path)) is not None]
    return sorted(builds, key=lambda build: (build.built_at, build.key), reverse=True)


def _wheels() -> list[Path]:
    """The package netwarp_kernels, which all wheels of kernels share (setup/pack_wheels.py)."""
    spec = importlib.util.find_spec(WHEELS)
    return [] if spec is None else [Path(place) for place in spec.submodule_search_locations or ()]


def find_kernel(key: str | None = None) -> KernelBuild | None:
    """The kernel for guests, or None if it must be built first (`netwarp kernel build`).

    key: a kernel's key, or a unique prefix of one. Without it: the executable or release that NETWARP_KERNEL names,
    else the newest kernel made by this checkout's recipe, preferably from the distribution's package of the recipe's
    release: a kernel from a user's own tree, or of another release, is the default only if there is no other. Raises
    KernelError if NETWARP_KERNEL names no kernel, or if several keys begin with `key`.
    """
    if key is None and os.environ.get("NETWARP_KERNEL"):
        return _from_environment(os.environ["NETWARP_KERNEL"])
    builds = list_kernels()
    if key is not None:
        fitting = [build for build in builds if build.key.startswith(key)]
        if len(fitting) > 1 and key not in {build.key for build in fitting}:
            raise KernelError(f"several kernels' keys begin with {key!r}: {', '.join(build.key for build in fitting)}")
        return fitting[0] if fitting else None
    recipe = load_recipe()
    fitting = [
        build for build in builds if build.recipe == recipe.for_release(build.release).digest and not build.variant
    ]

    def distance(build: KernelBuild) -> int:
        own = same_release(build.release, recipe.release)
        return 0 if own and build.kind == "package" else 1 if own else 2

    return min(fitting, key=distance, default=None)


def find_named(name: str) -> KernelBuild | None:
    """The kernel that a spec names, or None if it is not built.

    name: a release ("6.1", "6.1.192": the newest build of it by this checkout's recipe, the distribution's package
    before tarballs, and those before trees), with the label of a variant ("6.12+debug"), or a key of at least 8 digits.
    build.find_build() finds that of a path.
    """
    builds = list_kernels()
    if re.fullmatch(r"[0-9a-f]{8,16}", name):
        return next((build for build in builds if build.key.startswith(name)), None)
    recipe = load_recipe()
    release, _, label = name.partition("+")
    fitting = [
        build
        for build in builds
        if build.variant == label
        and re.match(rf"{re.escape(release)}(?![0-9])", build.release)
        and build.recipe == recipe.for_release(build.release).digest
    ]
    return min(fitting, key=lambda build: _KINDS.index(build.kind), default=None)


def find_binary(sha256: str) -> KernelBuild | None:
    """The kernel of the cache, or that NETWARP_KERNEL names, whose executable has this hash."""
    builds = list_kernels()
    if os.environ.get("NETWARP_KERNEL"):
        builds.append(_from_environment(os.environ["NETWARP_KERNEL"]))
    return next((build for build in builds if build.sha256 == sha256), None)


def asks_for_a_root(binary: Path) -> bool:
    """True if a kernel built here mounts no root file system without `root=`: those before 6.12, which have no block
    layer. With it another command line is hashed into the random generator, so newer ones go without.
    """
    release = recorded_release(binary)
    return bool(release) and release_numbers(release) < _ROOT_GUESSED


def recorded_release(binary: Path) -> str:
    """The release in the record beside an executable; "" if there is none."""
    try:
        return _record(binary.parent)["release"]
    except _NO_RECORD:
        return ""


def read_build(folder: Path) -> KernelBuild | None:
    """The kernel in `folder`; None, with a warning in the log, if its files contradict each other or are incomplete."""
    try:
        record = _record(folder)
        if record.pop("format", None) != str(_FORMAT):
            raise ValueError("written by another version of netwarp")
        include = folder / "include"
        build = KernelBuild(
            key=folder.name, binary=folder / "linux", include=include if include.is_dir() else None, **record
        )
        if file_sha256(build.binary) != build.sha256:
            raise ValueError("the executable is not the one that was built")
        return build
    except _NO_RECORD as error:
        log.warning("kernel %s is not used: %s", folder, error)
        return None


def _record(folder: Path) -> dict[str, str]:
    """The content of build.json, which may come from anywhere: texts of one line. Raises _NO_RECORD."""
    with open(folder / RECORD, "rb") as file:
        record = json.loads(file.read(_RECORD_BYTES))
    if not isinstance(record, dict):
        raise TypeError("its record is no table")
    record |= {"format": str(record.get("format"))}
    for name, value in record.items():
        if not isinstance(value, str) or len(value) > 2000 or one_line(value) != value:
            raise ValueError(f"its {name[:40]!r} is no text of one line")
    return record


def write_record(folder: Path, build: KernelBuild) -> None:
    """Write build.json: all of `build` but what its place says."""
    record = dataclasses.asdict(build)
    for name in ("key", "binary", "include"):
        del record[name]
    (folder / RECORD).write_text(json.dumps({"format": _FORMAT, **record}, indent=1) + "\n")


@contextlib.contextmanager
def workspace(key: str, enter: Callable[[str], None]) -> Iterator[Path]:
    """An empty directory for a build, locked by the cache's lock, and removed at the end in every case.

    One build at a time. The remains of a killed build are removed. `enter`: called with the name of each step that may
    take a while. Raises KernelError if the cache cannot be written.
    """
    cache = kernels_dir()
    try:
        cache.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(cache / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise KernelError(f"the cache cannot be written: {error}; name another place with NETWARP_CACHE") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            enter("waits for another build")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        for left in cache.glob(f"{_WORK}*"):
            shutil.rmtree(left)
        folder = cache / f"{_WORK}{key}"
        folder.mkdir()
        try:
            yield folder
        finally:
            enter("removes its working files")
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(descriptor)


def install(folder: Path, key: str) -> KernelBuild:
    """Move a finished kernel directory (inside the workspace) into the cache, replacing a broken one with the
    same key.
    """
    target = kernels_dir() / key
    if target.exists():
        target.rename(folder.parent / "replaced")
    folder.rename(target)
    build = read_build(target)
    if build is None:
        raise KernelError(f"{target} changed while it was being installed")
    return build


def add_headers(build: KernelBuild, headers: Path) -> Path:
    """Put headers that were made without the kernel beside one that has none, as a wheel's; returns their place."""
    place = build.binary.parent / "include"
    with workspace(f"include-{build.key}", lambda stage: None) as work:
        if not place.is_dir():
            shutil.copytree(headers, work / "include")
            (work / "include").rename(place)
    return place


def _from_environment(name: str) -> KernelBuild:
    if re.fullmatch(r"\d+\.\d+(\.\d+)?(\+\S+)?", name):
        if (build := find_named(name)) is None:
            raise KernelError(f"NETWARP_KERNEL={name}: no such kernel is built or installed")
        return build
    binary = Path(name).expanduser().absolute()
    if (
        (binary.parent / RECORD).is_file()
        and (build := read_build(binary.parent)) is not None
        and build.binary == binary
    ):
        return build
    try:
        answer = subprocess.run([binary, "--version"], capture_output=True, text=True, timeout=20, check=True)
        digest = file_sha256(binary)
    except (OSError, subprocess.SubprocessError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise KernelError(f"NETWARP_KERNEL={binary} is not a User-Mode Linux executable: {why}") from error
    if not re.fullmatch(r"\d+\.\d+\S*", answer.stdout.strip()):  # UML's --version is its release and nothing else
        raise KernelError(f"NETWARP_KERNEL={binary} is not a User-Mode Linux executable: --version says no release")
    return KernelBuild(
        key="",
        binary=binary,
        include=None,
        release=answer.stdout.strip(),
        sha256=digest,
        source=str(binary),
        kind="environment",
        compiler="",
        recipe="",
        config_sha256="",
        built_at="",
    )
