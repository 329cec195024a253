"""The doctor on this machine, and on machines made poorer one thing at a time."""

import argparse
import json
import os
import platform
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from orchestrator import doctor
from orchestrator.backends.netns import NetnsBackend
from orchestrator.cli import doctor as command
from orchestrator.doctor import check_virtual, examine, memory_dir, packages
from orchestrator.kernel import find_kernel
from orchestrator.kernel.recipe import CHECKOUT
from orchestrator.model import Problem


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    return parser.parse_args(["doctor", *words])


def problems() -> dict[str, str]:
    """Subject of each problem -> its remedy."""
    return {problem.what.partition(":")[0]: problem.remedy for problem in check_virtual()}


def test_every_problem_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    monkeypatch.setattr(doctor, "GUEST_ROOM_BYTES", 1 << 60)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    found = problems()
    assert set(found) == {"machine", "guest kernel", "apps", "guest memory"}
    assert all(found.values())
    assert "make kernel" in found["guest kernel"]
    assert found["apps"] == "make setup"


def test_a_kernel_that_is_not_there_is_a_problem_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_KERNEL", str(tmp_path / "none"))
    assert problems()["guest kernel"] == "unset NETWARP_KERNEL"


def test_what_is_set_up_is_no_problem() -> None:
    """Whatever else this machine lacks: of the kernel it is as find_kernel says, of the apps as build/ says."""
    found = problems()
    assert ("guest kernel" in found) == (find_kernel() is None)
    assert ("apps" in found) == any(not (CHECKOUT / "build" / name).is_file() for name in doctor.APPS)


def test_guest_memory_needs_room_and_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    place = memory_dir()
    assert place is not None
    monkeypatch.setattr(doctor, "GUEST_ROOM_BYTES", 1 << 60)
    assert memory_dir() is None


def test_guest_memory_is_not_put_where_nothing_may_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def noexec(place: Path) -> SimpleNamespace:
        state = real(place)
        return SimpleNamespace(f_bavail=state.f_bavail, f_frsize=state.f_frsize, f_flag=state.f_flag | os.ST_NOEXEC)

    assert memory_dir() is not None
    monkeypatch.setattr(os, "statvfs", noexec)
    assert memory_dir() is None


def test_the_status_says_whether_it_can_run(capsys: pytest.CaptureFixture[str]) -> None:
    status = command.run(arguments("--json"))
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
    monkeypatch.setattr(command, "netns_backend", lambda apps: unable)
    assert command.run(arguments()) == 1
    out = capsys.readouterr().out
    assert re.search(r"guest kernel +missing", out)
    assert re.search(r"guest boots +note +not tried", out)
    assert out.endswith("Can run here: nothing yet. Cannot: virtual, guest, netns.\n")


def test_a_program_that_is_no_kernel_is_told_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_KERNEL", "/bin/echo")
    states = {finding.what: finding.state for finding in examine()}
    assert states["guest kernel"] == "missing"


def test_a_program_that_pretends_to_be_a_kernel_does_not_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers --version as a kernel does; only starting it shows what it is."""
    program = tmp_path / "linux"
    program.write_text("#!/bin/sh\necho 6.12.0\n")
    program.chmod(0o755)
    monkeypatch.setenv("NETWARP_KERNEL", str(program))
    states = {finding.what: finding.state for finding in examine()}
    assert states["guest kernel"] == "ok"
    assert states["guest boots"] == "missing"


def test_the_package_lists_are_read() -> None:
    assert "linux-source-6.12" in packages("run")
    assert "tshark" in packages("test")
    assert not set(packages("run")) & set(packages("test"))


def test_a_missing_package_is_a_warning_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "setup").mkdir()
    (tmp_path / "setup/packages.txt").write_text("# list\nrun  no-such-package-of-ours  x\nrun  libc6  y\n")
    monkeypatch.setattr(doctor, "CHECKOUT", tmp_path)
    finding = next(finding for finding in examine() if finding.what == "packages")
    if subprocess.run(["which", "dpkg-query"], capture_output=True, check=False).returncode != 0:
        assert finding.state == "note"
    else:
        assert finding.state == "warning"
        assert finding.remedy.endswith("no-such-package-of-ours")
