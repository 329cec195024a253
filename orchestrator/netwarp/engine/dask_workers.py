"""The workers that run cells: processes of this machine, or those of a dask cluster and their tasks."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import signal
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..core.errors import BackendUnavailable, NetwarpError, SpecError
from ..core.extras import install_extra
from ..core.types import Cell
from ..sandbox import Interrupted, VirtualBackend
from ..store.cell_archive import cell_to_bytes
from ..store.run_dir import RunDir
from .cell_tasks import Keep, run_one
from .cluster_files import FilesMissing, Instrument, Unlike, files_here, keep_shipped, place_of
from .local_workers import CellClock, Worker


@dataclass(frozen=True, slots=True)
class Executor:
    """Worker processes of this machine, or (dask) the cluster at an address; address None: a temporary cluster on this
    machine.
    """

    dask: bool = False
    address: str | None = None


LOCAL = Executor()


def parse_executor(text: str, jobs: int | None, backend: str) -> Executor:
    """Parse local, dask, or dask:ADDRESS of a scheduler. Raises SpecError, BackendUnavailable (dask is not
    installed).
    """
    kind, colon, address = text.partition(":")
    if kind not in ("local", "dask") or (colon and (kind == "local" or not address)):
        raise SpecError(
            f"--executor {text}: wants local, dask (a cluster of its own on this machine) or dask:ADDRESS of a "
            "scheduler, e.g. dask:tls://10.0.0.1:8786"
        )
    if kind == "local":
        return LOCAL
    if backend not in ("auto", "virtual"):
        raise SpecError(
            f"--executor {text} with --backend {backend}: cells on the wall clock run one at a time on a machine that "
            "does nothing else, which no cluster promises; use --backend virtual"
        )
    if address and jobs is not None:
        raise SpecError(
            f"--executor {text} with --jobs {jobs}: the workers of that cluster say how many cells run at once"
        )
    need_distributed()
    return Executor(True, address or None)


def need_distributed() -> None:
    """Raise BackendUnavailable if dask.distributed is not installed."""
    try:
        import distributed  # noqa: F401
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"--executor dask needs dask.distributed, which is not installed: {install_extra('cluster')}"
        ) from error


LOOK_S = 0.1
TELL_S = 0.5
"""A cell's progress is sent through the scheduler at most this often (seconds)."""


@dataclass(frozen=True, slots=True)
class PackedCell:
    """A finished cell in transfer: its files (`cell_to_bytes`), and their hash."""

    files: bytes
    sha256: str


def run_packed(
    instrument: Instrument, analyze: bool, keep: Keep, topic: str, cells: Sequence[Cell]
) -> list[PackedCell]:
    """Run cells, and analyse each that ran to its end; none of their files stay on this machine.

    Raises FilesMissing, Unlike; Interrupted if the task was cancelled; StoreError if the scratch directory cannot be
    written, SpecError if a guest could not see it.
    """
    from distributed import get_worker

    dask = get_worker()
    place = place_of(instrument, dask.address)
    backend = VirtualBackend(place.kernel, place.programs)
    last_told = 0.0

    def tell(cell_id: str, virtual_s: float) -> None:
        nonlocal last_told
        if time.monotonic() - last_told > TELL_S:
            last_told = time.monotonic()
            dask.log_event(topic, [cell_id, virtual_s])

    backend.progress = tell
    worker = Worker(backend)
    task = dask.get_current_task()
    ended = threading.Event()

    def watch() -> None:
        """Stop the sandbox when nobody waits for this task any more: cancelled, or whoever asked for it is gone."""
        while not ended.wait(LOOK_S):
            state = dask.state.tasks.get(task)
            if state is None or state.state not in ("executing", "long-running"):
                worker.stop()
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    scratch = RunDir(
        Path(dask.local_directory).absolute() / f"netwarp-{hashlib.sha256(str(task).encode()).hexdigest()[:16]}"
    )
    try:
        backend.check_place(scratch.root)
        scratch.partial.mkdir(parents=True, exist_ok=True)
        return [_packed(worker, cell, scratch, analyze, keep) for cell in cells]
    finally:
        ended.set()
        watcher.join()
        scratch.remove()


def _packed(worker: Worker, cell: Cell, scratch: RunDir, analyze: bool, keep: Keep) -> PackedCell:
    run_one(worker, cell, scratch, analyze, keep)
    directory = scratch.cell(cell.id).root
    files = cell_to_bytes(directory)
    directory.remove_tree()
    return PackedCell(files, hashlib.sha256(files).hexdigest())


CONNECT_S = 10
MOST_SHIPPED = 3
"""Times that files are sent to one worker: again only if something has removed them there."""
MOST_PREPARED = 5
"""Times that our own workers are given their plugin: again only if one dies meanwhile."""
LOOK_S = 1.0
"""Interval at which the scheduler is asked for its number of workers."""
OWN_CLUSTER = {
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "5s",
}
"""Settings of our own cluster: dask otherwise looks every 10 ms what a worker does and every 20 ms how its loops are,
which takes a tenth of a core.
"""
T = TypeVar("T")


class DaskWorkers:
    """The workers of the cluster at `address`, or (None) `jobs` workers of our own, which end with this process.

    kernel: the file to send where it is missing. scratch: the directory in which our own workers run cells. notice:
    called with sentences for the user. shutdown(cancel_futures=True) stops every sandbox within a moment.
    """

    def __init__(
        self,
        address: str | None,
        jobs: int,
        instrument: Instrument,
        kernel: Path,
        *,
        scratch: Path,
        topic: str,
        clock: CellClock,
        notice: Callable[[str], None],
    ) -> None:
        self._address, self._jobs, self._scratch = address, jobs, scratch
        self._instrument, self._kernel = instrument, kernel
        self._topic, self._clock, self._notice = topic, clock, notice
        self._client: Any = None  # distributed.Client: its methods have no types
        self._cluster: Any = None
        self._quiet = contextlib.ExitStack()
        self._slots, self._asked = 0, 0.0
        self._shipping, self._shipped = threading.Lock(), Counter[str]()
        self._sent: dict[Future[Any], Any] = {}

    def begin(self) -> None:
        """Start our own cluster if needed, and connect. Raises BackendUnavailable if no scheduler answers."""
        import dask.config
        from distributed import Client, LocalCluster

        make_cluster: Any = LocalCluster
        connect: Any = Client
        self._quiet.enter_context(_without_log())
        if self._address is None:
            try:
                with dask.config.set({"temporary-directory": str(self._scratch), **OWN_CLUSTER}):
                    self._cluster = make_cluster(
                        n_workers=self._jobs, threads_per_worker=1, processes=True, memory_limit=0,
                        # other users of this machine must not be able to send it tasks
                        protocol="tls://", security=True, host="127.0.0.1", dashboard_address="127.0.0.1:0",
                        local_directory=str(self._scratch), silence_logs=logging.CRITICAL,
                    )  # fmt: skip
            except RuntimeError as error:
                raise NetwarpError(
                    f"--executor dask: its workers could not be started ({error}); a script of your own needs "
                    '`if __name__ == "__main__":` around netwarp.run(executor="dask"), as its workers import it'
                ) from error
            # on one machine results need not go through the scheduler
            self._client = connect(self._cluster, set_as_default=False, direct_to_workers=True)
            self._prepare_workers()
        else:
            self._client = _connected(self._address)
        self._client.subscribe_topic(self._topic, self._tell)
        self.slots()
        if not self._slots:
            self._notice(f"{self._address}: no worker is there yet; cells wait for the first (docs/cluster.md)")

    def _prepare_workers(self) -> None:
        """Give our own workers their plugin; the scheduler passes it on to those that come later. Raises NetwarpError
        if workers die again and again meanwhile.
        """
        for _ in range(MOST_PREPARED):
            try:
                self._client.register_plugin(_own_worker())
                return
            except OSError as error:  # a worker died: its successor is asked next time
                why = error
        raise NetwarpError(f"--executor dask: its workers end while the cluster starts ({why})") from why

    async def _tell(self, event: Any) -> None:
        self._clock(*event[1])

    def slots(self) -> int:
        """Number of tasks that the workers run at once now; 1 while there is no worker."""
        if self._client is not None and time.monotonic() - self._asked > LOOK_S:
            self._slots, self._asked = sum(self._client.nthreads().values()), time.monotonic()
        return max(1, self._slots)

    def submit(self, task: Callable[[Sequence[Cell]], T], cells: Sequence[Cell], /) -> Future[T]:
        """Run a task on a batch of cells. The result is Interrupted if dask gave the task up because worker after
        worker died with it.
        """
        outer: Future[T] = Future()
        outer.set_running_or_notify_cancel()
        self._send(outer, task, cells)
        return outer

    def _send(self, outer: Future[T], task: Callable[[Sequence[Cell]], T], cells: Sequence[Cell]) -> None:
        shipped = Counter(self._shipped)
        inner = self._client.submit(task, cells, pure=False, key=f"netwarp-{uuid.uuid4().hex}")
        self._sent[outer] = inner
        inner.add_done_callback(lambda done: self._received(done, outer, task, cells, shipped))

    def _received(
        self,
        inner: Any,
        outer: Future[T],
        task: Callable[[Sequence[Cell]], T],
        cells: Sequence[Cell],
        shipped: Counter[str],
    ) -> None:
        """Runs in dask's thread: pass on the result of a task; if the worker lacks files, send them and submit the task
        again. shipped: how often they had been sent to each worker when the task was.
        """
        from distributed import KilledWorker

        try:
            outer.set_result(inner.result())
        except FilesMissing as missing:
            # in a thread of its own: other results need not wait until a worker that has just died is given up
            before = shipped[str(missing)]
            threading.Thread(target=self._ship, args=(str(missing), outer, task, cells, before), daemon=True).start()
            return
        except KilledWorker:
            outer.set_exception(Interrupted())
        except Unlike as error:
            outer.set_exception(BackendUnavailable(str(error)))
        except BaseException as error:  # noqa: BLE001  likewise; a cancelled one is a CancelledError
            lost = inner.status in ("cancelled", "lost")
            outer.set_exception(_gone(self._address) if lost else error)
        self._sent.pop(outer, None)

    def _ship(
        self, worker: str, outer: Future[T], task: Callable[[Sequence[Cell]], T], cells: Sequence[Cell], before: int
    ) -> None:
        """Send the kernel and the programs to a worker through the scheduler, unless that was done since the task was
        submitted (`before`: how often until then). Then submit the task again, to any worker.
        """
        try:
            with self._shipping:
                if self._shipped[worker] == before:
                    if before == MOST_SHIPPED:
                        raise BackendUnavailable(
                            f"{worker}: the kernel and the programs were sent to it {before} times, and it does not "
                            "find them: is its cache (~/.cache/netwarp, NETWARP_CACHE) on a disk that keeps files?"
                        )
                    with contextlib.suppress(OSError):  # it died: its task goes to another
                        self._client.run(keep_shipped, self._instrument, files_here(self._kernel), workers=[worker])
                    self._shipped[worker] += 1
            self._send(outer, task, cells)
        except Exception as error:  # noqa: BLE001  whatever it is: whoever waits for the cells gets it
            self._sent.pop(outer, None)
            outer.set_exception(error)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; our own one ends. cancel_futures: running tasks are stopped."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(Exception):  # the scheduler may be gone
                if cancel_futures and self._sent:
                    client.cancel(list(self._sent.values()), force=True)
                client.unsubscribe_topic(self._topic)
            client.close()
        if self._cluster is not None:
            self._cluster.close()
        self._quiet.close()


def need_scheduler(address: str) -> None:
    """Raise BackendUnavailable if no scheduler answers at this address."""
    with _without_log():
        _connected(address).close()


def _connected(address: str) -> Any:
    from distributed import Client

    connect: Any = Client
    try:
        return connect(address, timeout=CONNECT_S, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise BackendUnavailable(
            f"--executor dask:{address}: no scheduler answers there ({error}); start one with "
            "`dask scheduler`, and see docs/cluster.md for its TLS settings"
        ) from error


def _gone(address: str | None) -> NetwarpError:
    return NetwarpError(
        f"the dask scheduler{'' if address is None else f' at {address}'} is gone; what is finished is kept, and "
        "--resume goes on with it"
    )


def _own_worker() -> Any:
    """A plugin for our own workers: a terminal sends Ctrl-C to all processes, and only the one that started them shall
    act on it.
    """
    from distributed import WorkerPlugin

    class OwnWorker(WorkerPlugin):
        """In the main thread of a worker's process."""

        name = "netwarp"  # registered again it replaces itself

        def setup(self, worker: Any) -> None:
            """Leave interrupts to the process that started this."""
            for number in (signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)

    return OwnWorker()


@contextlib.contextmanager
def _without_log() -> Iterator[None]:
    """Silences dask's log of workers that come and go: a user of netwarp needs only exceptions."""
    loggers = [
        logging.getLogger(name) for name in list(logging.root.manager.loggerDict) if name.startswith("distributed")
    ]
    before = [(logger, logger.level) for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in before:
            logger.setLevel(level)
