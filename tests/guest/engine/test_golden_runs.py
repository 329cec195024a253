"""Runs held against what their cells give now, cells replayed, and shards put together."""

from __future__ import annotations

import shutil
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
import zstandard
from netwarp.store.run_dir import RunDir
from support.chain_kit import (
    Checkout,
    all_completed,
    captures,
    cells,
    factor,
    nothing_left,
    raw_files,
    same,
    tables,
    two_paths,
    written,
)


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cells."""
    text = two_paths(factor("delay", ["10 ms", "20 ms"]), duration="2 s").replace('"20 ms"', '"{delay}"', 1)
    return written(tmp_path_factory.mktemp("spec") / "spec.toml", text)


@pytest.fixture(scope="module")
def whole(checkout: Checkout, spec: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of it."""
    place = tmp_path_factory.mktemp("whole")
    checkout.run("run", spec, "--no-report", "--out", place / "x", cwd=place).ok()
    return place / "x"


def equal(said: str) -> bool:
    """Of the four cells every capture is equal, on the same kernel."""
    kernel, total, *stored = said.splitlines()
    return (
        kernel.startswith("kernel: ")
        and kernel.endswith(", the same")
        and total == "4 cells: captures equal byte for byte, 0 not"
        and not any(line.startswith("  ") for line in stored)
    )


def test_captures_that_were_not_kept_are_made_again(
    checkout: Checkout, spec: Path, whole: Path, tmp_path: Path
) -> None:
    """With `--keep tables`, then cell by cell: the run is then the one that kept everything."""
    run = tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--keep", "tables", "--out", run, cwd=tmp_path).ok()
    all_completed(run)
    same(tables(run), tables(whole))
    assert captures(run) == {} and not list(run.glob("cells/*/apps/*"))
    for cell_id in cells(run):
        done = checkout.run("archive", "replay", run, cell_id, cwd=tmp_path).ok()
        assert [Path(line).parent.parent.name for line in done.out.splitlines()] == [cell_id] * 4
    same(captures(run), captures(whole))
    same(raw_files(run), raw_files(whole))
    nothing_left(tmp_path, run=run)


def test_captures_alone_are_kept(checkout: Checkout, spec: Path, whole: Path, tmp_path: Path) -> None:
    run = tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--keep", "captures", "--out", run, cwd=tmp_path).ok()
    same(captures(run), captures(whole))
    same(tables(run), tables(whole))
    assert not list(run.glob("cells/*/apps/*")) and not list(run.glob("cells/*/init.ndjson*"))


def test_a_golden_run(checkout: Checkout, whole: Path, tmp_path: Path) -> None:
    """It gives itself again; a packet that was changed is named by both ways of asking, and replay refuses it."""
    assert equal(checkout.run("archive", "verify", whole, cwd=tmp_path).ok().out)
    half = checkout.run("archive", "verify", whole, "--shard", "1/2", cwd=tmp_path).ok().out
    assert "\n2 cells: captures equal byte for byte, 0 not\n" in half
    run = tmp_path / "x"
    shutil.copytree(whole, run)
    assert equal(checkout.run("archive", "verify", run, whole, cwd=tmp_path).ok().out)
    cell_id = sorted(cells(run))[0]
    capture = sorted((run / "cells" / cell_id / "capture").iterdir())[0]
    plain = bytearray(zstandard.ZstdDecompressor().decompress(capture.read_bytes()))
    plain[24 + 16] ^= 1
    capture.write_bytes(zstandard.compress(bytes(plain)))
    name = capture.name.removesuffix(".pcap.zst")
    for reference in ([], [whole]):
        done = checkout.run("archive", "verify", run, *reference, cwd=tmp_path)
        assert done.status == 1, done
        kernel, line, total, numbers, *_ = done.out.splitlines()
        assert kernel.endswith(", the same")
        assert line.startswith(f"{cell_id}: capture {name}: packet 1, at 0.") and line.endswith("s: its bytes differ")
        assert total == "3 cells: captures equal byte for byte, 1 not"
        assert numbers.endswith(" are equal, 0 within the 95 % interval, 0 outside"), numbers
    digests = run / "cells" / cell_id / "derived" / "packets.json"
    digests.write_text(digests.read_text().replace(f'"{name}": "', f'"{name}": "0'))
    refused = checkout.run("archive", "replay", run, cell_id, cwd=tmp_path)
    assert refused.status == 1 and f"its captures are not those of the run ({name})" in refused.err, refused
    unknown = checkout.run("archive", "replay", run, "nobody", cwd=tmp_path)
    assert unknown.status == 2 and "has no cell nobody" in unknown.err
    nothing_left(tmp_path, run=run)


def test_a_bundle_is_run_again_elsewhere(checkout: Checkout, whole: Path, tmp_path: Path) -> None:
    packed = tmp_path / "x.tar.xz"
    assert checkout.run("archive", "bundle", whole, "--out", packed, cwd=tmp_path).ok().out == f"{packed}\n"
    assert equal(checkout.run("archive", "verify", packed, cwd=tmp_path).ok().out)
    nothing_left(tmp_path, run=whole)


def test_shards_make_the_whole_run(checkout: Checkout, spec: Path, whole: Path, tmp_path: Path) -> None:
    shards = [tmp_path / f"s{number}" for number in (1, 2, 3)]
    for number, shard in enumerate(shards, 1):
        checkout.run("run", spec, "--no-report", "--shard", f"{number}/3", "--out", shard, cwd=tmp_path).ok()
    merged, junit = tmp_path / "x", tmp_path / "j.xml"
    missing = checkout.run("archive", "merge", *shards[1:], "--out", merged, cwd=tmp_path)
    assert missing.status == 2 and "shards 1/3 are missing" in missing.err and not merged.exists()
    checkout.run(
        "archive", "merge", *reversed(shards), "--no-report", "--junit", junit, "--out", merged, cwd=tmp_path
    ).ok()
    all_completed(merged)
    for part in (tables, captures, raw_files):
        same(part(merged), part(whole))
    assert RunDir(merged).plan.read_bytes() == RunDir(whole).plan.read_bytes()
    assert len(list(ElementTree.parse(junit).iter("testcase"))) == 4
    checkout.run("analyze", merged, cwd=tmp_path).ok()
    same(tables(merged), tables(whole))
    checkout.run("archive", "verify", merged, whole, cwd=tmp_path).ok()
    shutil.rmtree(merged / "cells" / sorted(cells(merged))[0])  # as if it had been interrupted
    checkout.run("archive", "merge", *shards, "--no-report", "--out", merged, cwd=tmp_path).ok()
    same(captures(merged), captures(whole))
