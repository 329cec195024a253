"""Worker processes on this machine: an Executor whose workers end with the process that created them.

They are forked before any cell runs, so that they start at once and need no second import. Two mechanisms end a worker:
the kernel kills it when its parent dies (PR_SET_PDEATHSIG), and the closing of a pipe tells it to stop the cell it
runs.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import json
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

from ..core.errors import NetwarpError
from ..sandbox import Backend

PR_SET_PDEATHSIG = 1
LINE_BYTES = 4096
"""PIPE_BUF: a write of up to so many bytes to a pipe is one, whoever else writes (pipe(7))."""
CellClock = Callable[[str, float], None]


class Worker:
    """The state of a worker process: the back end on which it runs cells (None: it only analyses), and whether it must
    stop.
    """

    def __init__(self, backend: Backend | None) -> None:
        self.backend = backend
        self.stopped = threading.Event()
        self.busy = threading.Lock()

    def stop(self) -> None:
        """Stop the running sandbox; start no other."""
        self.stopped.set()
        if self.backend is not None:
            self.backend.close()

    def leave(self) -> None:
        """Stop, and end the process once its cell has been removed."""
        self.stop()
        with self.busy:
            os._exit(128 + signal.SIGTERM)


_here: Worker | None = None


def this_worker() -> Worker:
    """The Worker of this process."""
    if _here is None:
        raise RuntimeError("this process is no worker: its task came here by mistake")
    return _here


class LocalWorkers(ProcessPoolExecutor):
    """`jobs` worker processes. clock: called with a cell's id and its current time, in a thread of this process.

    shutdown(cancel_futures=True) stops every sandbox at once: the running tasks end with Interrupted.
    """

    def __init__(self, jobs: int, backend: Backend | None, clock: CellClock | None = None) -> None:
        stop_end, self._stop = os.pipe()
        times, times_end = os.pipe()
        os.set_blocking(times_end, False)  # a reader that is slow loses progress, never time of a cell
        self._ours = [stop_end, times_end]
        self._jobs = jobs
        try:
            super().__init__(
                jobs,
                mp_context=multiprocessing.get_context("fork"),
                initializer=_begin,
                initargs=(os.getpid(), backend, stop_end, times_end, (self._stop, times)),
            )
        except OSError as error:
            raise NetwarpError(
                f"worker processes need POSIX semaphores, and this machine gives none ({error}): "
                "mount a tmpfs on /dev/shm that you may write to"
            ) from error
        self._reader = threading.Thread(target=_read_times, args=(times, clock), daemon=True)

    def begin(self) -> None:
        """Fork the workers from the calling thread: they die when it ends. Then start the thread that reads their
        clocks.
        """
        self.submit(_nothing).result()
        self._reader.start()

    def slots(self) -> int:
        """The number of tasks that run at once."""
        return self._jobs

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """As every Executor's; with cancel_futures what runs is stopped as well."""
        super().shutdown(wait=False, cancel_futures=cancel_futures)
        if cancel_futures:
            self._close_stop()
        if wait:
            super().shutdown(wait=True)
            self._close_stop()
            while self._ours:
                os.close(self._ours.pop())
            if self._reader.ident is not None:
                self._reader.join()

    def _close_stop(self) -> None:
        handle, self._stop = self._stop, -1
        if handle >= 0:
            os.close(handle)


def _nothing() -> None:
    """The first task: the pool forks its processes when it receives one."""


def _begin(parent: int, backend: Backend | None, stop_end: int, times_end: int, not_ours: tuple[int, ...]) -> None:
    """Initialises a worker process."""
    global _here
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it died before that took
        os._exit(128 + signal.SIGKILL)
    for handle in not_ours:
        os.close(handle)
    _here = worker = Worker(backend)
    gc.freeze()  # collecting garbage would look at all that the parent had, and copy its pages
    for number in (signal.SIGINT, signal.SIGHUP):  # Ctrl-C in a terminal, and its end, go to all: the parent decides
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=worker.leave, daemon=True).start())
    if backend is not None:
        backend.progress = lambda cell_id, virtual_s: _tell(times_end, cell_id, virtual_s)
    threading.Thread(target=_await_stop, args=(stop_end, worker), daemon=True).start()


def _await_stop(stop_end: int, worker: Worker) -> None:
    """Waits until the parent closes its end of the pipe. Nothing is ever written to it."""
    os.read(stop_end, 1)
    worker.stop()


def _tell(times_end: int, cell_id: str, virtual_s: float) -> None:
    line = json.dumps([cell_id, virtual_s]).encode() + b"\n"
    if len(line) <= LINE_BYTES:
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            os.write(times_end, line)


def _read_times(times: int, clock: CellClock | None) -> None:
    with open(times, "rb") as lines:
        for line in lines:
            if clock is not None:
                clock(*json.loads(line))
