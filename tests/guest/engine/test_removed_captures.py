"""A run whose captures were removed keeps all that was derived from them; commands name what is missing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from support.chain_kit import Checkout, cells, two_paths, written


def contents(run: Path) -> dict[str, bytes]:
    """What was derived, by name: outcomes, derived files, tables."""
    found = [*run.glob("cells/*/outcome.json"), *run.glob("cells/*/derived/*"), *run.glob("tables/*")]
    return {str(path.relative_to(run)): path.read_bytes() for path in found}


def test_nothing_derived_gets_worse(checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", two_paths(duration="2 s"))
    whole, run = tmp_path / "whole", tmp_path / "run"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    shutil.copytree(run, whole)
    first, second = cells(run)
    before = contents(run)
    shutil.rmtree(run / "cells" / first / "capture")
    next((run / "cells" / second / "apps").glob("*.receiver.ndjson.zst")).unlink()

    again = checkout.run("analyze", run, cwd=tmp_path)
    assert again.status == 1
    assert "2 of 2 cells were not analysed again" in again.err
    assert f"{first}: capture/" in again.err
    assert f"{second}: apps/" in again.err
    assert contents(run) == before

    checkout.run("run", spec, "--no-report", "--out", run, "--resume", cwd=tmp_path).ok()
    assert contents(run) == before

    said = checkout.run("compare", whole, run, cwd=tmp_path).ok().out
    assert "Nothing changed beyond noise." in said
    assert "their captures are equal byte for byte in 2." in said, "one of them by the digests that analysis kept"
    digests = run / "cells" / first / "derived" / "packets.json"
    digests.rename(tmp_path / "packets.json")
    said = checkout.run("compare", whole, run, cwd=tmp_path).ok().out
    assert "their captures are equal byte for byte in 1." in said
    assert "Captures of 1 cell are missing in one run or both" in said
    as_json = json.loads(checkout.run("compare", whole, run, "--json", cwd=tmp_path).ok().out)
    assert as_json["cells"] == {"same_id": 2, "same_captures": 1, "without_captures": 1}

    shutil.rmtree(run / "cells" / first / "derived")
    kept = contents(run)
    for command in (("analyze", run), ("run", spec, "--no-report", "--out", run, "--resume"), ("compare", whole, run)):
        refused = checkout.run(*command, cwd=tmp_path)
        assert refused.status not in (0, 130), command
        assert f"{first}: has no derived files, and what they are made from is missing: capture/" in refused.err
        assert "bring" in refused.err
        assert contents(run) == kept
