"""Takes a guest's captures out of memory while it runs, and compresses them at once.

A guest's kernel writes a file by a system call for each 4 KiB, so what it writes into captures goes into slots of a
memory (apps/guest/capture_slots.h: the protocol, and the layout that is repeated here). A thread reads the slots.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import socket
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

from ..core.errors import CellError
from ..core.inside import InsidePath
from ..store.compressed import GrowingFile

SLOT_BYTES, SLOTS_MAX, SLOTS_AT = 262_144, 1023, 8192
HEADER = struct.Struct("=II")  # number of slots, unused
SLOT = struct.Struct("=II")  # stream (0: free), bytes in it
MESSAGE = struct.Struct("=III240s")  # stream, slot, bytes, name
SPARE_SLOTS = 56


class CaptureSlots:
    """The captures that one guest writes into a directory, at most `count` of them: two slots for each, and some to
    spare, which the guest fills while others are read. Nothing that the guest says is believed: it may be of a user
    without rights, and this process root.
    """

    def __init__(self, captures: Path, count: int, spare: int = SPARE_SLOTS) -> None:
        self._slots = min(2 * count + spare, SLOTS_MAX)
        self._streams: dict[int, tuple[str, GrowingFile]] = {}
        self._error: Exception | None = None
        size = SLOTS_AT + self._slots * SLOT_BYTES
        with contextlib.ExitStack() as undo:
            self._folder = InsidePath.at(captures.parent, captures).folder_descriptor()
            undo.callback(os.close, self._folder)
            self._memory_fd = os.memfd_create("captures")
            undo.callback(os.close, self._memory_fd)
            os.ftruncate(self._memory_fd, size)
            self._memory = undo.enter_context(mmap.mmap(self._memory_fd, size))
            HEADER.pack_into(self._memory, 0, self._slots, 0)
            self._socket, self._guests_socket = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.enter_context(self._socket)
            undo.enter_context(self._guests_socket)
            self._undo = undo.pop_all()
        self._thread = threading.Thread(target=self._read, name="captures", daemon=True)
        self._thread.start()

    @property
    def descriptors(self) -> tuple[int, int]:
        """For the guest: socket and memory."""
        return self._guests_socket.fileno(), self._memory_fd

    def finish(self) -> dict[str, int]:
        """To be called once the guest has ended, or was not started. The length of each capture as the guest wrote it;
        each is on the disk, compressed. Raises OSError, and CellError for messages that no guest of ours sends.
        """
        with self._undo:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)  # its processes may not have let go of their end yet
            self._thread.join()
            for slot in range(1, self._slots + 1):
                stream, count = SLOT.unpack_from(self._memory, self._place(slot))
                if stream:  # the guest has not filled it
                    self._take(stream, slot, count)
            for _, file in self._streams.values():
                with self._kept_error():
                    file.close()
        if self._error is not None:
            raise self._error
        return {name: file.bytes for name, file in self._streams.values()}

    def _read(self) -> None:
        with self._kept_error():
            while message := self._next_message():
                stream, slot, count, name = MESSAGE.unpack(message)
                if slot:
                    if slot > self._slots:
                        raise _strange(f"slot {slot}")
                    self._take(stream, slot, count)
                    self._free(slot)
                    with contextlib.suppress(BrokenPipeError):  # the guest has ended
                        self._socket.send(b"1")
                else:
                    file = f"{name.rstrip(bytes(1)).decode(errors='replace')}.pcap"
                    if Path(file).name != file or any(file == known for known, _ in self._streams.values()):
                        raise _strange(f"name {file!r}")
                    self._streams[stream] = file, GrowingFile(self._folder, file)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # after an error here: the guest gets one, too, and does not wait

    def _next_message(self) -> bytes:
        """The next one; b"" if there will be none."""
        while True:
            try:
                return self._socket.recv(MESSAGE.size)
            except ConnectionResetError:  # the guest has ended without reading all that was sent; its messages follow
                continue

    def _place(self, slot: int) -> int:
        return HEADER.size + (slot - 1) * SLOT.size

    def _free(self, slot: int) -> None:
        """The guest takes a slot as soon as its stream is 0, and counts in its other field from then on: one store of
        that word alone. (Storing both lost what the guest had written in between.)
        """
        with memoryview(self._memory) as memory, memory.cast("I") as words:
            words[self._place(slot) // words.itemsize] = 0

    def _take(self, stream: int, slot: int, count: int) -> None:
        begin = SLOTS_AT + (slot - 1) * SLOT_BYTES
        if stream not in self._streams or count > SLOT_BYTES:
            self._error = self._error or _strange(f"{count} bytes of stream {stream}")
            return
        with self._kept_error(), memoryview(self._memory) as memory, memory[begin : begin + count] as data:
            if self._error is None:  # else the guest goes on without being kept
                self._streams[stream][1].write(data)

    @contextlib.contextmanager
    def _kept_error(self) -> Iterator[None]:
        """The first error is raised by `finish`: until then slots are read, so that the guest does not wait."""
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self._error = self._error or error


def _strange(what: str) -> CellError:
    return CellError(f"its captures: the guest hands over {what}, as netwarp's own guests never do")
