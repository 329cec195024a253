"""`netwarp kernel watch` on two releases that are built here: a cell that moved is named, with its first packet."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.guestkernel.cache import find_named

pytestmark = pytest.mark.skipif(
    find_named("6.12") is None or find_named("7.3") is None, reason="Linux 6.12 and 7.3 are not both built here"
)


def test_two_releases_differ_where_the_receivers_window_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert main(["kernel", "watch", "6.12", "7.3", "--set", "tiny", "--anew", "--out", str(out), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((out / "watch.json").read_text())
    [cell] = said["cells"]
    assert cell["levels"]["case"] == "window growth"
    # 6.12 and 7.3 measure the overhead of segments otherwise: the first packet of all is an ACK with another window
    assert cell["first_packet"].startswith("at b on p1: packet 110, at 0.28338")
    assert cell["first_packet"].endswith("window: 299 in A, 296 in B")
    assert (out / "new/runs/1-watch/cells" / cell["new_cell"] / "cell.json").is_file()
    assert "window growth" in (out / "index.html").read_text()


def test_a_kernel_beside_itself_has_changed_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "watch", "6.12", "6.12", "--set", "tiny", "--out", str(tmp_path / "out")]) == 0
    assert "Nothing changed." in capsys.readouterr().out
