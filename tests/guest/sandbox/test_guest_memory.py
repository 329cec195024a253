"""A cell's files stay out of its guest's memory; larger captures of equal cells are equal (decision 0007)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.sandbox.cell_verdict import check_memory
from netwarp.store.init_records import read_init_log
from netwarp.testbed.steps import Step, step
from support import cell_init_kit as kit
from support.determinism import FIXED, LARGE_BYTES, Hunt, Reference, large_cell
from support.packet_difference import first_difference, plain_captures
from support.run_files import records

MIB = 1 << 20
GUEST_MIB = 256


@pytest.fixture(scope="module")
def hunt(kernel: Path) -> Iterator[Hunt]:
    """In a directory that every user may enter (pytest's own are its user's alone)."""
    place = Path(tempfile.mkdtemp(prefix="netwarp-memory-"))
    place.chmod(0o755)
    yield Hunt(kernel, kit.built(), place, seed=1)
    shutil.rmtree(place)


@pytest.fixture(scope="module")
def reference(hunt: Hunt) -> Reference:
    """A cell of more raw captures than its guest has memory."""
    return hunt.reference(large_cell())


def test_captures_stay_out_of_the_page_cache(reference: Reference) -> None:
    raw = sum(len(plain) for _, plain in plain_captures(reference.directory))
    assert raw > LARGE_BYTES > GUEST_MIB * MIB
    log = reference.directory / "init.ndjson"
    found = records(log)
    assert check_memory(read_init_log(log)).ok
    (memory,) = (record for record in found if record["record"] == "memory")
    assert memory["most_cached_bytes"] < 8 * MIB
    assert memory["least_free_bytes"] > (GUEST_MIB - 64) * MIB


@pytest.mark.parametrize("how", FIXED[:2], ids=str)
def test_equal_packets_whatever_the_circumstances(how: object, hunt: Hunt, reference: Reference) -> None:
    """`make determinism` has all five, and draws more."""
    assert isinstance(how, type(FIXED[0]))
    before = hunt.stopped
    assert hunt.compare(reference, how) == ""
    # a fast machine ends the cell before the last stop
    assert (hunt.stopped > before) == (how.stops > 0)


def test_a_difference_is_named(reference: Reference, tmp_path: Path) -> None:
    """One byte of one packet, in a copy of the captures."""
    import zstandard

    copy = tmp_path / "cell"
    shutil.copytree(reference.directory, copy)
    assert first_difference(reference.directory, copy) is None
    (name, plain), *_ = plain_captures(copy)
    second = 24 + 16 + int.from_bytes(plain[24 + 8 : 24 + 12], "little")
    changed = bytearray(plain)
    changed[second + 16 + 14 + 5] ^= 1  # its IP identification
    (copy / "capture" / f"{name}.pcap.zst").write_bytes(zstandard.ZstdCompressor().compress(bytes(changed)))
    found = first_difference(reference.directory, copy)
    assert found is not None
    assert (found.interface, found.number) == (name, 2)
    assert "TCP" in found.a and found.a == found.b


def program(script: str, end_s: int) -> list[Step]:
    """A cell whose one program is a shell script."""
    return [
        *kit.opening(), step("progress", every_ns=kit.S), *kit.namespaces("a"), step("ready"),
        step("spawn", id="p", ns=0, flow=1, at_ns=0, arg=["sh", "-c", script], stdout="p.out", stderr="p.err"),
        kit.ending(end_s * kit.S),
    ]  # fmt: skip


WRITTEN_MIB = 320
STEADY = f"for n in $(seq {WRITTEN_MIB // 8}); do head -c 8M /dev/zero; sleep 1; done"
AT_ONCE = f"head -c {WRITTEN_MIB}M /dev/zero"


@pytest.mark.parametrize(("script", "fits"), [(STEADY, True), (AT_ONCE, False)], ids=["steady", "at once"])
def test_a_program_that_writes_much(script: str, fits: bool, kernel: Path, tmp_path: Path) -> None:
    """Dropped every 16 virtual seconds. What comes in no time at all can fill the memory: then the check says so."""
    result = kit.run_guest(kernel, tmp_path / "x", program(script, 60)).completed()
    assert (result.directory / "p.out").stat().st_size == WRITTEN_MIB * MIB
    assert check_memory(read_init_log(result.directory / "init.ndjson")).ok is fits
    os.truncate(result.directory / "p.out", 0)
