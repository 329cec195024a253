"""Finds the guest kernel and the programs of a run on a machine of a cluster, by their hashes: its own ones, or ones
sent to it.

Workers need only the Python package. Missing files are sent through the scheduler into `<cache>/shipped/<digest of
all>/`, and are used only if every file has the hash that the run names.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from ..captures.native import LIBRARY_NAME, LIBRARY_VARIABLE, library_path, loaded_digest
from ..core.built_programs import BUILD, BUILT_FILES
from ..core.errors import StoreError
from ..guestkernel import find_kernel, list_kernels
from ..guestkernel.cache import kernels_dir

KERNEL = "linux"
NEEDED = tuple(
    file.path for file in BUILT_FILES if file.in_cell or file.path in ("bin/guest-exec", f"lib/{LIBRARY_NAME}")
)
"""Of the built programs: what a cell in a guest needs, and the analyser's core."""
PACKAGES = ("msgspec", "numpy", "pyroute2", "zstandard")
"""Versions of these may show in a cell's files."""


@dataclass(frozen=True, slots=True)
class Instrument:
    """The kernel, programs and software that cells run on. files: path relative to the programs' directory (KERNEL: the
    kernel) -> SHA-256.

    software: netwarp itself and the packages that affect a cell's files.
    """

    files: Mapping[str, str]
    software: Mapping[str, str]

    @property
    def digest(self) -> str:
        """Of all files."""
        text = "".join(f"{digest} {path}\n" for path, digest in sorted(self.files.items()))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """The directory with an instrument's files on this machine."""

    kernel: Path
    programs: Path


class FilesMissing(Exception):
    """A worker lacks files of an instrument. arguments: the worker's address."""


class Unlike(Exception):
    """A worker has another version of netwarp or of other packages, or has loaded another analyser. arguments: the
    sentence to report.
    """


def instrument_here(kernel_sha256: str) -> Instrument:
    """The instrument of this machine."""
    files = {path: _sha256(BUILD / path) for path in NEEDED}
    return Instrument({KERNEL: kernel_sha256, **files}, software_here())


@functools.cache
def software_here() -> dict[str, str]:
    """A digest of netwarp's own source, and the versions of Python and of the packages that affect a cell's files."""
    root, digest = Path(__file__).parents[1], hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    python = ".".join(platform.python_version_tuple()[:2])
    return {"netwarp": digest.hexdigest()[:16], "Python": python, **{name: version(name) for name in PACKAGES}}


def analyser_here() -> dict[str, str]:
    """The software of this machine, with the SHA-256 of the analyser's core."""
    return {**software_here(), LIBRARY_NAME: _sha256(library_path())}


def files_here(kernel: Path) -> dict[str, bytes]:
    """The content of the files, for sending them."""
    return {KERNEL: kernel.read_bytes(), **{path: (BUILD / path).read_bytes() for path in NEEDED}}


@functools.cache
def _place_of(digest: str, files: tuple[tuple[str, str], ...]) -> Place | None:
    """This machine's own kernel and programs if they have the same hashes, otherwise those sent to it; None:
    neither.
    """
    wanted = dict(files)
    named = find_kernel() if os.environ.get("NETWARP_KERNEL") else None  # it may be in no cache
    known = [*list_kernels(), *([] if named is None else [named])]
    kernels = [build.binary for build in known if build.sha256 == wanted[KERNEL]]
    if kernels and all(_is(BUILD / path, wanted[path]) for path in NEEDED):
        return Place(kernels[0], BUILD)
    folder = _folder(digest)
    return Place(folder / KERNEL, folder) if all(_is(folder / path, sha256) for path, sha256 in files) else None


def place_of(instrument: Instrument, worker: str) -> Place:
    """The place of the instrument on this machine, checked by its hashes. Raises Unlike, FilesMissing."""
    for name, wanted in instrument.software.items():
        here = software_here().get(name)
        if here != wanted:
            raise Unlike(
                f"{worker} has {name} {here}, this machine {wanted}: equal cells would not have equal files; "
                "install the same there (the same checkout, with requirements.lock)"
            )
    place = _place_of(instrument.digest, tuple(sorted(instrument.files.items())))
    if place is None:
        _place_of.cache_clear()  # it may come yet
        raise FilesMissing(worker)
    library = f"lib/{LIBRARY_NAME}"
    if not _is(library_path(), instrument.files[library]):  # also where another run's was taken before
        os.environ[LIBRARY_VARIABLE] = str(place.programs / library)
    if loaded_digest() not in (None, instrument.files[library]):
        raise Unlike(
            f"{worker} has loaded another build of the analyser than this run's, and a process keeps what it has "
            "loaded: restart the worker"
        )
    return place


def keep_shipped(instrument: Instrument, files: Mapping[str, bytes]) -> None:
    """Store an instrument's files in this machine's cache, all or none. Raises StoreError."""
    wrong = [path for path, sha256 in instrument.files.items() if hashlib.sha256(files[path]).hexdigest() != sha256]
    if wrong or any(".." in PurePosixPath(path).parts or path.startswith("/") for path in files):
        raise StoreError(f"what was shipped is not what the run names: {', '.join(wrong)}")
    target = _folder(instrument.digest)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".") as name:
            folder = Path(name) / "files"
            for path in instrument.files:
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(files[path])
                file.chmod(0o755)
            if target.exists():  # damaged, or another worker of this machine was first
                if all(_is(target / path, sha256) for path, sha256 in instrument.files.items()):
                    return
                shutil.rmtree(target, ignore_errors=True)
            folder.rename(target)
    except OSError as error:
        raise StoreError(f"{target}: the shipped kernel and programs cannot be written: {error}") from error


def _folder(digest: str) -> Path:
    return kernels_dir().parent / "shipped" / digest[:32]


def _is(path: Path, sha256: str) -> bool:
    try:
        return _sha256(path) == sha256
    except OSError:
        return False


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
