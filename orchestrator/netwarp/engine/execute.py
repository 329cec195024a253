"""Runs the cells of a plan through a back end, several at once; keeps what is finished, whatever happens."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType

from ..core.types import Cell, CellOutcome
from ..sandbox import Backend, Interrupted
from ..store.run_dir import RunDir

log = logging.getLogger(__name__)
Finished = Callable[[Cell, CellOutcome], None]


class Stopped(KeyboardInterrupt):
    """The run was interrupted; what is finished is kept. No Exception: nothing takes it for an error to go on after."""


def execute(cells: Sequence[Cell], backend: Backend, run: RunDir, *, jobs: int, finished: Finished) -> None:
    """Run every cell that has no outcome yet. `finished` is called from worker threads as each one ends.

    Raises Stopped on SIGINT or SIGTERM, after every sandbox has been stopped; StoreError where the run directory cannot
    be written (DiskFull: no room): cells not yet run stay without outcome, so that --resume runs them.
    """
    run.clear_partial()
    done = run.finished()
    waiting = [cell for cell in cells if cell.id not in done]
    run.partial.mkdir(parents=True, exist_ok=True)
    stop = threading.Event()

    def work(cell: Cell) -> None:
        if stop.is_set():
            raise Interrupted
        try:
            outcome = backend.run_cell(cell, run)
            finished(cell, outcome)
        except BaseException:
            stop.set()  # here: this worker takes the next cell before the thread that waits for it wakes
            raise

    with _signals(stop, backend), ThreadPoolExecutor(jobs) as pool:
        futures: set[Future[None]] = {pool.submit(work, cell) for cell in waiting}
        failure: BaseException | None = None
        try:
            while futures:
                ended, futures = wait(futures, timeout=0.5, return_when=FIRST_COMPLETED)
                for future in ended:
                    error = future.exception()
                    if error is not None and not isinstance(error, Interrupted) and failure is None:
                        failure = error
                        stop.set()
                        backend.close()
        finally:
            if stop.is_set() or futures:
                stop.set()
                backend.close()
                for future in futures:
                    future.cancel()
    run.clear_partial()
    if failure is not None:
        raise failure
    if stop.is_set():
        raise Stopped


@contextmanager
def _signals(stop: threading.Event, backend: Backend) -> Iterator[None]:
    """SIGINT and SIGTERM stop every sandbox at once (only the main thread may install handlers)."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stop.set()
        # the handler may run while this thread holds a lock of the back end: close from another one
        threading.Thread(target=backend.close, daemon=True).start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
