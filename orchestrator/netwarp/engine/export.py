"""Writes captures as plain files, which any program can read."""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import zstandard

from ..core.errors import CaptureError, SpecError, StoreError
from ..core.invocation import command
from ..store.run_dir import RunDir
from .captures import captures_of

PACKED = (".zst", ".gz")
HEADER_BYTES = 18
"""Of a Zstandard frame, at most (RFC 8878 3.1.1): the size of its content is in it, -1 where that is not said."""


def export_captures(paths: Sequence[str | Path], out: str | Path) -> Iterator[Path]:
    """Write captures (.zst and .gz decompressed, others copied), or those in directories, into `out`; yields each new
    file.

    All sources and targets are checked before the first file is written. Raises SpecError, CaptureError, StoreError.
    """
    folder = Path(out)
    targets = _targets([source for path in paths for source in _sources(Path(path))], folder)
    new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, source in targets.items():
            expand(source, target)
            yield target
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # not empty: what is whole stays
                folder.rmdir()
        raise


def _sources(path: Path) -> list[Path]:
    """A capture, or the captures in a directory."""
    if not path.is_dir():
        if not path.is_file():
            if path.name in RunDir(path.parent.parent).finished():
                raise SpecError(
                    f"{path}: that cell is packed; `{command('archive', 'unpack', path.parent.parent)}` opens it"
                )
            raise CaptureError(f"{path}: no such capture")
        return [path]
    if RunDir(path).plan.is_file():
        raise SpecError(f"{path}: is a whole run; name cells of it: {path / 'cells' / 'CELL_ID'}")
    captures = captures_of(path)
    if not captures:
        raise CaptureError(f"{path}: there is no capture in it")
    return captures


def _targets(sources: Sequence[Path], out: Path) -> dict[Path, Path]:
    """The target file of each source. Raises StoreError if a file exists, or if two sources have the same name."""
    targets: dict[Path, Path] = {}
    for source in sources:
        target = out / (source.stem if source.suffix in PACKED else source.name)
        if target in targets:
            raise StoreError(f"{source} and {targets[target]} would both be {target}; export them one by one")
        if target.exists():
            same = target.samefile(source)
            why = "is plain already" if same else "exists; remove it or choose another --out"
            raise StoreError(f"{target}: {why}")
        targets[target] = source
    return targets


def expand(capture: Path, target: Path) -> None:
    """Write a capture's plain bytes into a file, completely or not at all. Raises CaptureError."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with open(capture, "rb") as source, open(temporary, "wb") as sink:
            if capture.suffix == ".zst":
                size = zstandard.frame_content_size(source.read(HEADER_BYTES))
                source.seek(0)
                _, written = zstandard.ZstdDecompressor().copy_stream(source, sink)
                if written < size:  # the library takes the end of a cut file for that of the frame
                    raise CaptureError(f"{capture}: is cut off: {written} of {size} bytes are in it")
            elif capture.suffix == ".gz":
                with gzip.open(source) as plain:
                    shutil.copyfileobj(plain, sink)
            else:
                shutil.copyfileobj(source, sink)
        os.replace(temporary, target)
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise CaptureError(f"{capture}: cannot be exported: {error}") from error
    finally:
        temporary.unlink(missing_ok=True)
