"""Sizes of batches of cells, each a task of a cluster, which costs milliseconds whatever is in it."""

from __future__ import annotations

from collections import deque

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
