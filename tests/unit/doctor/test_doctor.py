"""The doctor on this machine, and on machines that lack one thing each."""

import json
import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from netwarp.core.built_programs import BUILD, BUILT_FILES
from netwarp.core.checkout import CHECKOUT
from netwarp.core.executables import find_executable
from netwarp.doctor import check_guest, check_virtual, distribution, examine, guest, machine, memory_dir, packages
from netwarp.doctor.finding import answers_in_child
from netwarp.guestkernel import find_kernel
from netwarp.guestkernel import packaged as packaged


def problems() -> dict[str, str]:
    """Subject of each problem -> its remedy."""
    return {problem.what.partition(":")[0]: problem.remedy for problem in check_virtual()}


def test_every_problem_has_a_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    monkeypatch.setattr(guest, "BUILD", tmp_path)
    monkeypatch.setattr(guest, "GUEST_ROOM_BYTES", 1 << 60)
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    found = problems()
    assert set(found) == {"machine", "guest kernel", "apps", "guest memory"}
    assert all(found.values())
    assert "make kernel" in found["guest kernel"]
    assert found["apps"] == "make setup"


def test_a_kernel_that_is_not_there_is_a_problem_not_a_crash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_KERNEL", str(tmp_path / "none"))
    assert problems()["guest kernel"] == "unset NETWARP_KERNEL"


def test_parts_that_are_set_up_are_no_problem() -> None:
    """Whatever else this machine lacks: of the kernel it is as find_kernel says, of the apps as build/ says."""
    found = problems()
    assert ("guest kernel" in found) == (find_kernel() is None)
    assert ("apps" in found) == any(not (BUILD / file.path).is_file() for file in BUILT_FILES)


def test_guest_memory_needs_room_and_exec(monkeypatch: pytest.MonkeyPatch) -> None:
    place = memory_dir()
    assert place is not None
    monkeypatch.setattr(guest, "GUEST_ROOM_BYTES", 1 << 60)
    assert memory_dir() is None


def test_guest_memory_is_not_put_where_nothing_may_be_executed(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.statvfs

    def noexec(place: Path) -> SimpleNamespace:
        state = real(place)
        return SimpleNamespace(f_bavail=state.f_bavail, f_frsize=state.f_frsize, f_flag=state.f_flag | os.ST_NOEXEC)

    assert memory_dir() is not None
    monkeypatch.setattr(os, "statvfs", noexec)
    assert memory_dir() is None


def test_the_packaged_kernel_is_for_the_back_end_guest_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "linux.uml"
    program.write_text("#!/bin/sh\necho 6.1.0\n")
    program.chmod(0o755)
    (tmp_path / "6.1.0").mkdir()
    (tmp_path / "6.1.0" / "modules.dep").touch()
    monkeypatch.setattr(packaged, "BINARY", program)
    monkeypatch.setattr(packaged, "MODULES", tmp_path)
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "empty"))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    said = {finding.what: finding for finding in examine()}
    assert said["packaged kernel"].state == "ok"
    assert "guest kernel" not in " ".join(problem.what for problem in check_guest())
    assert "guest kernel" in " ".join(problem.what for problem in check_virtual())
    monkeypatch.setenv("NETWARP_KERNEL", str(program))
    assert "no virtual clock" in {finding.what: finding for finding in examine()}["guest kernel"].detail


def test_a_program_that_is_no_kernel_is_recognised_by_its_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_KERNEL", "/bin/echo")
    states = {finding.what: finding.state for finding in examine()}
    assert states["guest kernel"] == "missing"


def test_a_program_that_pretends_to_be_a_kernel_does_not_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers --version as a kernel does; only starting it shows what it is."""
    program = tmp_path / "linux"
    program.write_text("#!/bin/sh\n# time-travel=\necho 6.12.0\n")
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
    monkeypatch.setattr(machine, "CHECKOUT", tmp_path)
    finding = next(finding for finding in examine() if finding.what == "packages")
    if find_executable("dpkg-query") is None:
        assert finding.state == "note"
    else:
        assert finding.state == "warning"
        assert finding.remedy.endswith("no-such-package-of-ours")


SYSTEMS = {
    "debian": "ID=debian\nPRETTY_NAME=Debian\n",
    "ubuntu": 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\n',
    "mint": 'ID=linuxmint\nID_LIKE="ubuntu debian"\n',
    "fedora": "ID=fedora\n",
    "rocky": 'ID="rocky"\nID_LIKE="rhel centos fedora"\n',
    "arch": "ID=arch\n",
    "tumbleweed": 'ID="opensuse-tumbleweed"\nID_LIKE="opensuse suse"\n',
    "nixos": "ID=nixos\n",
}
TYPED = {
    "debian": "apt-get install", "ubuntu": "apt-get install", "mint": "apt-get install", "fedora": "dnf install",
    "rocky": "dnf install", "arch": "pacman -S", "tumbleweed": "zypper install", "nixos": "install what Debian",
}  # fmt: skip


@pytest.mark.parametrize("system", SYSTEMS)
def test_remedies_are_this_distributions(system: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "os-release").write_text(SYSTEMS[system])
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    line = distribution.install(["libzstd-dev", "gcc"])
    assert TYPED[system] in line
    assert ("libzstd-devel" in line) == (system in ("fedora", "rocky", "tumbleweed"))
    assert distribution.python_remedy()
    assert ("linux-modules-extra-" in distribution.module_remedy("sch_netem")) == (system in ("ubuntu", "mint"))
    assert ("sctp-blacklist.conf" in distribution.module_remedy("sctp")) == (system in ("fedora", "rocky"))
    assert "modprobe sctp" in distribution.module_remedy("sctp")


def test_on_ubuntu_no_missing_package_is_suggested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a stand-in dpkg-query that knows every name but bison's and Debian's own."""
    (tmp_path / "os-release").write_text(SYSTEMS["ubuntu"])
    (tmp_path / "dpkg-query").write_text(
        "#!/bin/sh\nshift 3\nfor name; do case $name in bison|chromium|linux-source*|user-mode*) ;; "
        '*) echo "$name installed";; esac; done\n'
    )
    (tmp_path / "dpkg-query").chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path))
    monkeypatch.delenv("NETWARP_KERNEL", raising=False)
    monkeypatch.setattr(packaged, "BINARY", tmp_path / "linux.uml")
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
    assert distribution.missing([*packages("run"), *packages("test")]) == ["bison"]
    assert distribution.install(["chromium", "linux-source-6.12", "gcc"]).endswith(" chromium-browser gcc")
    assert guest.packaged_kernel().remedy == ""
    assert "kernel.org" in guest.kernel().remedy
    assert "apt" not in guest.wall_kernel().remedy


def test_every_package_has_its_name_in_ubuntu() -> None:
    """And for each it is said how the name is known."""
    lines = [
        line.split(maxsplit=2) for line in distribution.UBUNTU.read_text().splitlines() if not line.startswith("#")
    ]
    wanted = [
        name for kind in ("run", "test", "packaged-kernel", "android", "unpacked", "bare") for name in packages(kind)
    ]
    assert [line[0] for line in lines] == list(dict.fromkeys(wanted))
    assert all(line[2].startswith(("page", "name")) for line in lines)


def test_without_os_release_the_remedy_is_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "none")
    assert (distribution.family(), distribution.name()) == ("", "an unknown distribution")
    assert "gcc" in distribution.install(["gcc"])


def test_every_package_has_its_name_elsewhere() -> None:
    """All but Debian's package of the kernel's source: others take a tarball."""
    assert {name for name in packages("run") if name not in distribution.NAMES} <= {"linux-source-6.12"}


def test_packages_are_asked_of_rpm_and_pacman(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With stand-ins for both, which have everything but bison."""
    for name in ("rpm", "pacman"):
        (tmp_path / name).write_text('#!/bin/sh\n[ "$2" != bison ]\n')
        (tmp_path / name).chmod(0o755)
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    for system in ("fedora", "arch", "tumbleweed"):
        (tmp_path / "os-release").write_text(SYSTEMS[system])
        monkeypatch.setattr(distribution, "OS_RELEASE", tmp_path / "os-release")
        assert distribution.missing(["gcc", "bison", "linux-source-6.12", "libc6-dev"]) == ["bison"]
        finding = machine.installed()
        assert (finding.state, finding.remedy.split()[-1]) == ("warning", "bison")


def test_programs_of_packages_that_are_not_unpacked_are_named_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "UNPACKED_PACKAGES", tmp_path)
    absent = machine.unpacked()
    assert (absent.state, absent.remedy) == ("note", "make programs")
    assert "cells of QUIC" in absent.detail
    (tmp_path / ".unpacked").write_text(" ".join(machine.packages("unpacked")))
    assert machine.unpacked().state == "ok"


def test_every_note_of_the_host_has_a_remedy_or_needs_none() -> None:
    for finding in examine():
        assert finding.state in ("ok", "missing", "warning", "note")
        assert finding.remedy or finding.state in ("ok", "note"), finding


def bare(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The system's Python, no package of ours, nothing set up: a copy of the code alone."""
    return subprocess.run(
        ["/usr/bin/python3", "-IS", "-c", "import sys; sys.path.insert(0, 'orchestrator'); import runpy; "
         f"sys.argv = ['netwarp', *{list(arguments)}]; runpy.run_module('netwarp', run_name='__main__')"],
        cwd=cwd, env={"PATH": os.defpath, "HOME": str(cwd)}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


@pytest.fixture
def bootstrap(tmp_path: Path) -> Path:
    """A fresh clone: no .venv, no build/, no kernel."""
    for part in ("orchestrator", "kernel", "setup"):
        shutil.copytree(CHECKOUT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_the_doctor_on_a_bare_machine(bootstrap: Path) -> None:
    """Before `make setup`: every finding, each with its remedy, and the one thing to type; status 1."""
    done = bare("doctor", cwd=bootstrap)
    assert (done.returncode, done.stderr) == (1, "")
    said = {line.split("  ")[0]: line for line in done.stdout.splitlines()}
    assert "missing" in said["python"] and "missing" in said["guest kernel"] and "missing" in said["apps"]
    assert "-> make setup" in done.stdout
    assert done.stdout.splitlines()[-2:] == [
        "Can run here: nothing yet. Cannot: virtual, guest, netns.",
        "Next: make setup   (packages with root or sudo, .venv, guest kernel, programs; then: make choi2009)",
    ]
    report = json.loads(bare("doctor", "--json", cwd=bootstrap).stdout)
    assert not any(report[name] for name in ("virtual", "guest", "netns"))
    assert len(report["findings"]) > 12


def test_other_commands_on_a_bare_machine_print_the_setup_command(bootstrap: Path) -> None:
    for arguments in (["run", "choi2009"], [], ["doctor", "--nonsense"], ["--help"]):
        done = bare(*arguments, cwd=bootstrap)
        assert (done.returncode, done.stdout) == (77, "")
        assert "make setup" in done.stderr and "Traceback" not in done.stderr


def test_an_old_python_is_refused_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from netwarp.bootstrap import bootstrap

    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert bootstrap(["doctor"]) == 77
    err = capsys.readouterr().err
    assert "this is 3.9.2" in err and "python3" in err.lower()


def test_a_check_that_was_killed_is_asked_again(tmp_path: Path) -> None:
    marker = repr(str(tmp_path / "killed"))
    kill = "__import__('os').kill(__import__('os').getpid(), 9)"
    assert answers_in_child(f"__import__('os').path.exists({marker}) or (open({marker}, 'w').close(), {kill})")
    assert not answers_in_child(kill)
    assert not answers_in_child("False")
