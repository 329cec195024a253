"""`netwarp export`: a cell's captures as plain files, packed or not; nothing is made where something is wrong."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
import zstandard
from netwarp.cli import main
from support.captures import recorded

PLAIN = zstandard.ZstdDecompressor().decompress(recorded("tcp", "a", ["p1"])[0].read_bytes())


@pytest.fixture
def cell(tmp_path: Path) -> Path:
    """A cell's directory: a capture as it is kept, one packed by somebody else, one plain (as a shell leaves them)."""
    folder = tmp_path / "x" / "cells" / "c1" / "capture"
    folder.mkdir(parents=True)
    (folder / "a-p1.pcap.zst").write_bytes(zstandard.ZstdCompressor().compress(PLAIN))
    (folder / "b-p1.pcap.gz").write_bytes(gzip.compress(PLAIN))
    (folder / "b-p2.pcap").write_bytes(PLAIN)
    return folder.parent


@pytest.mark.parametrize("inside", ["", "capture"])
def test_a_cell_is_exported_whole(inside: str, cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "plain"
    assert main(["export", str(cell / inside), "--out", str(out)]) == 0
    names = ["a-p1.pcap", "b-p1.pcap", "b-p2.pcap"]
    assert capsys.readouterr().out.splitlines() == [str(out / name) for name in names]
    assert sorted(path.name for path in out.iterdir()) == names
    assert all((out / name).read_bytes() == PLAIN for name in names)


def test_what_is_wrong_is_said_before_anything_is_made(
    cell: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "x"
    (run / "plan.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    cut = tmp_path / "cut.pcap.zst"
    cut.write_bytes((cell / "capture" / "a-p1.pcap.zst").read_bytes()[:2000])
    captures = [str(path) for path in (cell / "capture").iterdir()]
    for words, status, said in (
        ([str(run)], 2, "is a whole run; name cells of it"),
        ([str(tmp_path / "empty")], 1, "there is no capture in it"),
        ([str(cell / "typo")], 1, "no such capture"),
        ([*captures, captures[0]], 1, "would both be"),
        ([str(cut)], 1, "is cut off"),
    ):
        assert main(["export", *words, "--out", str(tmp_path / "out")]) == status, said
        assert said in capsys.readouterr().err
        assert not (tmp_path / "out").exists(), said
    folder = cell / "capture"
    assert main(["export", str(folder / "b-p2.pcap"), "--out", str(folder)]) == 1
    assert "is plain already" in capsys.readouterr().err
