"""What a person types first: packages.sh and the Makefile, on machines made up from a PATH of stand-ins."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

from orchestrator.doctor import packages
from orchestrator.kernel.recipe import CHECKOUT

SCRIPT = CHECKOUT / "setup/packages.sh"


def stand_in(folder: Path, name: str, body: str) -> None:
    """A program of that name."""
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A PATH with the tools every machine has, an ordinary user, and no package installed."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "sh", "awk", "grep", "dirname", "cat", "env"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    stand_in(folder, "id", "echo 1000")
    stand_in(folder, "dpkg-query", "exit 1")
    stand_in(folder, "apt-get", f'echo "$@" >> {tmp_path}/apt')
    return folder


def run(path: Path, kind: str = "run") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", str(SCRIPT), kind], env={"PATH": str(path)}, capture_output=True, text=True, check=False
    )


def test_without_root_it_prints_the_one_line_and_fails(path: Path, tmp_path: Path) -> None:
    done = run(path)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "apt-get install" in line]
    assert len(lines) == 1
    assert lines[0].split()[-len(packages("run")) :] == packages("run")
    assert not (tmp_path / "apt").exists()


def test_nothing_is_said_or_done_when_all_is_installed(path: Path, tmp_path: Path) -> None:
    stand_in(path, "dpkg-query", "printf '%s installed\\n' " + " ".join(packages("run")))
    done = run(path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert not (tmp_path / "apt").exists()


@pytest.mark.parametrize("root", [True, False])
def test_root_or_sudo_installs_only_what_is_missing(path: Path, tmp_path: Path, root: bool) -> None:
    installed = [name for name in packages("run") if name not in ("flex", "bison")]
    # A package that was removed but left its configuration is known to dpkg, and not installed.
    stand_in(path, "dpkg-query", "printf '%s installed\\n' " + " ".join(installed) + "; echo flex config-files; exit 1")
    if root:
        stand_in(path, "id", "echo 0")
    else:
        stand_in(path, "sudo", f'echo "sudo $1" >> {tmp_path}/apt; shift; exec "$@"')
        (path / "true").symlink_to("/bin/true")
    done = run(path)
    assert done.returncode == 0, done.stderr
    said = (tmp_path / "apt").read_text().splitlines()
    commands = [line for line in said if not line.startswith("sudo")]
    assert len(commands) == 2
    assert commands[0].endswith(" update")
    assert commands[1].endswith("install -y --no-install-recommends flex bison")
    assert any(line == "sudo -n" for line in said) != root


def test_a_failing_apt_fails_the_setup(path: Path) -> None:
    stand_in(path, "id", "echo 0")
    stand_in(path, "apt-get", "exit 100")
    assert run(path).returncode != 0


def test_a_machine_without_dpkg_is_told_what_is_needed(path: Path) -> None:
    (path / "dpkg-query").unlink()
    done = run(path)
    assert done.returncode == 0
    assert "flex" in done.stderr


def make(*arguments: str) -> str:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(
        ["make", "-C", str(CHECKOUT), *arguments], env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_lists_every_experiment_and_every_promised_target() -> None:
    said = set(re.findall(r"^  make (\S+)", make("help"), re.MULTILINE))
    experiments = {spec.parent.name for spec in (CHECKOUT / "experiments").glob("*/spec.toml")}
    assert experiments
    assert experiments | {"setup", "test", "lint", "calibrate", "help", "clean"} <= said


def test_an_experiment_sets_up_first_and_takes_options() -> None:
    said = make("-n", "choi2009", "ARGS=--jobs 1").splitlines()
    at = {
        word: next(number for number, line in enumerate(said) if word in line)
        for word in ("setup/packages.sh run", "orchestrator.kernel build --if-missing", "netwarp run choi2009 --jobs 1")
    }
    assert list(at.values()) == sorted(at.values())


def test_the_locks_pin_every_package_by_hash_and_name_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (CHECKOUT / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        entries = re.split(r"\n(?=\S)", text.strip())
        packages_ = [entry for entry in entries if not entry.startswith("#")]
        assert packages_
        for entry in packages_:
            assert re.match(r"[a-z0-9.-]+==[^ ]+", entry), entry
            assert "--hash=sha256:" in entry, entry


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    locked = {
        name: set(re.findall(r"^([a-z0-9.-]+)==", (CHECKOUT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    }

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=~! ]", requirement)[0].replace("_", "-") for requirement in requirements}

    assert names(project["project"]["dependencies"]) <= locked["requirements.lock"]
    assert names(project["build-system"]["requires"]) <= locked["requirements.lock"]
    assert names(project["dependency-groups"]["dev"]) <= locked["requirements-dev.lock"]
