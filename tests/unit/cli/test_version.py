"""`netwarp --version` names the version, the commit and the kernel."""

from __future__ import annotations

import platform
import subprocess
from pathlib import Path

import pytest
from netwarp import __version__
from netwarp.cli import main
from netwarp.guestkernel import find_kernel
from support.checkout import ROOT


def said(capsys: pytest.CaptureFixture[str]) -> list[str]:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    return capsys.readouterr().out.splitlines()


def test_version(kernel: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    lines = said(capsys)
    found = find_kernel()
    assert found is not None
    assert lines[0].startswith(f"netwarp {__version__}")
    head = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert (f"commit {head.stdout.strip()}" in lines[0]) == (head.returncode == 0)
    assert found.release in lines[1]
    assert found.sha256 in lines[1]
    assert platform.release() in lines[2]


def test_without_git_and_without_a_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NETWARP_KERNEL", str(tmp_path / "linux"))
    lines = said(capsys)
    assert lines[0] == f"netwarp {__version__}"
    assert lines[1].startswith("guest kernel: none: ")
    monkeypatch.setenv("NETWARP_KERNEL", "")
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    assert said(capsys)[1] == "guest kernel: none built (make kernel)"
