"""The function tests of lksctp-tools (the distribution's source package) as a collection beside the kernel's own."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from ..core.errors import KernelError
from .packages import run_command

COLLECTION = "lksctp"
EVERY = "every.sh"
"""A test that runs all of them in one guest."""
_PACKAGE = "lksctp-tools"
_WHAT = "lksctp-tools' tests"
_KEYS = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_V6 = ("basic", "connect", "fragments", "inaddr_any", "peeloff", "recvmsg", "sctp_sendrecvmsg", "sockopt", "tcp_style",
       "timetolive")  # fmt: skip
"""Tests that are built a second time, for IPv6, as the package's Makefile does."""
_SCRIPT = """\
#!/bin/bash
# A test prints PASS, FAIL or BROK for each of its cases.
number=0 failed=0
for test in test_*; do
	number=$((number + 1))
	timeout 300 ./"$test" >/tmp/out 2>&1 </dev/null
	status=$?
	passed=$(grep -cw PASS /tmp/out)
	if [ $status = 0 ] && ! grep -qwE 'FAIL|BROK' /tmp/out; then
		echo "ok $number - $test: $passed cases"
	else
		sed 's/^/# /' /tmp/out
		echo "not ok $number - $test: status $status, $passed cases passed"
		failed=1
	fi
done
exit $failed
"""


def add_lksctp(tests: Path) -> None:
    """Fetch, build and put the tests into the folder `lksctp` of unpacked tests, unless they are there.

    Raises KernelError: no such source package here, no libsctp-dev, no compiler.
    """
    target = tests / COLLECTION
    if target.is_dir():
        return
    work = tests / f".{COLLECTION}.{os.getpid()}"
    shutil.rmtree(work, ignore_errors=True)
    made = work / "made"
    made.mkdir(parents=True)
    try:
        source = _fetched(work) / "src"
        flags = ["-O1", "-w", "-I", str(source / "testlib")]
        library = str(source / "testlib" / "sctputil.c")
        for file in sorted((source / "func_tests").glob("test_*.c")):
            names = {file.stem: [], **({f"{file.stem}_v6": ["-DTEST_V6=1"]} if file.stem[5:] in _V6 else {})}
            for name, more in names.items():
                command = ["gcc", *flags, *more, str(file), library, "-o", str(made / name), "-lsctp", "-lpthread"]
                run_command(command, work, _WHAT)
        (made / EVERY).write_text(_SCRIPT)
        (made / EVERY).chmod(0o755)
        made.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _fetched(work: Path) -> Path:
    """The unpacked source package, by apt with lists of its own: the machine's need not name sources."""
    for folder in ("lists/partial", "cache/archives/partial"):
        (work / folder).mkdir(parents=True)
    signed = f"[signed-by={_KEYS}] " if _KEYS.exists() else ""
    (work / "sources.list").write_text(f"deb-src {signed}{_archive()} main\n")
    apt = [
        "apt-get", "-q", "-o", f"Dir::Etc::sourcelist={work}/sources.list", "-o", "Dir::Etc::sourceparts=-",
        "-o", f"Dir::State::lists={work}/lists", "-o", f"Dir::Cache={work}/cache", "-o", "APT::Sandbox::User=",
    ]  # fmt: skip
    run_command([*apt, "update"], work, _WHAT)
    run_command([*apt, "source", "--download-only", _PACKAGE], work, _WHAT)
    (tarball,) = work.glob(f"{_PACKAGE}_*.orig.tar.*")
    (work / "source").mkdir()
    run_command(["tar", "-x", "--strip-components=1", "-C", str(work / "source"), "-f", str(tarball)], work, _WHAT)
    return work / "source"


def _archive() -> str:
    """The place and release of the machine's first source of packages with a component main."""
    command = ["apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)", "Identifier: Packages"]
    try:
        lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError) as error:
        raise KernelError(f"lksctp-tools' tests come from the distribution's source package: {error}") from error
    commands = [line.rpartition(" ")[0] for line in lines if line.endswith(" main")]
    if not commands:
        raise KernelError("apt-get knows no source of packages with a component main (apt-get update)")
    return commands[0]
