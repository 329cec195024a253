"""setup/packages.sh on machines made up from a PATH of stand-ins: packages, user, and one installation at a time."""

import fcntl
import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.core.executables import find_executable
from netwarp.doctor import packages
from support.setup_kit import SCRIPT, path, run, stand_in

__all__ = ["path"]


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


def test_all_kinds_are_one_installation(path: Path, tmp_path: Path) -> None:
    stand_in(path, "id", "echo 0")
    assert run(path, "run", "test", "android").returncode == 0
    update, install = (tmp_path / "apt").read_text().splitlines()
    assert update.endswith(" update")
    wanted = [name for kind in ("run", "test", "android") for name in packages(kind)]
    assert install.split()[-len(wanted) :] == wanted


def test_ubuntu_gets_its_own_names(path: Path, tmp_path: Path) -> None:
    stand_in(path, "id", "echo 0")
    (tmp_path / "os-release").write_text("ID=ubuntu\nID_LIKE=debian\n")
    assert run(path, "run", "test", "packaged-kernel", NETWARP_OS_RELEASE=str(tmp_path / "os-release")).returncode == 0
    names = (tmp_path / "apt").read_text().splitlines()[1].split()
    assert "chromium-browser" in names and "libzstd-dev" in names
    assert not {"chromium", "linux-source-6.12", "user-mode-linux", "-"} & set(names)
    done = run(path, "packaged-kernel", NETWARP_OS_RELEASE=str(tmp_path / "os-release"))
    assert done.returncode == 1 and "no package of kind packaged-kernel" in done.stderr


def test_an_unknown_kind_is_an_error(path: Path, tmp_path: Path) -> None:
    stand_in(path, "id", "echo 0")
    done = run(path, "run", "tests")
    assert done.returncode == 2 and "kind tests" in done.stderr
    assert not (tmp_path / "apt").exists()


# What apt-get says and does where another one holds its lock on the lists (the real one: test_the_real_apt_says_so).
LOCKED = "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt-get)"
ONE_APT_AT_A_TIME = """\
if ! mkdir {place}/locked 2>/dev/null; then echo "{said}" >&2; exit 100; fi
echo "$@" >> {place}/apt
sleep 0.4
case "$*" in *install*) echo "$@" | tr ' ' '\\n' >> {place}/there;; esac
rmdir {place}/locked
"""


def test_two_installations_at_once_both_succeed(path: Path, tmp_path: Path) -> None:
    """As `make -j2` starts them. The second waits, and does not install again what the first has."""
    for name in ("mkdir", "rmdir", "tr", "sed"):
        (path / name).symlink_to(f"/bin/{name}")
    (tmp_path / "there").touch()
    stand_in(path, "id", "echo 0")
    stand_in(path, "apt-get", ONE_APT_AT_A_TIME.format(place=tmp_path, said=LOCKED))
    stand_in(path, "dpkg-query", f"sed 's/$/ installed/' {tmp_path}/there")
    script = shutil.copytree(CHECKOUT / "setup", tmp_path / "setup") / "packages.sh"
    with ThreadPoolExecutor() as pool:
        both = [pool.submit(run, path, *kinds, script=script) for kinds in (["run", "test"], ["test", "android"])]
    for done in both:
        assert done.result().returncode == 0, done.result().stderr
    installed = [line.split() for line in (tmp_path / "apt").read_text().splitlines() if "install" in line]
    assert len(installed) == 2
    assert not set(packages("test")) & set(installed[0]) & set(installed[1])


def test_another_programs_apt_is_waited_for(path: Path, tmp_path: Path) -> None:
    """DPkg::Lock::Timeout is not enough: the lock on the package lists has none."""
    stand_in(path, "id", "echo 0")
    counting = f'echo "$@" >> {tmp_path}/apt; echo x >> {tmp_path}/tried'
    busy = f'[ "$(grep -c x {tmp_path}/tried)" -gt 2 ] || {{ echo "{LOCKED}" >&2; exit 100; }}'
    stand_in(path, "apt-get", f"{counting}; {busy}")
    done = run(path)
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("Another program uses apt: waiting")]
    assert "process 7 (apt-get)" in line
    commands = [line.split()[-1] for line in (tmp_path / "apt").read_text().splitlines()]
    assert commands == ["update", "update", "update", packages("run")[-1]]
    (tmp_path / "tried").unlink()
    done = run(path, NETWARP_APT_WAIT_S="0")
    assert done.returncode == 100 and LOCKED in done.stderr


def test_the_real_apt_says_so(tmp_path: Path) -> None:
    """The words by which packages.sh knows that apt is locked are this machine's apt's."""
    if find_executable("apt-get") is None:
        pytest.skip("no apt-get")
    (tmp_path / "lists/partial").mkdir(parents=True)
    with open(tmp_path / "lists/lock", "w") as held:
        fcntl.lockf(held, fcntl.LOCK_EX)
        done = subprocess.run(
            ["apt-get", "-q", "-o", f"Dir::State::lists={tmp_path}/lists", "-o", "Dir::Etc::sourcelist=/dev/null",
             "-o", "Dir::Etc::sourceparts=/dev/null", "update"],
            env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 100
    assert done.stderr.startswith("E: Could not get lock ")
    assert '"E: Could not get lock"' in SCRIPT.read_text()


def test_a_machine_without_dpkg_gets_a_list_of_what_is_needed(path: Path) -> None:
    (path / "dpkg-query").unlink()
    done = run(path)
    assert done.returncode == 0
    assert "flex" in done.stderr
