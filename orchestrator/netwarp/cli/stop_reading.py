"""Makes the first Ctrl-C end the reading of a pipe, not the command."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass
class StopReading:
    """fd: readable once there was a signal. stopped: whether there was a Ctrl-C."""

    fd: int
    stopped: bool = False


def waiting_bytes(fd: int) -> int:
    """Number of bytes that can be read from a pipe."""
    return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]  # type: ignore[no-any-return]


@contextmanager
def stop_reading_on_interrupt() -> Iterator[StopReading]:
    """The first Ctrl-C writes to a pipe on which the reader in C waits; the second one interrupts as usual. Python runs
    handlers only between calls, and of two signals during one it runs one: the pipe has a byte for each.
    """
    read_end, write_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    stop = StopReading(read_end)

    def note(number: int, frame: object) -> None:
        if stop.stopped or waiting_bytes(stop.fd) > 1:
            raise KeyboardInterrupt
        stop.stopped = True

    before = signal.signal(signal.SIGINT, note)
    wakeup = signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
    try:
        yield stop
    finally:
        signal.set_wakeup_fd(wakeup)
        signal.signal(signal.SIGINT, before)
        os.close(read_end)
        os.close(write_end)
