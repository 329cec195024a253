"""Zstandard files: a cell's file is kept compressed as <name>.zst, and read under either name."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import struct
from pathlib import Path
from typing import IO, BinaryIO

import zstandard

from ..core.inside import inside
from ..core.limits import limits

SUFFIX = ".zst"
LEVEL = 3
WINDOW_BYTES = 2 << 20
"""Of LEVEL. A frame of no more bytes is a single segment, if its length is known at its beginning."""
FRAME_BEGIN = struct.Struct("<IBB")
"""Magic number, descriptor and window of a frame without a length; with one, that follows (RFC 8878 3.1.1)."""
LARGEST_WINDOW = 128 << 20
SHORT_LENGTH = 4
"""Bytes of the length of a frame below 4 GiB; above, it has twice as many."""


def packed(path: Path) -> Path:
    """The name of the compressed file."""
    return path.with_name(path.name + SUFFIX)


def packed_bytes(data: bytes) -> bytes:
    """The data as one Zstandard frame with its length in the header."""
    return zstandard.ZstdCompressor(level=LEVEL).compress(data)


def compress(path: Path, *, sync: bool = False) -> None:
    """Replace a file by name.zst, whole or not at all; sync: only once that is on the disk."""
    plain = inside(path)
    target = packed(plain)
    temporary = plain.with_name(f".{target.name}")
    with plain.open("rb") as source, temporary.open("wb") as sink:
        _copy(source, plain.stat().st_size, sink)
        if sync:
            _sync(sink)
    temporary.replace(target)
    plain.unlink()


class GrowingFile:
    """A file that is compressed while it grows. `close` makes name.zst, with the bytes that `compress` would make of
    the whole file. folder: a descriptor of its directory, which may be another user's: whatever that one puts or moves
    there, no other file is written. Raises OSError.
    """

    def __init__(self, folder: int, name: str) -> None:
        self.bytes = 0
        self._folder, self._name = folder, name
        self._growing = f".{name}{SUFFIX}"
        self._begin = b""
        self._frame: BinaryIO | None = None
        self._compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()

    def write(self, data: bytes | memoryview) -> None:
        """Append bytes to the file."""
        self.bytes += len(data)
        if self._frame is not None:
            self._frame.write(self._compressor.compress(data))
            return
        self._begin += data
        if self.bytes > WINDOW_BYTES:
            frame = self._compressor.compress(self._begin)
            self._begin = frame[: FRAME_BEGIN.size]
            self._frame = self._new()
            self._frame.write(bytes(FRAME_BEGIN.size + SHORT_LENGTH) + frame[FRAME_BEGIN.size :])

    def close(self) -> None:
        """Put name.zst onto the disk, in place of the file itself."""
        if self._frame is None:
            with self._new() as whole:
                _copy(io.BytesIO(self._begin), self.bytes, whole)
                _sync(whole)
        else:
            self._finish(self._frame)
        os.replace(self._growing, f"{self._name}{SUFFIX}", src_dir_fd=self._folder, dst_dir_fd=self._folder)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._name, dir_fd=self._folder)

    def _new(self) -> BinaryIO:
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        return open(os.open(self._growing, flags, 0o666, dir_fd=self._folder), "w+b")

    def _finish(self, growing: BinaryIO) -> None:
        """Complete the frame: its length stands at its beginning."""
        with growing as frame:
            frame.write(self._compressor.flush())
            magic, descriptor, window = FRAME_BEGIN.unpack(self._begin)
            long = self.bytes >> 8 * SHORT_LENGTH > 0
            length = self.bytes.to_bytes(2 * SHORT_LENGTH if long else SHORT_LENGTH, "little")
            begin = FRAME_BEGIN.pack(magic, descriptor | (3 if long else 2) << 6, window) + length
            if long:  # which is known only now
                frame.seek(FRAME_BEGIN.size + SHORT_LENGTH)
                os.unlink(self._growing, dir_fd=self._folder)
                with self._new() as longer:
                    longer.write(begin)
                    shutil.copyfileobj(frame, longer)
                    _sync(longer)
            else:
                frame.seek(0)
                frame.write(begin)
                _sync(frame)


def _copy(source: IO[bytes], size: int, sink: IO[bytes]) -> None:
    """As one frame. (`packed_bytes` makes others of the same data.)"""
    zstandard.ZstdCompressor(level=LEVEL).copy_stream(source, sink, size=size)


def _sync(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


def exists(path: Path) -> bool:
    """True if the file is there, plain or compressed."""
    return path.exists() or packed(path).exists()


def read(path: Path, limit: str = "file_bytes") -> bytes:
    """The content of the plain or the compressed file. limit: the name of that of a plain one. Raises OSError, also if
    it cannot be decompressed or is larger than the limit.
    """
    try:
        if path.stat().st_size > getattr(limits(), limit):
            raise OSError(0, f"has {limits().beyond(limit)}", str(path))
        return path.read_bytes()
    except FileNotFoundError:
        return _expanded(packed(path))


def _expanded(path: Path) -> bytes:
    most = limits().file_bytes
    if path.stat().st_size > most:  # compressed it is larger already than it may be expanded
        raise OSError(0, f"has {limits().beyond('file_bytes')}", str(path))
    data = path.read_bytes()
    try:
        # by what it says of itself it would get memory for that, before a byte is expanded
        if zstandard.frame_content_size(data) <= most:
            return zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).decompress(data, most)
    except zstandard.ZstdError as error:
        raise OSError(0, f"cannot be expanded: {error}", str(path)) from error
    raise OSError(0, f"expands to {limits().beyond('file_bytes')}", str(path))
