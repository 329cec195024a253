"""`netwarp doctor`: its exit status, its JSON and its table."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from netwarp.cli import doctor, main
from netwarp.core.types import Problem
from netwarp.doctor import examine
from netwarp.guestkernel import packaged as packaged
from netwarp.sandbox.netns import NetnsBackend


def test_the_status_says_whether_it_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor", "--json"])
    report = json.loads(capsys.readouterr().out)
    able = [name for name in ("virtual", "guest", "netns") if report[name]]
    assert bool(able) == (status == 0)
    assert report["virtual"] == all(finding["state"] != "missing" for finding in report["findings"])
    assert {finding["what"] for finding in report["findings"]} == {"netns", *(finding.what for finding in examine())}
    netns = next(finding for finding in report["findings"] if finding["what"] == "netns")
    assert (netns["state"] == "ok") == report["netns"] == (not netns["remedy"])


def test_without_a_kernel_the_status_is_1_and_no_guest_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    unable = NetnsBackend(tmp_path), [Problem("no netem", "modprobe sch_netem")]
    monkeypatch.setattr(doctor, "netns_backend", lambda apps: unable)
    monkeypatch.setattr(packaged, "BINARY", tmp_path / "linux.uml")
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert re.search(r"guest kernel +missing", out)
    assert re.search(r"guest boots +note +not tried", out)
    assert out.endswith("Can run here: nothing yet. Cannot: virtual, guest, netns.\n")
