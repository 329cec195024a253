"""A pack from elsewhere is refused in a sentence before anything of the size that it claims is read or kept."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from netwarp.core.errors import StoreError
from netwarp.core.limits import raised
from netwarp.core.types import CellOutcome, Check, Outcome
from netwarp.store.packing import pack_one, pack_run, unpack_run
from netwarp.store.run_dir import Judgement, RunDir, write_json

ZEROS = bytes(300_000)
FEW = ("members=20", "file-bytes=100 kB", "bytes=200 kB", "whole-bytes=200 kB")


def _zip(members: dict[str, bytes], way: int = zipfile.ZIP_STORED) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", way) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return out.getvalue()


def _encrypted() -> bytes:
    data = bytearray(_zip({"c.zip": b"x"}))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    return bytes(data)


CELL = {"cell.json": b"{}", "outcome.json": b"{}"}
PACKS: dict[str, bytes] = {
    "the outer member is a bomb": _zip({"c.zip": ZEROS}, zipfile.ZIP_DEFLATED),
    "the outer member is large": _zip({"c.zip": ZEROS}),
    "an inner member is a bomb": _zip({"c.zip": _zip({"cell.json": ZEROS}, zipfile.ZIP_DEFLATED)}),
    "the outer member is of LZMA": _zip({"c.zip": b"x" * 99}, zipfile.ZIP_LZMA),
    "the outer member is of BZIP2": _zip({"c.zip": b"x" * 99}, zipfile.ZIP_BZIP2),
    "an inner member is of LZMA": _zip({"c.zip": _zip({"cell.json": b"x" * 99}, zipfile.ZIP_LZMA)}),
    "an inner member is damaged LZMA": _zip(
        {"c.zip": _zip({"cell.json": b"x" * 99}, zipfile.ZIP_LZMA).replace(b"]\0\0", b"\xff\xff\xff")}
    ),
    "an inner member is of BZIP2": _zip({"c.zip": _zip({"cell.json": b"x" * 99}, zipfile.ZIP_BZIP2)}),
    "the pack has many members": _zip({f"c{number}.zip": b"" for number in range(21)}),
    "the cell has many members": _zip({"c.zip": _zip({f"apps/{number}": b"" for number in range(21)})}),
    "it is encrypted": _encrypted(),
}
SINGLES: dict[str, bytes] = {
    "a cell's archive is large": _zip({"cell.json": ZEROS}),
    "a cell's archive is of LZMA": _zip({"cell.json": b"x" * 99}, zipfile.ZIP_LZMA),
    "a cell's archive is a bomb": _zip({"cell.json": ZEROS}, zipfile.ZIP_DEFLATED),
}


def _read(run: RunDir) -> object:
    return run.cell("c").outcome.read_bytes()


def _listed(run: RunDir) -> object:
    return [run.cell(name).outcome.read_bytes() for name in run.finished()]


@pytest.mark.parametrize("use", [_read, _listed, unpack_run])
@pytest.mark.parametrize("what", [*PACKS, *SINGLES])
def test_a_hostile_pack_is_refused(what: str, use: Callable[[RunDir], object], tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.cells.mkdir()
    (run.cells / ("pack-00001.zip" if what in PACKS else "c.zip")).write_bytes({**PACKS, **SINGLES}[what])
    with raised(FEW), pytest.raises((StoreError, OSError)) as refused:
        use(run)
    said = str(refused.value)
    assert said.isprintable() and ("more than" in said or "compressed" in said or "encrypted" in said), said


def test_the_limits_of_a_pack_can_be_raised(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.cells.mkdir()
    cell = _zip({**CELL, "apps/x": ZEROS}, zipfile.ZIP_DEFLATED)
    (run.cells / "pack-00001.zip").write_bytes(_zip({"c.zip": cell}))
    with raised(FEW), pytest.raises(StoreError, match="--limit file-bytes="):
        unpack_run(RunDir(tmp_path))
    with raised((*FEW, "file-bytes=1 MB", "bytes=1 MB", "whole-bytes=1 MB")):
        assert unpack_run(RunDir(tmp_path)) == 1
    assert (run.cells / "c" / "apps" / "x").read_bytes() == ZEROS


def test_a_directory_of_a_pack_that_lies_is_no_reason_to_count_forever(tmp_path: Path) -> None:
    """The size of the directory and its entries' lengths are the author's."""
    whole = bytearray(_zip({f"c{number}.zip": b"" for number in range(3)}))
    first, end = whole.index(b"PK\1\2"), whole.rindex(b"PK\5\6")
    for at, value in ((first + 28, b"\xff\xff"), (end + 12, b"\xff\xff\xff\x7f"), (end + 12, b"\x60\0\0\0")):
        lies = bytearray(whole)
        lies[at : at + len(value)] = value
        run = RunDir(tmp_path / value.hex())
        run.cells.mkdir(parents=True)
        (run.cells / "pack-00001.zip").write_bytes(lies)
        with pytest.raises(StoreError, match="cannot be read"):
            run.finished()


def test_a_cell_that_could_not_be_read_again_is_not_packed(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    cell = run.cell("c")
    write_json(cell.outcome, CellOutcome(Outcome.COMPLETED, "", 1.0, 0.1))
    write_json(cell.checks, [Check("x", True, "c")])
    write_json(cell.judgement, Judgement(Outcome.COMPLETED, ""))
    cell.capture.mkdir()
    (cell.capture / "a-p1.pcap.zst").write_bytes(ZEROS)
    with raised(FEW):
        pack_one(run, "c")
        pack_run(run)
        assert [path.name for path in run.cells.iterdir()] == ["c"]
    pack_run(run)
    assert [path.name for path in run.cells.iterdir()] == ["pack-00001.zip"]
