"""Runs the cells of a plan on workers, in batches, several at once. Finished cells are kept whatever happens."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import queue
import signal
import threading
import uuid
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import BrokenExecutor, Future
from types import FrameType
from typing import Generic, Protocol, TypeVar

import msgspec

from ..core.errors import CaptureError, CellError, SpecError, StoreError
from ..core.processes import ending_signals
from ..core.types import Cell, CellOutcome, Outcome
from ..sandbox import Backend, Interrupted, VirtualBackend
from ..store.cell_archive import cell_from_bytes
from ..store.packing import Combiner, pack_one
from ..store.run_dir import RunDir
from .cell_tasks import Keep, analyze_batch, run_batch
from .cluster_files import Instrument, instrument_here
from .dask_workers import LOCAL, DaskWorkers, Executor, PackedCell, run_packed
from .events import CellTime, Notice, Progress, no_progress
from .local_workers import CellClock, LocalWorkers

BATCH_S = 3.0
"""About how long a batch shall take: so much is run again when its worker is lost or the run is stopped."""
MOST_CELLS = 8
RECENT = 20
PARTS = 2
"""Of what waits, each worker gets a part in so many batches at least, so that all of them end together."""


class Batches:
    """Sizes of batches, by the wall time of the cells that ended last."""

    def __init__(self) -> None:
        self._recent: deque[float] = deque(maxlen=RECENT)

    def ended(self, wall_s: float) -> None:
        """A cell has ended after so long."""
        self._recent.append(wall_s)

    def size(self, waiting: int, slots: int) -> int:
        """Cells of the next batch; 1 before any cell has ended."""
        if not self._recent:
            return 1
        mean_s = sum(self._recent) / len(self._recent)
        fitting = MOST_CELLS if mean_s * MOST_CELLS <= BATCH_S else int(BATCH_S / mean_s)
        return max(1, min(fitting, waiting // (PARTS * slots)))


Finished = Callable[[Cell, CellOutcome], None]
MOST_LOSSES = 3
"""Worker deaths after which a cell is given up. From the second on it runs alone, so that no other cell is blamed."""
T = TypeVar("T")


class Stopped(KeyboardInterrupt):
    """The run was interrupted; finished cells are kept. Not a subclass of Exception, so that no handler of errors
    continues after it.
    """


class Workers(Protocol):
    """An open executor with the protocol of concurrent.futures. shutdown(cancel_futures=True) stops running tasks at
    once.
    """

    def begin(self) -> None:
        """Get ready to run tasks."""

    def slots(self) -> int:
        """Number of tasks that run at once, as far as is known now."""

    def submit(self, task: Callable[[Sequence[Cell]], T], cells: Sequence[Cell], /) -> Future[T]:
        """Run a task on a batch of cells."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers."""


def execute(
    cells: Sequence[Cell],
    backend: Backend,
    run: RunDir,
    *,
    jobs: int,
    finished: Finished,
    analyze: bool = False,
    keep: Keep = "all",
    pack: bool = False,
    executor: Executor = LOCAL,
    grown_from: Collection[str] = (),
    progress: Progress = no_progress,
) -> None:
    """Run every cell that has no outcome yet, and analyse it where it ran. keep, pack: as for `run`. jobs: cells
    at once, if the executor has workers of its own. grown_from: as for `run_batch`; of local workers alone.

    `finished` is called when a cell ends, and `progress` too, both in the caller's thread. Raises Stopped on SIGINT,
    SIGTERM or SIGHUP, after every sandbox was stopped; SpecError if sandboxes would not see the directory; StoreError
    if the run directory cannot be written (DiskFull: no space). Cells that were not run have no outcome, so that
    --resume runs them.
    """
    backend.check_place(run.root)
    run.clear_partial()
    done = run.finished()
    waiting = [cell for cell in cells if cell.id not in done]
    run.partial.mkdir(parents=True, exist_ok=True)

    def given_up(cell: Cell) -> None:
        outcome = CellOutcome(Outcome.FAILED, f"{MOST_LOSSES} worker processes were killed while it ran", None, 0.0)
        run.keep_outcome(cell, outcome)
        finished(cell, outcome)

    combiner, batches = Combiner(run), Batches()
    cluster = _on_cluster(backend, waiting, run, executor.address, jobs, progress) if executor.dask else None

    def received(batch: Sequence[Cell], results: Sequence[CellOutcome | PackedCell]) -> None:
        for cell, result in zip(batch, results, strict=True):
            outcome = _installed(cell, result, run) if isinstance(result, PackedCell) else result
            batches.ended(outcome.wall_s)
            finished(cell, outcome)
            if pack and cluster:
                pack_one(run, cell.id)
        if pack:
            combiner.packed(len(batch))

    try:
        if cluster is not None:
            instrument, topic, workers = cluster
            _Dispatch(
                waiting, functools.partial(run_packed, instrument, analyze, keep, topic), workers,
                received=received, given_up=given_up, progress=progress, size=batches.size,
            ).all()  # fmt: skip
            return
        _Dispatch(
            waiting,
            functools.partial(run_batch, run.root, analyze, keep, pack, grown_from),
            lambda clock: LocalWorkers(min(jobs, len(waiting)), backend, clock),
            received=received, given_up=given_up, progress=progress,
        ).all()  # fmt: skip
    finally:
        run.clear_partial()


def _on_cluster(
    backend: Backend, cells: Sequence[Cell], run: RunDir, address: str | None, jobs: int, progress: Progress
) -> tuple[Instrument, str, Callable[[CellClock], DaskWorkers]]:
    """What the cells run with on a dask cluster, the topic of their times, and its workers. The files of each return
    and are written into its directory here.
    """
    if not isinstance(backend, VirtualBackend):
        raise SpecError(f"--executor dask: cells run in virtual time there, and {backend.name} is on the wall clock")
    if any(not isinstance(cell.kernel, msgspec.UnsetType) for cell in cells):
        raise SpecError(
            "--executor dask: its workers have one kernel; cells that name theirs run with --executor local"
        )
    kernel = backend.kernel
    instrument = instrument_here(hashlib.sha256(kernel.read_bytes()).hexdigest())
    topic = f"netwarp-{uuid.uuid4().hex}"
    return (
        instrument,
        topic,
        lambda clock: DaskWorkers(
            address, min(jobs, len(cells)), instrument, kernel, scratch=run.partial / "dask", topic=topic, clock=clock,
            notice=lambda text: progress(Notice(text)),
        ),
    )  # fmt: skip


def _installed(cell: Cell, packed: PackedCell, run: RunDir) -> CellOutcome:
    """Write a returned cell into its directory; returns its outcome. Raises StoreError if it is not what its worker
    sent.
    """
    if hashlib.sha256(packed.files).hexdigest() != packed.sha256:
        raise StoreError(f"{cell.id}: what came back from its worker has another hash than it was sent with")
    directory = run.partial_cell(cell.id)
    cell_from_bytes(packed.files, directory.root)
    if directory.read_cell() != cell:
        raise StoreError(f"{cell.id}: another cell came back from its worker")
    outcome = directory.read_run_outcome()
    run.install(cell.id)
    return outcome


def analyze_cells(cells: Sequence[Cell], run: RunDir, *, jobs: int) -> None:
    """Analyse cells that ran before. Raises Stopped, CaptureError, StoreError."""

    def given_up(cell: Cell) -> None:
        raise CaptureError(
            f"{run.cell(cell.id).root}: {MOST_LOSSES} worker processes were killed while it was analysed"
        )

    _Dispatch(
        cells,
        functools.partial(analyze_batch, run.root),
        lambda clock: LocalWorkers(min(jobs, len(cells)), None, clock),
        received=lambda batch, nothing: None,
        given_up=given_up,
        progress=no_progress,
    ).all()


class _Dispatch(Generic[T]):
    """Distributes batches of cells to workers and collects their results."""

    def __init__(
        self,
        cells: Sequence[Cell],
        task: Callable[[Sequence[Cell]], T],
        workers: Callable[[Callable[[str, float], None]], Workers],
        *,
        received: Callable[[Sequence[Cell], T], None],
        given_up: Callable[[Cell], None],
        progress: Progress,
        size: Callable[[int, int], int] = lambda waiting, slots: 1,
    ) -> None:
        self._waiting = deque(cells)
        self._suspects: deque[Cell] = deque()
        self._losses: Counter[str] = Counter()
        self._barren = 0
        self._task, self._workers = task, workers
        self._received, self._given_up, self._progress, self._size = received, given_up, progress, size
        # a signal's handler may put() while this thread is in get(): this queue allows it
        self._events: queue.SimpleQueue[Future[T] | CellTime | None] = queue.SimpleQueue()
        self._stopped = False

    def all(self) -> None:
        """Run until every cell has been received. Raises Stopped, and what a task raised."""
        with _signals(self._stop):
            while (self._waiting or self._suspects) and not self._stopped:
                self._with_workers()
        if self._stopped:
            raise Stopped

    def _stop(self) -> None:
        self._stopped = True
        self._events.put(None)

    def _with_workers(self) -> None:
        """Run until every cell has been received or a worker was lost."""
        workers = self._workers(lambda cell_id, virtual_s: self._events.put(CellTime(cell_id, virtual_s)))
        under_way: dict[Future[T], Sequence[Cell]] = {}
        whole = False
        try:
            workers.begin()
            while not self._stopped:
                self._fill(workers, under_way)
                if not under_way:
                    break
                self._take(self._events.get(), under_way)
            whole = not self._stopped
        except BrokenExecutor as error:
            self._barren += 1
            if self._barren > MOST_LOSSES:
                raise CellError("worker processes are killed again and again before a cell is finished") from error
            self._lost([cell for batch in under_way.values() for cell in batch])
        finally:
            workers.shutdown(cancel_futures=not whole)

    def _fill(self, workers: Workers, under_way: dict[Future[T], Sequence[Cell]]) -> None:
        """Submit a batch for every worker and one more, so that no worker waits for this process. A cell suspected of
        killing workers is submitted alone.
        """
        while self._waiting and len(under_way) <= workers.slots():
            count = min(len(self._waiting), self._size(len(self._waiting), workers.slots()))
            self._submit(workers, tuple(self._waiting.popleft() for _ in range(count)), under_way)
        if self._suspects and not under_way:
            self._submit(workers, (self._suspects.popleft(),), under_way)

    def _submit(self, workers: Workers, cells: Sequence[Cell], under_way: dict[Future[T], Sequence[Cell]]) -> None:
        try:
            future = workers.submit(self._task, cells)
        except BrokenExecutor:
            self._waiting.extendleft(reversed(cells))
            raise
        under_way[future] = cells
        future.add_done_callback(self._events.put)

    def _take(self, event: Future[T] | CellTime | None, under_way: dict[Future[T], Sequence[Cell]]) -> None:
        if isinstance(event, CellTime):
            self._progress(event)
        elif event is not None and event in under_way and not self._stopped:
            try:
                result = event.result()
            except Interrupted:  # nobody stopped the run: somebody ended that worker
                self._lost(under_way.pop(event))
                return
            self._barren = 0
            self._received(under_way.pop(event), result)

    def _lost(self, cells: Sequence[Cell]) -> None:
        """Run the cells of a lost worker again; a cell with which workers are lost repeatedly is given up."""
        if cells and not self._stopped:
            names = ", ".join(cell.id for cell in cells)
            self._progress(Notice(f"a worker process was killed; what was under way runs again: {names}"))
        for cell in reversed(cells):
            self._losses[cell.id] += 1
            if self._losses[cell.id] == 1:
                self._waiting.appendleft(cell)
            elif self._losses[cell.id] < MOST_LOSSES:
                self._suspects.append(cell)
            else:
                self._given_up(cell)


@contextlib.contextmanager
def _signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP stop every sandbox at once. Only the main thread may install the handlers."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(number: int, frame: FrameType | None) -> None:
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, *ending_signals())}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
