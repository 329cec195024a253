"""Fuzzes the doors: `make fuzz-doors` or `python tests/fuzz/doors.py --seconds 120`.

Every way in for a stranger's file (bundles, plans, run directories, packs, captures, inventories, side files of specs)
is fed with mutations of real ones and with ones built to do harm (tests/fuzz/hostile_files.py). Each execution is a
fork of this process with every module imported; it may take LIMIT_S and LIMIT_BYTES. Landlock lets it write into its
own directory alone, where a folder beside its input is watched: nothing of that may be written, and its secret may not
be shown. Cells do not run: no kernel is named.

Number N of a seed is always the same execution: `--case N` repeats it and keeps its files.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import ctypes
import importlib
import json
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "fuzz")]

from hostile_files import Hostile  # noqa: E402
from support.captures import DATA  # noqa: E402

MODULES = (
    *("cli.archive", "cli.analyze_text", "cli.compare", "cli.commands", "cli.claims", "cli.explain", "cli.run"),
    *("present.pages.build", "present.captures.page_sections", "present.captures.csv_files", "captures.explanation"),
    *("present.captures.explanation_words", "sandbox.hosts"),
)
PLACE = ROOT / "build" / "fuzz" / "doors"
LIMIT_S, LIMIT_BYTES = 60, 1 << 30
SECRET = "7f3a-nobody-may-see-this"
LANDLOCK_CREATE, LANDLOCK_ADD, LANDLOCK_RESTRICT = 444, 445, 446
WRITES = 0b111_1111_1111_0010
"""Of Landlock's rights on files (linux/landlock.h): all that change something."""
TRUNCATE = 1 << 14
PR_SET_NO_NEW_PRIVS = 38
SPEC = """\
format = 1
name = "real"
title = "Two hosts and an outage"
duration = "4 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
[factor.protocol]
levels = ["tcp", "sctp"]
sets = "flow.f.protocol"
[table.goodput]
metric = "goodput_bit_s"
rows = ["protocol"]
"""
SIDE_SPEC = """\
format = 1
name = "side"
duration = "4 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
queue = "50 packets"
one_way_delay = "20 ms"
trace = { file = "link.trace" }
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
messages = { file = "messages.csv" }
"""
HAR_SPEC = """\
format = 1
name = "pages"
duration = "4 s"
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
page = { har = "today.har" }
"""


MACHINES: dict[str, dict[str, object]] = {
    "a": {"ansible_host": "192.0.2.11", "ansible_user": "you", "ansible_port": 22, "ansible_become": True,
          "netwarp_cables": {"x1": "r:x1", "x2": "r:x2"}, "netwarp_nodes": ["a"],
          "ansible_ssh_common_args": "-o ConnectTimeout=5 -J jump -p 22"},
    "b": {"ansible_host": "192.0.2.12", "netwarp_cables": {"x1": "r:x3", "x2": "r:x4"},
          "netwarp_directory": "/var/tmp"},
    "r": {"ansible_host": "192.0.2.13", "netwarp_role": "bottleneck", "ansible_python_interpreter": "/usr/bin/python3"},
}  # fmt: skip
GROUPS: dict[str, object] = {"all": {"children": ["netwarp"]}, "netwarp": {"hosts": ["a", "b", "r"]}}


@dataclass
class Case:
    """One execution: its directory, and the generator that all of it is drawn from."""

    place: Path
    rng: random.Random
    hostile: Hostile
    real: Path

    def copied(self, name: str) -> Path:
        """A real file or directory, in this case's input."""
        source, target = self.real / name, self.place / "in" / name
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        return target


Words = list[str | Path]


def bundle(case: Case) -> Words:
    path = case.place / "in" / "run.tar.xz"
    path.write_bytes(case.hostile.bundle(case.real / "bundled"))
    good = case.real / "run.tar.xz"
    return case.rng.choice(
        (["archive", "verify", path, good], ["archive", "verify", good, path], ["archive", "verify", path],
         ["compare", "claims", path])
    )  # fmt: skip


def run(case: Case) -> Words:
    path = case.copied("run")
    case.hostile.tree(path)
    return _of_a_run(case, path)


def pack(case: Case) -> Words:
    path = case.copied("packed")
    archive = case.rng.choice(sorted((path / "cells").glob("*.zip")))
    archive.write_bytes(case.hostile.zip(archive.read_bytes()))
    return _of_a_run(case, path)


def plan(case: Case) -> Words:
    path = case.copied("run")
    name = case.rng.choice(("plan.json", "plan.json", "outputs.json", "manifest.json"))
    (path / name).write_bytes(case.hostile.file(name, (path / name).read_bytes()))
    return _of_a_run(case, path)


def _of_a_run(case: Case, path: Path) -> Words:
    good, out = case.real / "run", case.place / "out"
    cell = sorted(each.name for each in (good / "cells").iterdir() if not each.name.startswith("."))[0]
    commands: list[Words] = [
        ["analyze", path, "--jobs", "1"],
        ["report", path],
        ["compare", path, good],
        ["compare", good, path, "--exact"],
        ["compare", path, good, "--packets"],
        ["archive", "verify", path, good],
        ["archive", "verify", path],
        ["archive", "bundle", path, "--out", out / "x.tar.xz"],
        ["archive", "merge", path, path, "--out", out / "merged"],
        ["archive", "unpack", path],
        ["archive", "replay", path, cell],
        ["clean", path],
        ["clean", "--captures", path],
        ["export", path / "cells" / cell, "--out", out / "plain"],
        ["export", "--har", path, cell, "--out", out],
        ["explain", path / "cells" / cell],
    ]
    return case.rng.choice(commands)


def capture(case: Case) -> Words:
    source = case.rng.choice(sorted((case.real / "captures").iterdir()))
    path = case.place / "in" / source.name
    path.write_bytes(case.hostile.file(source.name, source.read_bytes()))
    out = case.place / "out"
    return case.rng.choice(
        (["analyze", path], ["analyze", "--json", path], ["analyze", "--full", path, "--csv", out / "tables"],
         ["analyze", path, "--html", out / "page.html"], ["explain", path], ["explain", "--json", path],
         ["analyze", "--join", path, source], ["export", path, "--out", out])
    )  # fmt: skip


def inventory(case: Case) -> Words:
    """Mostly what Ansible would print of one, so that what reads it is met and not Ansible's parser each time."""
    path = case.copied(case.rng.choice(("rack.yml", "two-routers.yml")))
    draw = case.rng.random()
    if draw < 0.9:
        of = copy.deepcopy(MACHINES)
        if case.rng.random() < 0.3:
            of["b"]["netwarp_commands"] = {"p9": {"down": "port 3 off", "up": "port 3 on"}}
        listing = case.hostile.json(json.dumps({"_meta": {"hostvars": of}, **GROUPS}).encode())
        (case.place / "in" / "listing.json").write_bytes(listing)
    elif draw < 0.95:  # JSON is YAML too
        path.write_bytes(case.hostile.json(json.dumps({"netwarp": {"hosts": MACHINES}}).encode()))
    elif draw < 0.98:
        path.write_bytes(case.hostile.file(path.name, path.read_bytes()))
    else:  # Ansible would run an inventory that is a program
        path.write_text(f"#!/bin/sh\ntouch {case.hostile.outside}/made\necho '{{}}'\n")
        path.chmod(0o755)
    if case.rng.random() < 0.5:
        return ["plan", case.real / "spec" / "spec.toml", "--backend", "hosts", "--offline", "--inventory", path,
                "--allow-programs"]  # fmt: skip
    return ["plan", case.real / "spec" / "spec.toml", "--backend", "hosts", "--offline", "--inventory", path]


def side_file(case: Case) -> Words:
    folder = case.copied("side")
    names = sorted(each.name for each in folder.iterdir())
    path = folder / case.rng.choice(names)
    if case.rng.random() < 0.15:
        path.unlink()
        path.symlink_to(case.hostile.outside / "secret.json")
    else:
        path.write_bytes(case.hostile.file(path.name, path.read_bytes()))
    return ["plan", folder / case.rng.choice([name for name in names if name.endswith(".toml")]), "--json"]


DOORS: dict[str, Callable[[Case], Words]] = {
    "bundle": bundle, "run directory": run, "plan": plan, "pack": pack, "capture": capture, "inventory": inventory,
    "side file": side_file,
}  # fmt: skip


ORDER = list(DOORS)


@dataclass
class Found:
    """What the executions of a door came to."""

    executions: int = 0
    refused: int = 0
    escapes: int = 0
    tracebacks: int = 0
    longest_s: float = 0.0
    largest_bytes: int = 0
    faults: list[str] = field(default_factory=list)


def make_real(real: Path) -> None:
    """Real files: a run on the guest kernel (without one a made-up run), packed, as a bundle, and its captures."""
    shutil.rmtree(real, ignore_errors=True)
    (real / "spec").mkdir(parents=True)
    (real / "spec" / "spec.toml").write_text(SPEC)
    netwarp: Sequence[str | Path] = [sys.executable, "-m", "netwarp"]
    done = subprocess.run(
        [*netwarp, "run", real / "spec" / "spec.toml", "--backend", "virtual", "--out", real / "run"],
        capture_output=True, text=True, check=False, cwd=ROOT,
    )  # fmt: skip
    if done.returncode:
        from support.report_kit import small_run

        print(f"no real run, a made-up one instead: {done.stderr.strip()[-200:]}", flush=True)
        shutil.rmtree(real / "run", ignore_errors=True)
        small_run(real / "run")
    from netwarp.engine.bundles import bundle as make_bundle
    from netwarp.store.bundle_files import unpack_bundle
    from netwarp.store.packing import pack_run
    from netwarp.store.run_dir import RunDir

    with contextlib.suppress(Exception):
        make_bundle(real / "run", real / "run.tar.xz")
    if not (real / "run.tar.xz").exists():  # the made-up one has no hashes of captures
        shutil.copy(ROOT / "results" / "reference" / "ha2005" / "run.tar.xz", real / "run.tar.xz")
    (real / "bundled").mkdir()
    unpack_bundle(real / "run.tar.xz", real / "bundled")
    shutil.copytree(real / "run", real / "packed")
    pack_run(RunDir(real / "packed"))
    (real / "captures").mkdir()
    for path in sorted(DATA.glob("*.pcap*"))[:12] + sorted((real / "run").glob("cells/*/capture/*"))[:4]:
        shutil.copy(path, real / "captures" / path.name)
    for path in sorted((real / "captures").glob("*.pcap.zst"))[:6]:  # plain ones, whose bytes mean something
        import zstandard

        plain = zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read(200_000)
        (real / "captures" / path.name.removesuffix(".zst")).write_bytes(plain)
    from seeds import captures

    for name, content in list(captures().items())[::41]:
        (real / "captures" / f"seed-{name[:60]}.pcap").write_bytes(content)
    for name in ("rack.yml", "two-routers.yml"):
        shutil.copy(ROOT / "ansible" / "inventories" / name, real / name)
    side = real / "side"
    side.mkdir()
    (side / "side.toml").write_text(SIDE_SPEC)
    (side / "pages.toml").write_text(HAR_SPEC)
    (side / "link.trace").write_text("".join(f"{number * 12}\n" for number in range(1, 400)))
    (side / "messages.csv").write_text("time,bytes\n0 s,1000 B\n1 s,400 B\n")
    date = "2026-01-01T00:00:00.000Z"
    request = {"method": "GET", "url": "http://a/", "headersSize": 100, "bodySize": 0}
    response = {"status": 200, "headersSize": 100, "bodySize": 5000, "content": {"size": 5000, "mimeType": "text/html"}}
    entry = {"startedDateTime": date, "pageref": "p", "time": 1, "request": request, "response": response}
    pages = [{"startedDateTime": date, "id": "p", "title": "t", "pageTimings": {}}]
    har = {"log": {"version": "1.2", "creator": {"name": "x", "version": "1"}, "pages": pages, "entries": [entry] * 3}}
    (side / "today.har").write_text(json.dumps(har))


def restrict(place: Path) -> bool:
    """From here on this process changes files below one directory alone. False: this kernel has no Landlock."""
    libc = ctypes.CDLL(None, use_errno=True)
    rights = ctypes.c_uint64(WRITES | TRUNCATE)
    ruleset = libc.syscall(LANDLOCK_CREATE, ctypes.byref(rights), 8, 0)
    if ruleset < 0:
        return False

    class Beneath(ctypes.Structure):
        _pack_ = 1
        _fields_ = (("rights", ctypes.c_uint64), ("folder", ctypes.c_int32))

    for path in (place, Path("/dev/shm"), Path("/dev/null")):
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
        allowed = rights.value if path.is_dir() else (TRUNCATE | 2)
        libc.syscall(LANDLOCK_ADD, ruleset, 1, ctypes.byref(Beneath(allowed, handle)), 0)
        os.close(handle)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    return int(libc.syscall(LANDLOCK_RESTRICT, ruleset, 0)) == 0


def watched(place: Path) -> dict[str, tuple[int, int, bytes]]:
    """All that no execution may change: every file beside in/, out/, tmp/ and what is printed."""
    return {
        str(path.relative_to(place)): (
            (state := path.lstat()).st_mode, state.st_mtime_ns,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in place.rglob("*")
        if path.relative_to(place).parts[0] not in ("in", "out", "tmp", "home", "printed")
    }  # fmt: skip


def execute(number: int, seed: str, real: Path, place: Path, found: dict[str, Found]) -> None:
    """One execution, judged."""
    rng = random.Random(f"{seed}:{number}")
    name = ORDER[number % len(ORDER)]
    shutil.rmtree(place, ignore_errors=True)
    for part in ("in", "out", "tmp", "home", "outside/folder"):
        (place / part).mkdir(parents=True)
    outside = place / "outside"
    (outside / "secret.json").write_text(json.dumps({"secret": SECRET}))
    (outside / "linked.json").write_text(json.dumps({"linked": "x"}))
    for part in ("capture.pcap", "measurements.json", "index.html"):
        (outside / "folder" / part).write_text(SECRET)
    case = Case(place, rng, Hostile(rng, outside), real)
    words = [str(word) for word in DOORS[name](case)]
    before = watched(place)
    started = time.monotonic()
    child = os.fork()
    if not child:
        _become(words, place)
    handle = os.pidfd_open(child)
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    late = not poll.poll(LIMIT_S * 1000)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    _, status, used = os.wait4(child, 0)
    os.close(handle)
    took = time.monotonic() - started
    code = os.waitstatus_to_exitcode(status)
    printed = (place / "printed").read_bytes()
    of = found[name]
    of.executions += 1
    of.refused += code in (1, 2, 77)
    of.longest_s = max(of.longest_s, took)
    of.largest_bytes = max(of.largest_bytes, used.ru_maxrss << 10)
    faults = []
    if late:
        faults.append(f"took more than {LIMIT_S} s")
    if used.ru_maxrss << 10 > LIMIT_BYTES:
        faults.append(f"took {used.ru_maxrss >> 10} MiB")
    if b"Traceback (most recent call last)" in printed or code not in (0, 1, 2, 77):
        of.tracebacks += 1
        last = [line for line in printed.decode(errors="replace").splitlines() if line.strip()][-1:]
        faults.append(f"ended with {code}: {last}")
    if b"\x1b" in printed:
        faults.append("printed an escape sequence")
    after = watched(place)
    changed = sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
    if list((place / "tmp").iterdir()):
        changed.append(f"left in TMPDIR: {[path.name for path in (place / 'tmp').iterdir()]}")
    if shown := _shows(place, printed):
        changed.append(f"shows the secret: {shown}")
    if changed:
        of.escapes += 1
        faults.append(f"escaped: {changed}")
    for fault in faults:
        of.faults.append(f"{number} {name}: netwarp {' '.join(words)}: {fault}")
        print(f"FAULT {of.faults[-1]}", flush=True)


def _shows(place: Path, printed: bytes) -> str:
    """Where the secret of the watched folder was copied to; "": nowhere."""
    if SECRET.encode() in printed:
        return "on the terminal"
    for path in (*(place / "out").rglob("*"), *(place / "in").rglob("*")):
        state = path.lstat()
        if (
            path.is_file()
            and not path.is_symlink()
            and state.st_size < 1 << 24
            and SECRET.encode() in path.read_bytes()
        ):
            return str(path.relative_to(place))
    return ""


def _become(words: Sequence[str], place: Path) -> None:
    """In the fork: the command line, in its directory."""
    try:
        os.setsid()
        output = os.open(place / "printed", os.O_WRONLY | os.O_CREAT, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(place / "out")
        os.environ |= {
            "TMPDIR": str(place / "tmp"),
            "HOME": str(place / "home"),
            "NETWARP_KERNEL": "/nonexistent/linux",
        }
        import tempfile

        tempfile.tempdir = None
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + 2 * LIMIT_BYTES, size + 2 * LIMIT_BYTES))
        resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))
        restrict(place)
        from netwarp.cli import main
        from netwarp.sandbox.hosts import inventory as reading

        if (listing := place / "in" / "listing.json").exists():
            reading._listed = lambda path, program: listing.read_bytes()

        status = main(list(words))
        sys.stdout.flush()
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException:  # noqa: BLE001  this is the fault that is looked for
        traceback.print_exc()
        status = 99
    sys.stderr.flush()
    os._exit(status)


def main() -> int:
    """The table; 1 where there is a fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", help="default: the hash of the committed tree")
    parser.add_argument("--case", type=int, help="this execution alone; its files stay in build/fuzz/doors/case")
    args = parser.parse_args()
    seed = args.seed or subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=False
    ).stdout.strip()  # fmt: skip
    print(f"seed {seed or 'none'}", flush=True)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    for module in MODULES:
        importlib.import_module(f"netwarp.{module}")
    real, place = PLACE / "real", PLACE / "case"
    make_real(real)
    found = {name: Found() for name in DOORS}
    if args.case is not None:
        execute(args.case, seed, real, place, found)
    else:
        number, until = 0, time.monotonic() + args.seconds
        while time.monotonic() < until:
            execute(number, seed, real, place, found)
            number += 1
        shutil.rmtree(place, ignore_errors=True)
    print(f"{'door':<14} executions refused escapes tracebacks longest largest")
    for name, of in found.items():
        print(f"{name:<14} {of.executions:>10} {of.refused:>7} {of.escapes:>7} {of.tracebacks:>10} "
              f"{of.longest_s:>5.1f} s {of.largest_bytes >> 20:>3} MiB")  # fmt: skip
    return 1 if any(of.faults for of in found.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
