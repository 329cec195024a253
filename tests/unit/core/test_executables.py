"""Programs are found where an ordinary user of a bare Debian has them, and every one comes with a listed package."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from netwarp.core.executables import SBIN, find_executable, with_sbin
from netwarp.doctor import packages
from support.started import calls, looked_up, started

ORDINARY = "/usr/local/bin:/usr/bin:/bin:/usr/local/games:/usr/games"
"""The path that login(1) gives an ordinary user of Debian (ENV_PATH of /etc/login.defs)."""
OTHERS = frozenset({"rpm", "pacman", "ansible-inventory"})
"""Of other distributions, where the doctor asks them; of the Python packages for tests."""
ALONE = "orchestrator/netwarp/sandbox/hosts/agent/"
"""Run by themselves on another machine, without the rest of netwarp, and add sbin to their own PATH first."""


def test_a_program_of_sbin_is_found_without_sbin_in_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", ORDINARY)
    assert shutil.which("ldconfig") is None, "libc-bin, which every Debian has, holds it: it is in sbin"
    found = find_executable("ldconfig")
    assert found is not None and Path(found).parent in (Path("/usr/sbin"), Path("/sbin"))
    assert find_executable("no-such-program-of-ours") is None


def test_path_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "ldconfig"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_executable("ldconfig") == str(own)
    assert find_executable("ldconfig", path=ORDINARY) is None


def test_with_sbin_adds_only_what_is_not_there() -> None:
    assert with_sbin("/usr/bin:/bin") == "/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin"
    assert with_sbin("/usr/sbin:/usr/bin") == "/usr/sbin:/usr/bin:/usr/local/sbin:/sbin"
    assert with_sbin("") == "/usr/local/sbin:/usr/sbin:/sbin"


@pytest.mark.slow
def test_nothing_looks_in_path_alone() -> None:
    """shutil.which is asked by one function."""
    by = {str(path.relative_to(CHECKOUT)) for path, _, function in calls(CHECKOUT) if function.endswith("which")}
    elsewhere = {path for path in by if not path.startswith(ALONE)}
    assert elsewhere <= {"orchestrator/netwarp/core/executables.py", "tests/unit/core/test_executables.py"}


def test_what_runs_alone_adds_sbin_itself() -> None:
    assert all(f":{place}" in (CHECKOUT / ALONE / "serve.py").read_text() for place in SBIN)


def test_no_program_of_sbin_is_started_by_its_bare_name() -> None:
    """It would be looked up in PATH."""
    hidden = {
        name: elsewhere
        for name, places in started(CHECKOUT).items()
        if (elsewhere := [place for place in places if not place.startswith(ALONE)])
        and find_executable(name, path=ORDINARY) is None
        and find_executable(name) is not None
    }
    assert not hidden


def test_every_program_comes_with_a_listed_package() -> None:
    """Of each that tests, benchmarks or netwarp start or look for: a package of packages.txt, or one those need."""
    if find_executable("dpkg-query") is None:
        pytest.skip("no dpkg to ask")
    there = with_what_they_need([name for kind in ("run", "test", "android") for name in packages(kind)])
    asked = {**started(CHECKOUT), **looked_up(CHECKOUT)}
    missing = {}
    for name, places in asked.items():
        if name in OTHERS or name.startswith("no-such-"):
            continue
        path = find_executable(name)
        owners = owners_of(path) if path else set()
        if not owners & there:
            missing[name] = (path, owners, places)
    assert not missing


def owners_of(path: str) -> set[str]:
    """The packages that hold a file, by any of its names."""
    names = {path, str(Path(path).resolve())}
    names |= {name.removeprefix("/usr") for name in names}
    done = subprocess.run(["dpkg-query", "-S", *names], capture_output=True, text=True, check=False)
    return {
        owner.split(":")[0].strip()
        for line in done.stdout.splitlines()
        for owner in line.rpartition(": ")[0].split(",")
    }


def with_what_they_need(names: list[str]) -> set[str]:
    """These installed packages, the essential ones, and what all of them depend on."""
    form = "${Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\n"
    done = subprocess.run(["dpkg-query", "-W", "-f", form], capture_output=True, text=True, check=True)
    needs: dict[str, set[str]] = {}
    provided: dict[str, set[str]] = {}
    todo = list(names)
    for line in done.stdout.splitlines():
        package, essential, priority, provides, depends = line.split("\t")
        needs[package] = set(re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]+)", depends))
        for name in re.findall(r"(?:^|,)\s*([a-z0-9][a-z0-9.+-]+)", provides):
            provided.setdefault(name, set()).add(package)
        if essential == "yes" or priority == "required":
            todo.append(package)
    found: set[str] = set()
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += [*needs.get(name, ()), *provided.get(name, ())]
    return found & set(needs)
