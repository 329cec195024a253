"""The boundaries of docs/security.md: a guest's user, the files written, and that no command goes through a shell."""

from __future__ import annotations

import ast
import contextlib
import ctypes
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.sandbox.privileges import User, foreign_owner, hand_over, take_back, unprivileged
from support.chain_kit import (
    STANDS,
    TRIES,
    Checkout,
    all_completed,
    captures,
    copy_checkout,
    ended,
    guests,
    raw_files,
    same,
    tables,
    two_paths,
    written,
)
from support.checkout import ROOT

NOBODY = 65534
CLONE_NEWNS = 0x00020000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 1 << 18
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
STARTING = ("subprocess.run", "subprocess.Popen", "subprocess.check_call", "subprocess.check_output")
FORBIDDEN = ("os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "eval", "exec")
needs_root = pytest.mark.root(reason="only root has something to drop, or may mount")


@needs_root
def test_roots_guests_are_not_root(checkout: Checkout, open_place: Path, tmp_path: Path) -> None:
    """Neither their kernels nor the processes in them, without any capability; the results are root's, and equal."""
    spec = written(open_place / "spec.toml", two_paths(duration="60 s"))
    process = checkout.start("run", spec, "--no-report", "--jobs", 1, "--out", open_place / "x", cwd=open_place)
    seen: dict[str, set[str]] = {"Uid": set(), "Gid": set(), "Groups": set(), "CapEff": set(), "CapPrm": set()}
    while process.poll() is None:
        for pid in guests(process.pid):
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                for one in (pid, *map(int, children)):
                    status = Path(f"/proc/{one}/status").read_text()
                    found = dict(line.split(":", 1) for line in status.splitlines())
                    if found["State"].split()[0] != "Z":
                        for name, values in seen.items():
                            values |= set(found[name].split())
            except (OSError, KeyError):
                continue  # it has just gone
    ended(process).ok()
    assert seen["Uid"] == seen["Gid"] == {str(NOBODY)}
    assert seen["Groups"] == set()
    assert {int(text, 16) for text in seen["CapEff"] | seen["CapPrm"]} == {0}
    assert {path.stat().st_uid for path in (open_place / "x").rglob("*")} == {0}
    # the same where nobody cannot get at the run directory, so that root's guests stay root's
    checkout.run("run", spec, "--no-report", "--out", tmp_path / "x", cwd=tmp_path).ok()
    same(captures(tmp_path / "x"), captures(open_place / "x"))
    same(raw_files(tmp_path / "x"), raw_files(open_place / "x"))
    same(tables(tmp_path / "x"), tables(open_place / "x"))


@needs_root
def test_the_user_that_root_becomes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    monkeypatch.setenv("SUDO_GID", "1235")
    assert unprivileged() == User(1234, 1235)
    for text in ("0", "-1", "x", ""):
        monkeypatch.setenv("SUDO_UID", text)
        found = unprivileged()
        assert found is not None and found.uid != 0 and found.gid != 0


PROGRAM = """\
format = 1
name = "programs"
duration = "1 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
[flow.f]
from = "a"
to = "b"
protocol = "udp"
paths = ["p1"]
program = {{ sender = ["{program}", "-c", "id -u"] }}
"""


@needs_root
@pytest.mark.parametrize(("mode", "uid"), [(0o755, NOBODY), (0o750, 0)])
def test_a_program_for_root_alone_is_run_by_root(mode: int, uid: int, checkout: Checkout, open_place: Path) -> None:
    """In a guest everybody is root; outside, who the guest is shows in the owner of what it writes."""
    (open_place / "bin").mkdir(mode=mode)
    shutil.copy("/bin/sh", open_place / "bin" / "sh")
    assert User(NOBODY, NOBODY).may_run(open_place / "bin" / "sh") is (uid != 0)
    spec = written(open_place / "spec.toml", PROGRAM.format(program=open_place / "bin" / "sh"))
    seen: set[int] = set()
    for number in range(TRIES):
        process = checkout.start("run", spec, "--no-report", "--out", open_place / f"x{number}", cwd=open_place)
        while process.poll() is None:
            for pid in guests(process.pid):
                with contextlib.suppress(OSError):
                    seen.add(os.stat(f"/proc/{pid}").st_uid)
        ended(process).ok()
        all_completed(open_place / f"x{number}")
        if seen:
            break  # else this machine did not look while there was a guest
    assert uid in seen and (uid == NOBODY or seen == {0})


@needs_root
def test_links_a_sandbox_leaves_are_removed_before_root_reads(open_place: Path, tmp_path: Path) -> None:
    """Links, pipes and second names are removed before root looks at a file; set-user-ID bits are taken off."""
    outside = written(tmp_path / "outside", "root's")
    cell = open_place / "cell"
    (cell / "capture").mkdir(parents=True)
    written(cell / "steps.txt", "")
    owner = cell.stat()
    assert hand_over(cell, User(NOBODY, NOBODY)) == User(NOBODY, NOBODY)
    (cell / "capture" / "a-p1.pcap").symlink_to(outside)
    (cell / "console.txt").symlink_to("/dev/zero")
    os.mkfifo(cell / "init.ndjson")
    (cell / "loop").symlink_to(".")
    os.link(cell / "steps.txt", cell / "again.txt")
    written(cell / "tool", "").chmod(0o6755)
    take_back(cell, owner)
    assert sorted(path.name for path in cell.rglob("*")) == ["capture", "steps.txt", "tool"] or sorted(
        path.name for path in cell.rglob("*")
    ) == ["again.txt", "capture", "tool"]
    assert (cell / "tool").stat().st_mode & 0o7777 == 0o755
    assert {path.stat().st_uid for path in cell.rglob("*")} == {0}
    assert outside.read_text() == "root's"


@needs_root
def test_a_directory_of_another_owner_stays_that_owners(open_place: Path) -> None:
    """As hostfs makes it in a guest of an ordinary user, where nobody can be given a file."""
    cell = open_place / "cell"
    cell.mkdir()
    written(cell / "steps.txt", "")
    for path in (cell, cell / "steps.txt"):
        os.chown(path, 1234, 1235)
    owner = cell.stat()
    assert foreign_owner(cell) == User(1234, 1235)
    assert hand_over(cell, User(NOBODY, NOBODY)) == User(1234, 1235)
    assert hand_over(cell, None) is None
    take_back(cell, owner)
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (cell, *cell.rglob("*"))} == {(1234, 1235)}


@needs_root
@pytest.mark.parametrize("program", ["guest-exec", "netns-exec"])
@pytest.mark.parametrize(
    "user", ["0:0", "0:65534", "65534:0", "65534", "nobody:nobody", "-1:-1", "1:1x", "", "4294967295:1"]
)
def test_names_that_are_no_user_are_refused(program: str, user: str, tmp_path: Path) -> None:
    """Least of all root."""
    written(tmp_path / "init", "").chmod(0o755)
    more = ["--kernel", "/bin/true", "--seed", "1"] if program == "guest-exec" else []
    command = [str(ROOT / "build" / "bin" / program), "--dir", str(tmp_path), *more, "--user", user]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 2, done
    assert "--user" in done.stderr


def read_only_but(*places: Path) -> None:
    """In a child before exec: mounts of its own, all of them read-only but these."""
    libc = ctypes.CDLL(None, use_errno=True)

    def done(status: int) -> None:
        if status:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    def attributes(path: bytes, flags: int, setting: int, clearing: int) -> None:
        wanted = (ctypes.c_uint64 * 4)(setting, clearing, 0, 0)
        done(libc.syscall(SYS_MOUNT_SETATTR, AT_FDCWD, path, flags, wanted, ctypes.sizeof(wanted)))

    done(libc.unshare(CLONE_NEWNS))
    done(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))
    for place in places:
        done(libc.mount(os.fsencode(place), os.fsencode(place), None, MS_BIND | MS_REC, None))
    attributes(b"/", AT_RECURSIVE, MOUNT_ATTR_RDONLY, 0)
    for place in places:
        attributes(os.fsencode(place), 0, 0, MOUNT_ATTR_RDONLY)


@needs_root
def test_nothing_is_written_outside_the_run_directory(checkout: Checkout, tmp_path: Path) -> None:
    """All the machine read-only but the run directory, TMPDIR and /dev/shm: the run is the same."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    checkout.run("run", spec, "--out", tmp_path / "reference", cwd=tmp_path).ok()
    run, temporary = tmp_path / "x", tmp_path / "tmp"
    for place in (run, temporary):
        place.mkdir()
    done = subprocess.run(
        checkout.command("run", spec, "--out", run), cwd=tmp_path,
        env=checkout.environment(tmp_path, TMPDIR=str(temporary)), capture_output=True, text=True, check=False,
        preexec_fn=lambda: read_only_but(run, temporary, Path("/dev/shm")),
    )  # fmt: skip
    assert done.returncode == 0, done
    all_completed(run)
    assert (run / "report" / "index.html").is_file()
    same(tables(run), tables(tmp_path / "reference"))
    same(captures(run), captures(tmp_path / "reference"))
    assert list(temporary.iterdir()) == []
    assert sorted(os.listdir(tmp_path)) == ["reference", "spec.toml", "tmp", "x"]


@needs_root
def test_results_that_cannot_be_written(checkout: Checkout, tmp_path: Path) -> None:
    """A read-only file system: said in one line, status 1, and no guest was started."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    for arguments in (["--out", str(tmp_path / "x")], []):
        environment = checkout.environment(tmp_path, TMPDIR="/dev/shm")
        done = subprocess.run(
            checkout.command("run", spec, *arguments), cwd=tmp_path, env=environment,
            capture_output=True, text=True, check=False,
            preexec_fn=lambda: read_only_but(Path("/dev/shm")),
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (1, ""), done
        assert "Read-only file system" in done.stderr and "Traceback" not in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert os.listdir(tmp_path) == ["spec.toml"]


LOOK_AROUND = """\
touch {other}/x 2>/dev/null || echo closed
echo own: $(tail -n +3 /proc/net/dev | cut -d: -f1)
echo first: $(ls /sys/class/net)
touch /run/cell/here
mount -o remount,rw / && touch {other}/x && echo opened
"""


def test_a_guest_sees_files_and_links_as_said_and_is_no_jail(checkout: Checkout, tmp_path: Path) -> None:
    """All but its cell's directory is read-only, until root in it mounts that anew; no network but the cell's links."""
    other = tmp_path / "other"
    other.mkdir()
    spec = written(tmp_path / "spec.toml", STANDS)
    script = LOOK_AROUND.format(other=other)
    done = checkout.run(
        "shell", spec, "--backend", "guest", "--node", "a", "--out", tmp_path / "x", "--exec", "sh", "-c", script,
        cwd=tmp_path,
    ).ok()  # fmt: skip
    closed, own, first, opened = done.out.splitlines()
    assert (closed, opened) == ("closed", "opened")
    assert set(own.split()[1:]) == {"lo", "p1"}
    assert set(first.split()[1:]) <= {"lo", "dummy0", "ifb0", "ifb1"}, "what Linux makes by itself, all down"
    assert (tmp_path / "x" / "here").exists()
    assert (other / "x").exists(), "docs/security.md: a guest is no jail for a program"


@needs_root
def test_a_root_without_the_right_to_become_another_stays_root(
    checkout: Checkout, open_place: Path, tmp_path: Path
) -> None:
    """As in containers that take capabilities away: the cell runs all the same."""
    spec = written(open_place / "spec.toml", two_paths(duration="1 s"))
    less = ["setpriv", "--bounding-set", "-setuid,-setgid", "--inh-caps", "-setuid,-setgid"]
    done = subprocess.run(
        [*less, *checkout.command("run", spec, "--no-report", "--out", open_place / "x")], cwd=open_place,
        env=checkout.environment(tmp_path), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done
    all_completed(open_place / "x")


def sources() -> Iterator[tuple[Path, ast.AST]]:
    for folder in ("orchestrator", "benchmarks"):
        for path in (ROOT / folder).rglob("*.py"):
            yield path, ast.parse(path.read_text())


def test_nothing_runs_through_a_shell() -> None:
    """No call of ours asks for one; arguments are lists; the C programs have neither system() nor popen()."""
    wrong = []
    for path, tree in sources():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            called = ast.unparse(node.func)
            shell = any(word.arg == "shell" for word in node.keywords)
            text = called in STARTING and node.args and isinstance(node.args[0], (ast.Constant, ast.JoinedStr))
            if shell or text or called in FORBIDDEN:
                wrong.append(f"{path.name}:{node.lineno}: {called}")
    assert wrong == []
    for path in (ROOT / "apps").rglob("*.c"):
        if path == ROOT / "apps" / "drill" / "guest.c":
            continue  # packetdrill's scripts have lines of a shell: pid 1 of a guest of their own runs them
        words = path.read_text()
        assert not any(call in words for call in (" system(", "popen(", "execlp(", "wordexp(", '"/bin/sh"')), path
    assert len(list(sources())) > 100


def test_a_checkout_is_only_read(checkout: Checkout, tmp_path: Path) -> None:
    """A run elsewhere leaves the checkout it runs from as it was (its calibrations are there already)."""
    copy = copy_checkout(tmp_path / "checkout", checkout.kernel, checkout.root)

    def state() -> dict[str, tuple[int, int]]:
        return {str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(copy.root.rglob("*"))}

    before = state()
    (tmp_path / "work").mkdir()
    spec = written(tmp_path / "work" / "spec.toml", two_paths(duration="1 s"))
    copy.run("run", spec, "--no-report", cwd=tmp_path / "work", PYTHONDONTWRITEBYTECODE="1").ok()
    assert state() == before
