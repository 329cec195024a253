"""A run held against a reference: its kernel, its captures, and the numbers of cells whose captures differ."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from netwarp.cli.archive import run_verify
from netwarp.core.types import CellOutcome, Measurement, Outcome
from netwarp.engine.bundles import bundle, opened
from netwarp.engine.run_again import verify
from netwarp.store.run_dir import RunDir, read_json
from support.report_kit import MANIFEST, large_run, put

LEVELS = "10s_multi_default_100ms_r"
"""The combination whose captures are others in the reference; every cell is random, with four repetitions."""


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    """A run without captures, of which the analysis kept the digests."""
    return without_captures(large_run(tmp_path / "now", 240))


def without_captures(run: RunDir) -> RunDir:
    for place in run.cells.iterdir():
        (place / "capture" / "a-p1.pcap.zst").unlink()
        put(run.cell(place.name).packets, {"a-p1": "0" * 64})
    return run


def reference(folder: Path, change: Callable[[float, int], float], kernel: str = "0" * 64) -> RunDir:
    """The same run with other captures in one combination, and there another goodput: change(value, repetition)."""
    golden = without_captures(large_run(folder / "then", 240))
    put(golden.manifest, MANIFEST | {"spec": "made-up", "seed": 1, "repetitions": 4, "kernel_sha256": kernel})
    for place in golden.cells.glob(f"{LEVELS}*"):
        cell = golden.cell(place.name)
        put(cell.packets, {"a-p1": "1" * 64})
        number = int(place.name.removeprefix(LEVELS).partition("_")[0])
        rows = read_json(cell.measurements, list[Measurement])
        put(cell.measurements, [changed(row, change, number) for row in rows])
    return golden


def changed(row: Measurement, change: Callable[[float, int], float], number: int) -> Measurement:
    if row.metric != "goodput_bit_s" or row.value is None:
        return row
    return Measurement(row.cell_id, row.flow, row.metric, change(row.value, number), row.unit)


def said(run: RunDir, golden: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    arguments = argparse.Namespace(run_dir=run.root, reference=golden, jobs=None, allow_programs=False)
    status = run_verify(arguments)
    return status, capsys.readouterr().out.splitlines()


def test_the_kernel_is_named_first(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = said(run, run.root, capsys)
    assert status == 0
    assert lines[0] == "kernel: 6.12.117, sha256 000000000000, the same"
    assert lines[1].endswith("cells: captures equal byte for byte, 0 not")
    other = reference(tmp_path, lambda value, number: value, kernel="f" * 64)
    _, lines = said(run, other.root, capsys)
    assert lines[0].endswith("not the same: 6.12.117, sha256 ffffffffffff in the reference")


def test_other_packets_and_equal_numbers(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, lines = said(run, reference(tmp_path, lambda value, number: value).root, capsys)
    assert status == 1
    assert sum(line.startswith(LEVELS) for line in lines) == 4
    assert any(
        line.startswith("of 5 numbers of these cells and their repetitions 5 are equal, 0 within") for line in lines
    )


@pytest.mark.parametrize(
    ("change", "within"),
    [
        (lambda value, number: value + (400, -300, 200, -500)[number], True),
        (lambda value, number: value * 1.2 + (400, -300, 200, -500)[number], False),
    ],
)
def test_numbers_beside_the_intervals(
    run: RunDir, tmp_path: Path, change: Callable[[float, int], float], within: bool
) -> None:
    """Differences whose sign changes from draw to draw are within; a fifth more in every draw is not."""
    verified = verify(run.root, reference(tmp_path, change).root)
    assert verified.numbers is not None
    status = {number.metric: number.verdict for number in verified.numbers.numbers}
    assert status.pop("goodput_bit_s") == ("within noise" if within else "changed")
    assert set(status.values()) == {"same"}


def test_what_lies_outside_is_named(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = said(run, reference(tmp_path, lambda value, number: 2 * value).root, capsys)
    assert any("1 outside" in line and "ftp goodput_bit_s" in after for line, after in pairwise(lines))


def test_a_bundle_brings_its_numbers(run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = bundle(reference(tmp_path, lambda value, number: value).root, tmp_path / "x.tar.xz")
    assert any("5 are equal" in line for line in said(run, packed, capsys)[1])
    with opened(packed) as place:  # of an older netwarp, whose bundles had none
        for path in place.glob("cells/*/derived/checks.json"):
            path.unlink()
        _, lines = said(run, place, capsys)
    assert any(line.startswith("their numbers cannot be compared: ") for line in lines)


def test_a_cell_without_captures_in_both_is_not_equal(
    run: RunDir, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """UNSUPPORTED here and there: nothing was compared, so nothing is said to be equal."""
    golden = without_captures(large_run(tmp_path / "then", 240))
    cell_id = min(path.name for path in run.cells.iterdir())
    for side in (run, golden):
        side.cell(cell_id).packets.unlink()
        put(side.cell(cell_id).outcome, CellOutcome(Outcome.UNSUPPORTED, "no such scheduler", None, 0.1))
    status, lines = said(run, golden.root, capsys)
    assert status == 1
    assert f"{cell_id}: has no captures to compare: it ended UNSUPPORTED in both (no such scheduler)" in lines
    (count,) = [line for line in lines if "byte for byte" in line]
    assert count.endswith("cells: captures equal byte for byte, 1 not")
