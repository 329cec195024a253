"""A small part of experiments/lee2008 in guests: the page takes at least what its packets take on the link."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.checkout import ROOT
from support.run_files import RunFiles

SPEC = ROOT / "experiments" / "lee2008" / "spec.toml"


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    given = ["--only", "rate", "--where", "rate=400 kbit/s", "--where", "stack=today", "--repetitions", "1"]
    short = ["--set", "flow.web.page.pages=3", "--no-report"]
    return checkout.run_spec(tmp_path_factory.mktemp("lee2008"), SPEC, *given, *short)


def test_pages_are_whole_and_take_what_the_link_takes(run: RunFiles) -> None:
    on_link = 126 * 576 * 8 / 400e3
    for row, metrics in run.measured("web"):
        assert metrics["pages_complete"] == 3
        assert on_link < metrics["response_time_s"] < metrics["page_time_s"] < 3 * on_link, row
        assert metrics["payload_bytes"] == 3 * 5 * 13500
        assert metrics["lee2008_time_s"] > on_link


def test_a_cell_as_har(run: RunFiles, checkout: Checkout, tmp_path: Path) -> None:
    (row, _), *_ = run.measured("web")
    checkout.run("export", "--har", run.root, row["cell_id"], "--out", tmp_path / "har", cwd=run.root).ok()
    (archive,) = (tmp_path / "har").glob("*.har")
    log = json.loads(archive.read_bytes())["log"]
    assert len(log["pages"]) == 3 and len(log["entries"]) == 15
