"""The Makefile's targets and their prerequisites, and setup/bare.sh."""

import re
import tomllib
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.doctor.distribution import os_release
from support.setup_kit import make, path, run, stand_in

__all__ = ["path"]


def test_help_lists_every_experiment_and_every_promised_target() -> None:
    said = set(re.findall(r"^  make (\S+)", make("help"), re.MULTILINE))
    experiments = {spec.parent.name for spec in (CHECKOUT / "experiments").glob("*/spec.toml")}
    assert experiments
    assert experiments | {"setup", "test", "lint", "calibrate", "help", "clean"} <= said


GROUPS = ("start", "experiments", "tests", "kernels", "upkeep")


def test_help_has_its_groups_in_order_and_every_target_with_a_comment_once() -> None:
    said = make("help")
    assert tuple(re.findall(r"^(\w+):$", said, re.MULTILINE)) == GROUPS
    listed = re.findall(r"^  make (\S+) +\S", said, re.MULTILINE)
    assert len(listed) == len(set(listed))
    commented = re.findall(r"^([a-z-]+):.*? ##", (CHECKOUT / "Makefile").read_text(), re.MULTILINE)
    assert set(commented) <= set(listed)


def test_an_experiment_sets_up_first_and_takes_options() -> None:
    said = make("-n", "choi2009", "ARGS=--jobs 1").splitlines()
    at = {
        word: next(number for number, line in enumerate(said) if word in line)
        for word in ("setup/packages.sh run", "netwarp.cli.kernel build --if-missing", "netwarp run choi2009 --jobs 1")
    }
    assert list(at.values()) == sorted(at.values())


@pytest.mark.parametrize(
    ("goal", "kinds"),
    [
        ("setup", "run"),
        ("choi2009", "run"),
        ("lint", "run test"),
        ("chaos", "run test"),
        ("android", "run android"),
        ("test", "run test android"),
    ],
)
def test_a_target_installs_all_that_it_needs_at_once(goal: str, kinds: str) -> None:
    asked = [line.split("packages.sh ")[1] for line in make("-n", goal).splitlines() if "setup/packages.sh" in line]
    assert asked[0] == kinds
    assert {kind for line in asked for kind in line.split()} == set(kinds.split()), "what comes later only looks again"


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


# The bare system --------------------------------------------------------------------------------------------------


def bare_script(tmp_path: Path) -> Path:
    """setup/bare.sh without this machine's sbin, where a debootstrap may be."""
    text = (CHECKOUT / "setup/bare.sh").read_text()
    line = "PATH=$PATH:/usr/sbin:/sbin\n"
    assert line in text
    script = tmp_path / "setup/bare.sh"
    script.parent.mkdir()
    script.write_text(text.replace(line, ""))
    return script


@pytest.mark.parametrize(
    ("root", "there", "says"),
    [
        (False, (), "a bare root needs root"),
        (True, (), "there is no debootstrap on this machine: setup/packages.sh bare"),
        (True, ("debootstrap",), "allows no namespaces of mounts and processes"),
    ],
)
def test_a_bare_system_says_what_it_needs(
    path: Path, tmp_path: Path, root: bool, there: tuple[str, ...], says: str
) -> None:
    stand_in(path, "id", f"echo {0 if root else 1000}")
    stand_in(path, "unshare", "exit 1")
    for name in there:
        stand_in(path, name, "exit 9")
    done = run(path, "lint", script=bare_script(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 1 and says in done.stderr
    assert not (tmp_path / "build").exists()


def test_a_bare_system_repeats_the_three_commands_by_default() -> None:
    assert "setup/bare.sh choi2009 test lint" in make("-n", "bare")
    assert "setup/bare.sh lint \"test ARGS='-k setup'\"" in make("-n", "bare", "ARGS=lint \"test ARGS='-k setup'\"")


def test_a_failing_debootstrap_is_said_with_its_last_words(path: Path, tmp_path: Path) -> None:
    """And the archive is the one of this machine's apt, of the release that the machine is."""
    for name in ("mkdir", "rm", "tail", "sed"):
        (path / name).symlink_to(f"/bin/{name}")
    stand_in(path, "id", "echo 0")
    stand_in(path, "unshare", "exit 0")
    code = os_release()["VERSION_CODENAME"]
    stand_in(path, "apt-get", f"echo http://a.test/ other main; echo http://b.test/ {code} main")
    stand_in(path, "debootstrap", 'echo "asked: $*"; echo no such archive; exit 1')
    done = run(path, "lint", script=bare_script(tmp_path), HOME=str(tmp_path))
    assert done.returncode == 1
    assert "no such archive" in done.stderr
    root = tmp_path / "build/bare/root"
    assert f"{code} {root} http://b.test/\n" in (tmp_path / "build/bare/debootstrap.log").read_text()


def test_extras_are_installed_on_request() -> None:
    """Those of the tests' lock: it has all of them, by hash."""
    assert '"" = all' in make("-n", "-B", "setup") and '"all" = all' in make("-n", "-B", "setup", "EXTRAS=all")


def test_a_wheel_s_kernel_is_taken_unless_a_build_is_asked_for() -> None:
    assert "--wheels dist" in make("-n", "kernel") and "--wheels" not in make("-n", "kernel", "KERNEL=build")
