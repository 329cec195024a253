"""export_captures: a cell's captures as plain files; a mistake writes nothing."""

from __future__ import annotations

import contextlib
import gzip
import os
from pathlib import Path

import pytest
import zstandard
from netwarp import (
    CaptureError,
    NetwarpError,
    SpecError,
    StoreError,
    analyze_captures,
    explain_captures,
    export_captures,
)  # fmt: skip
from netwarp.core.limits import raised
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
def test_a_cell_is_exported_whole(inside: str, cell: Path, tmp_path: Path) -> None:
    out = tmp_path / "plain"
    names = ["a-p1.pcap", "b-p1.pcap", "b-p2.pcap"]
    assert list(export_captures([cell / inside], out)) == [out / name for name in names]
    assert sorted(path.name for path in out.iterdir()) == names
    assert all((out / name).read_bytes() == PLAIN for name in names)


@pytest.mark.parametrize("kind", ["a link", "a pipe", "a linked folder"])
def test_a_cell_of_a_stranger_leads_nowhere(kind: str, cell: Path, tmp_path: Path) -> None:
    """Neither export nor explain reads a file outside a cell's directory, or waits for one."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "z-p1.pcap").write_bytes(PLAIN)
    inside = cell / "capture" / "z-p1.pcap"
    if kind == "a link":
        inside.symlink_to(secret / "z-p1.pcap")
    elif kind == "a pipe":
        os.mkfifo(inside)
    else:
        (cell / "capture").rename(cell / "before")
        (cell / "capture").symlink_to(secret)
    with pytest.raises(StoreError):
        list(export_captures([cell], tmp_path / "plain"))
    assert not (tmp_path / "plain" / "z-p1.pcap").exists()
    with contextlib.suppress(NetwarpError):
        told = explain_captures([cell]).refused
        assert any("z-p1.pcap" in text for text in told), told


@pytest.mark.parametrize("kind", ["a link", "a link to a device", "a pipe"])
def test_a_plain_folder_of_captures_leads_nowhere(kind: str, tmp_path: Path) -> None:
    """The same of a folder that is no cell's: what is no file in it is refused, the rest is analysed."""
    folder = tmp_path / "captures"
    folder.mkdir()
    (folder / "a.pcap").write_bytes(PLAIN)
    (tmp_path / "secret.pcap").write_bytes(PLAIN)
    inside = folder / "z.pcap"
    if kind == "a pipe":
        os.mkfifo(inside)
    else:
        inside.symlink_to("/dev/zero" if "device" in kind else tmp_path / "secret.pcap")
    for analysed in (analyze_captures([folder]), explain_captures([folder])):
        assert len(analysed.refused) == 1 and "z.pcap" in analysed.refused[0]
    for analyse in (
        lambda: analyze_captures([folder], join=True), lambda: analyze_captures([folder], merge=True),
        lambda: list(export_captures([folder], tmp_path / "plain")),
    ):  # fmt: skip
        with pytest.raises(NetwarpError, match=r"z\.pcap"):
            analyse()


@pytest.mark.parametrize("suffix", ["zst", "zst of two frames", "zst without a length", "gz", ""])
def test_no_more_than_the_limit_is_written(suffix: str, tmp_path: Path) -> None:
    """Also where the file says another size, or none."""
    data = bytes(3_000_000)
    without = zstandard.ZstdCompressor(write_content_size=False).compress(data)
    content = {
        "zst": zstandard.ZstdCompressor().compress(data), "zst of two frames": without + without, "": data,
        "zst without a length": without, "gz": gzip.compress(data),
    }[suffix]  # fmt: skip
    path = tmp_path / f"a.pcap.{suffix.split()[0]}" if suffix else tmp_path / "a.pcap"
    path.write_bytes(content)
    said = r"more than 2000000 B; .*--limit capture-bytes="
    with raised(["capture-bytes=2 MB"]), pytest.raises(CaptureError, match=said):
        list(export_captures([path], tmp_path / "plain"))
    assert not (tmp_path / "plain").exists()
    with raised(["capture-bytes=8 MB"]):
        (made,) = export_captures([path], tmp_path / "plain")
    assert made.stat().st_size == (6_000_000 if "two" in suffix else 3_000_000)


def test_a_mistake_writes_nothing(cell: Path, tmp_path: Path) -> None:
    run = tmp_path / "x"
    (run / "plan.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    cut = tmp_path / "cut.pcap.zst"
    cut.write_bytes((cell / "capture" / "a-p1.pcap.zst").read_bytes()[:2000])
    captures = list((cell / "capture").iterdir())
    mistakes: list[tuple[list[Path], type[NetwarpError], str]] = [
        ([run], SpecError, "is a whole run; name cells of it"),
        ([tmp_path / "empty"], CaptureError, "there is no capture in it"),
        ([cell / "typo"], CaptureError, "no such capture"),
        ([*captures, captures[0]], StoreError, "would both be"),
        ([cut], CaptureError, "is cut off"),
    ]
    for paths, error, message in mistakes:
        with pytest.raises(error, match=message):
            list(export_captures(paths, tmp_path / "out"))
        assert not (tmp_path / "out").exists(), message
    folder = cell / "capture"
    with pytest.raises(StoreError, match="is plain already"):
        list(export_captures([folder / "b-p2.pcap"], folder))
