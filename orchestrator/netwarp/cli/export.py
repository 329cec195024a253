"""`netwarp export`: captures as plain files, which any program reads."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import os
import shutil
import zlib
from collections.abc import Sequence
from pathlib import Path

import zstandard

from ..core.errors import CaptureError, SpecError, StoreError
from ..store.run_dir import RunDir
from .analyze import CAPTURES

PACKED = (".zst", ".gz")
HEADER_BYTES = 18
"""Of a Zstandard frame, at most (RFC 8878 3.1.1): the size of its content is in it, -1 where that is not said."""


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser("export", help="write captures as plain pcap files")
    parser.add_argument(
        "captures", nargs="+", type=Path, metavar="CAPTURE | CELL_DIR",
        help="captures (.zst and .gz are expanded, others copied), or directories of them, a cell's among them",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=Path(), help="directory to write to (default: here)")
    parser.set_defaults(run=run_export)


def run_export(args: argparse.Namespace) -> int:
    """Everything is looked at before the first file is written. Raises SpecError, CaptureError, StoreError."""
    wanted = _targets([source for path in args.captures for source in _sources(path)], args.out)
    new = not args.out.exists()
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        for target, source in wanted.items():
            expand(source, target)
            print(target)
    except BaseException:
        if new:
            with contextlib.suppress(OSError):  # not empty: what is whole stays
                args.out.rmdir()
        raise
    return 0


def _sources(path: Path) -> list[Path]:
    """A capture, or those of a directory."""
    if not path.is_dir():
        if not path.is_file():
            raise CaptureError(f"{path}: no such capture")
        return [path]
    if RunDir(path).plan.is_file():
        raise SpecError(f"{path}: is a whole run; name cells of it: {path / 'cells' / 'CELL_ID'}")
    folder = path / "capture" if (path / "capture").is_dir() else path
    found = sorted({one for pattern in CAPTURES for one in folder.glob(pattern)})
    if not found:
        raise CaptureError(f"{path}: there is no capture in it")
    return found


def _targets(sources: Sequence[Path], out: Path) -> dict[Path, Path]:
    """Where each goes; raises StoreError where a file is there, or two have one name."""
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
    """Write a capture's plain bytes into a file that is whole or not there; raises CaptureError."""
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
