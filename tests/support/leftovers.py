"""The leftovers of a killed run that the machine must not keep: processes, mounts, links, namespaces, memory,
half-written files.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from netwarp.core.types import Outcome
from netwarp.store.run_dir import RunDir, read_json

from support.chain_kit import GONE_S, memory_files, outcomes, processes
from support.killable import everyone

LOOK_S = 0.002
"""Between two looks for what goes or comes."""
MARK = "NETWARP_CHAOS"


def mounts() -> set[str]:
    return {line.split(" ", 4)[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}


def links() -> set[str]:
    return set(os.listdir("/sys/class/net"))


def namespaces(pids: Sequence[int]) -> set[str]:
    """The network, mount, pid and user namespaces these processes are in, and hold open."""
    found = set()
    for pid in pids:
        for name in ("net", "mnt", "pid", "user"):
            with contextlib.suppress(OSError):
                found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
        with contextlib.suppress(OSError):
            for handle in Path(f"/proc/{pid}/fd").iterdir():
                with contextlib.suppress(OSError):
                    target = os.readlink(handle)
                    found |= {target} if target.startswith("net:[") else set()
    return found


@dataclass
class Watch:
    """The machine before a run; what of it is different afterwards."""

    place: Path

    def __post_init__(self) -> None:
        self.mounts, self.links = mounts(), links()
        self.known = namespaces(everyone())

    def left(self, held: set[str], run: Path, *, resumed: bool = False) -> Iterator[str]:
        """What is there and should not be. held: namespaces of processes that are gone."""
        for pid, said in processes(self.place).items():
            if MARK not in said:
                yield f"process {pid}: {said[:120]}"
        yield from (f"mount {one}" for one in mounts() - self.mounts if str(self.place) in one or "nsfs" in one)
        yield from (f"link {one}" for one in links() - self.links)
        yield from (f"namespace {one}" for one in (held - self.known) & namespaces(everyone()))
        yield from (f"memory {path}" for path in self.memory())
        # where it tries namespaces: removed by the next netwarp, so after --resume there must be none
        for path in self.place.glob("tmp/*"):
            if resumed or not path.name.startswith("netwarp-probe-"):
                yield f"temporary {path.name}"
        yield from (f"in the home directory: {path.name}" for path in self.place.glob("home/*"))
        yield from (f"half-written {path}" for path in self.half_written(run))

    def memory(self) -> set[Path]:
        """Guests' memory files; a guest that lives removes the name as soon as it has made it."""
        until, names = time.monotonic() + GONE_S, memory_files()
        while (names := {path for path in names if path.exists()}) and time.monotonic() < until:
            time.sleep(LOOK_S)
        return names

    def half_written(self, run: Path) -> Iterator[str]:
        """Cells that are believed and are not whole."""
        directory = RunDir(run)
        for cell_id, outcome in outcomes(run).items():
            cell = directory.cell(cell_id)
            try:
                assert cell.read_cell().id == cell_id
                if outcome.outcome is Outcome.COMPLETED:
                    assert read_json(cell.environment, dict[str, object])["checks"]
                    assert not list(cell.capture.glob("*.pcap")) and list(cell.capture.glob("*.pcap.zst"))
            except Exception as error:  # noqa: BLE001  whatever is wrong with it
                yield f"{cell_id}: {error}"


def settle(look: Callable[[], list[str]]) -> list[str]:
    """What is left when what is going has gone."""
    until = time.monotonic() + GONE_S
    while (found := look()) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return found
