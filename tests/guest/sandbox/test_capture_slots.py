"""Captures through memory have the bytes of those that a guest writes as files, however slowly they are read."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
import zstandard
from netwarp.captures import read_captures
from netwarp.core.built_programs import BUILD
from netwarp.core.errors import CellError
from netwarp.core.types import Cell, Outcome
from netwarp.sandbox import VirtualBackend
from netwarp.sandbox.capture_slots import MESSAGE, SLOT, SLOT_BYTES, CaptureSlots
from netwarp.sandbox.host_load import SteadyClock
from netwarp.sandbox.sandbox import last_mark
from netwarp.store.run_dir import CellDir, RunDir
from support.chain_kit import two_hosts
from support.specs import plan_of

SPEC = two_hosts(name="slots", duration="2 s", rate="20 Mbit/s")
SLOTS = 2 * 2
"""Two for each capture, none to spare."""


class Files(VirtualBackend):
    """Its guests write their captures as files."""

    def capture_slots(self, cell: Cell, directory: CellDir) -> CaptureSlots | None:
        return None


class SlowSlots(CaptureSlots):
    """Takes longer for a slot than a guest to fill one."""

    taken = 0

    def _take(self, stream: int, slot: int, count: int) -> None:
        time.sleep(0.03)
        super()._take(stream, slot, count)
        SlowSlots.taken += 1


class Slow(VirtualBackend):
    """Its guests wait for slots."""

    def capture_slots(self, cell: Cell, directory: CellDir) -> CaptureSlots | None:
        return SlowSlots(directory.capture, len(cell.captures), spare=0)


@pytest.fixture(scope="module")
def cell() -> Cell:
    """10 MB in both captures."""
    (found,) = plan_of(SPEC).cells
    return found


def captures(backend: VirtualBackend, cell: Cell, place: Path) -> dict[str, bytes]:
    """Run it: its captures as they are stored."""
    run = RunDir(place)
    outcome = backend.run_cell(cell, run)
    assert outcome.outcome is Outcome.COMPLETED, outcome
    return {path.name: path.read_bytes() for path in run.cell(cell.id).capture.iterdir()}


def test_equal_to_files_however_slowly_they_are_read(kernel: Path, cell: Cell, tmp_path: Path) -> None:
    files = captures(Files(kernel, BUILD), cell, tmp_path / "files")
    assert sorted(files) == ["a-p1.pcap.zst", "b-p1.pcap.zst"]
    assert captures(VirtualBackend(kernel, BUILD), cell, tmp_path / "memory") == files
    assert captures(Slow(kernel, BUILD), cell, tmp_path / "slow") == files
    raw = sum(len(zstandard.decompress(data)) for data in files.values())
    assert SlowSlots.taken >= raw / SLOT_BYTES > 4 * SLOTS


def test_what_cannot_be_written_is_said_of_the_cell(kernel: Path, cell: Cell, tmp_path: Path) -> None:
    """The guest goes on to its end, so that nothing hangs."""

    class Gone(VirtualBackend):
        def capture_slots(self, cell: Cell, directory: CellDir) -> CaptureSlots | None:
            gone = directory.root / "gone"
            gone.mkdir()
            slots = CaptureSlots(gone, len(cell.captures))
            gone.rmdir()
            return slots

    outcome = Gone(kernel, BUILD).run_cell(cell, RunDir(tmp_path))
    assert outcome.outcome is Outcome.FAILED
    assert outcome.reason == "its files could not be written: No such file or directory (.a-p1.pcap.zst)"


def test_a_killed_guest_leaves_what_it_has_written(kernel: Path, cell: Cell, tmp_path: Path) -> None:
    """Also of slots that it has not filled."""

    class Killed(VirtualBackend):
        def _watch(self, cell: Cell, directory: CellDir, sandbox: Any, steady: SteadyClock) -> str:
            while last_mark(directory.console) is None:
                time.sleep(0.001)
            sandbox.kill()
            sandbox.wait()
            return ""

    long = msgspec.structs.replace(cell, duration_ns=100 * cell.duration_ns)
    run = RunDir(tmp_path)
    outcome = Killed(kernel, BUILD).run_cell(long, run)
    assert outcome.outcome is Outcome.FAILED and "killed by signal 9" in outcome.reason
    left = read_captures([run.cell(long.id).capture / "a-p1.pcap.zst"], ("packets",))
    assert len(left.packets) > 100


def test_a_slot_that_is_free_keeps_what_the_guest_wrote_into_it_since(tmp_path: Path) -> None:
    """The guest takes a slot once its stream is 0 and counts its bytes: to free it touches the one word alone."""
    slots = CaptureSlots(tmp_path, 1)
    for slot in (1, 2, 3):
        SLOT.pack_into(slots._memory, slots._place(slot), 0x0101 * slot, 26136 + slot)
    slots._free(2)
    assert [SLOT.unpack_from(slots._memory, slots._place(slot)) for slot in (1, 2, 3)] == [
        (0x0101, 26137), (0, 26138), (0x0303, 26139),
    ]  # fmt: skip
    for slot in (1, 3):
        slots._free(slot)
    assert slots.finish() == {}


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ((1, 0, 0, b"../outside"), "name '../outside.pcap'"),
        ((1, 0, 0, b"/etc/outside"), "name '/etc/outside.pcap'"),
        ((7, 1, 10, b""), "10 bytes of stream 7"),
        ((1, 999, 10, b""), "slot 999"),
    ],
)
def test_no_message_of_a_guest_leads_elsewhere(message: tuple[int, int, int, bytes], said: str, tmp_path: Path) -> None:
    captures = tmp_path / "capture"
    captures.mkdir()
    slots = CaptureSlots(captures, 1)
    if message[1]:
        slots._guests_socket.send(MESSAGE.pack(1, 0, 0, b"a-p1"))
    slots._guests_socket.send(MESSAGE.pack(*message))
    with pytest.raises(CellError, match=said):
        slots.finish()
    assert [path.name for path in tmp_path.iterdir()] == ["capture"]


def test_no_link_in_the_directory_of_captures_leads_elsewhere(tmp_path: Path) -> None:
    """Whoever owns the directory may put links there while netwarp, perhaps root, writes."""
    captures, outside = tmp_path / "capture", tmp_path / "outside"
    captures.mkdir()
    outside.write_text("root's")
    (captures / ".a-p1.pcap.zst").symlink_to(outside)
    slots = CaptureSlots(captures, 1)
    slots._guests_socket.send(MESSAGE.pack(1, 0, 0, b"a-p1"))
    with pytest.raises(FileExistsError):
        slots.finish()
    assert outside.read_text() == "root's"
    (captures / ".a-p1.pcap.zst").unlink()
    slots = CaptureSlots(captures, 1)
    captures.rename(tmp_path / "moved")
    captures.symlink_to(tmp_path)
    slots._guests_socket.send(MESSAGE.pack(1, 0, 0, b"a-p1"))
    assert slots.finish() == {"a-p1.pcap": 0}
    assert [path.name for path in (tmp_path / "moved").iterdir()] == ["a-p1.pcap.zst"]
