"""A packed run: the same tables and report; every command that reads a run reads it; unpacked it is the other one."""

from __future__ import annotations

import subprocess
from pathlib import Path

from support.chain_kit import Checkout, captures, nothing_left, raw_files, same, tables, two_paths, written


def pages(run: Path) -> dict[str, int]:
    """Files of the report, and their sizes."""
    return {str(path.relative_to(run)): path.stat().st_size for path in (run / "report").rglob("*.js")}


def test_a_packed_run(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", two_paths(duration="3 s"))
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    checkout.run("run", spec, "--out", plain, "--repetitions", 2, cwd=tmp_path).ok()
    checkout.run("run", spec, "--out", packed, "--repetitions", 2, "--pack", cwd=tmp_path).ok()
    assert sorted(path.name for path in (packed / "cells").iterdir()) == ["pack-00001.zip"]
    same(tables(packed), tables(plain))
    assert pages(packed).keys() == pages(plain).keys()
    checkout.run("run", spec, "--out", packed, "--repetitions", 2, "--pack", "--resume", cwd=tmp_path).ok()
    checkout.run("report", packed, cwd=tmp_path).ok()
    assert "1 run" not in checkout.run("compare", plain, packed, cwd=tmp_path).ok().err
    checkout.run("archive", "verify", packed, plain, cwd=tmp_path).ok()
    checkout.run("archive", "verify", packed, cwd=tmp_path).ok()
    checkout.run("analyze", packed, cwd=tmp_path).ok()
    assert sorted(path.name for path in (packed / "cells").iterdir()) == ["pack-00001.zip"]
    same(tables(packed), tables(plain))
    cell = next(path for path in (plain / "cells").iterdir())
    refused = checkout.run("export", packed / "cells" / cell.name, "--out", tmp_path / "x", cwd=tmp_path)
    assert refused.status == 2 and "unpack" in refused.err
    again = checkout.run("archive", "replay", packed, cell.name, cwd=tmp_path).ok()
    assert (packed / "cells" / cell.name / "capture").is_dir(), again
    done = subprocess.run(["unzip", "-qt", packed / "cells" / "pack-00001.zip"], check=False, capture_output=True)
    assert done.returncode == 0, done
    checkout.run("archive", "unpack", packed, cwd=tmp_path).ok()
    assert list((packed / "cells").glob("*.zip")) == []
    same(captures(packed), captures(plain))
    same(raw_files(packed), raw_files(plain))
    nothing_left(tmp_path, run=packed)


def test_shards_merge_from_packs(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    for shard in ("1/2", "2/2"):
        out = tmp_path / shard[0]
        checkout.run(
            "run", spec, "--out", out, "--pack", "--keep", "tables", "--shard", shard, "--no-report", cwd=tmp_path
        ).ok()
    checkout.run(
        "archive", "merge", tmp_path / "1", tmp_path / "2", "--out", tmp_path / "m", "--no-report", cwd=tmp_path
    ).ok()
    assert len(list((tmp_path / "m" / "cells").glob("*/outcome.json"))) == 2
