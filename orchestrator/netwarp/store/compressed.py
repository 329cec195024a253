"""Zstandard files: a cell's file is kept compressed as <name>.zst, and read under either name."""

from __future__ import annotations

import os
from pathlib import Path

import zstandard

SUFFIX = ".zst"
LEVEL = 3


def packed(path: Path) -> Path:
    """The name of the compressed file."""
    return path.with_name(path.name + SUFFIX)


def packed_bytes(data: bytes) -> bytes:
    """The data as one Zstandard frame with its length in the header."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(data)


def compress(path: Path, *, sync: bool = False) -> None:
    """Replace a file by name.zst, whole or not at all; sync: only once that is on the disk."""
    target = packed(path)
    temporary = path.with_name(f".{target.name}")
    with open(path, "rb") as source, open(temporary, "wb") as sink:
        zstandard.ZstdCompressor(level=LEVEL).copy_stream(source, sink, size=path.stat().st_size)
        if sync:
            sink.flush()
            os.fsync(sink.fileno())
    os.replace(temporary, target)
    path.unlink()


def exists(path: Path) -> bool:
    """True if the file is there, plain or compressed."""
    return path.exists() or packed(path).exists()


def read(path: Path) -> bytes:
    """The content of the plain or the compressed file. Raises OSError, also if it cannot be decompressed."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        data = packed(path).read_bytes()
        try:
            return zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError as error:
            raise OSError(0, f"cannot be expanded: {error}", str(packed(path))) from error
