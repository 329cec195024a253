"""Zstandard files: a file of a cell is kept compressed under its name and .zst, and read by either name."""

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
    """One frame, which says how much it holds."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(data)


def compress(path: Path) -> None:
    """name -> name.zst, whole or not at all."""
    target = packed(path)
    temporary = path.with_name(f".{target.name}")
    with open(path, "rb") as source, open(temporary, "wb") as sink:
        zstandard.ZstdCompressor(level=LEVEL).copy_stream(source, sink, size=path.stat().st_size)
    os.replace(temporary, target)
    path.unlink()


def exists(path: Path) -> bool:
    """Whether the file is there, plain or compressed."""
    return path.exists() or packed(path).exists()


def read(path: Path) -> bytes:
    """Its content, from the plain file or the compressed one. Raises OSError; one that cannot be expanded is such."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        data = packed(path).read_bytes()
        try:
            return zstandard.ZstdDecompressor().decompress(data)
        except zstandard.ZstdError as error:
            raise OSError(0, f"cannot be expanded: {error}", str(packed(path))) from error
