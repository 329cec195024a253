"""A small history of Linux with one planted regression, found in both ways of docs/bisect.md.

`make bisect-test` takes the distribution's source, nine commits on top of it, and a cell of TCP that loses its link for
five seconds. The first build takes minutes, each step after it what the changed file and the link take. Prints each
step's time, and fails unless `git bisect run` and `kernel watch --over` name the planted commit.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from netwarp.guestkernel import load_recipe
from netwarp.guestkernel.source import find_source

from .checkout import ROOT
from .specs import two_hosts

NETWARP = ROOT / ".venv" / "bin" / "netwarp"
GIT = ("git", "-c", "user.name=netwarp", "-c", "user.email=netwarp@example.org", "-c", "advice.detachedHead=false")
COMMENTS = (
    ("sctp: a comment", "net/sctp/transport.c"),
    ("tcp: a comment", "net/ipv4/tcp_input.c"),
    ("mptcp: a comment", "net/mptcp/options.c"),
    ("netem: a comment", "net/sched/sch_netem.c"),
    ("sctp: another comment", "net/sctp/ulpqueue.c"),
    ("tcp: another comment", "net/ipv4/tcp_output.c"),
    ("ip: a comment", "net/ipv4/ip_output.c"),
    ("sctp: a third comment", "net/sctp/outqueue.c"),
)
PLANTED_AFTER = 5
PLANTED = ("tcp: shorter waits", "net/ipv4/tcp_timer.c", r"icsk->icsk_rto << 1", "icsk->icsk_rto")
SPEC = two_hosts(
    'name = "bisected"\nduration = "15 s"',
    'rate = "2 Mbit/s"\nqueue = "50 packets"\none_way_delay = "10 ms"',
    """protocol = "tcp"
[flow.f]
[event.fault]
action = "cut"
link = "p1"
at = "5 s"
for = "5 s"
""",
)


def git(tree: Path, *words: str) -> str:
    """git in the tree; its standard output."""
    return subprocess.run([*GIT, "-C", str(tree), *words], check=True, capture_output=True, text=True).stdout.strip()


def unpack(tree: Path) -> None:
    """The distribution's source without what this build never reads, as the first commit."""
    recipe = load_recipe()
    source = find_source(None, recipe)
    tree.mkdir(parents=True)
    command = ["tar", "-x", "--strip-components=1", "-C", str(tree), "-f", str(source.path), "-I", "xz -T0"]
    subprocess.run([*command, *(f"--exclude={pattern}" for pattern in recipe.not_unpacked)], check=True)
    ignored = tree / ".gitignore"
    ignored.write_text(ignored.read_text().replace("\n/*\n", "\n"))  # Debian's last line hides every file
    git(tree, "init", "-q")
    git(tree, "add", "-A")
    git(tree, "commit", "-qm", source.text)


def grow(tree: Path) -> tuple[str, str, str]:
    """Adds the history; returns the good, the planted and the bad commit."""
    good = git(tree, "rev-parse", "HEAD")
    planted = ""
    for number, (subject, name) in enumerate(COMMENTS):
        if number == PLANTED_AFTER:
            subject_, name_, old, new = PLANTED
            text, often = re.subn(old, new, (tree / name_).read_text())
            if not often:
                raise SystemExit(f"{name_} holds no {old}: this source is another")
            (tree / name_).write_text(text)
            git(tree, "commit", "-qam", subject_)
            planted = git(tree, "rev-parse", "HEAD")
        with open(tree / name, "a") as file:
            file.write(f"/* commit {number} */\n")
        git(tree, "commit", "-qam", subject)
    return good, planted, git(tree, "rev-parse", "HEAD")


def step_by_git(tree: Path, place: Path, good: str, bad: str) -> str:
    """The first bad commit by `git bisect run`, as docs/bisect.md has it; prints each step's time."""
    git(tree, "bisect", "start", bad, good)
    step = place / "step.sh"  # times each step; the answer is netwarp's
    step.write_text(
        f'#!/bin/sh\nbegin=$(date +%s)\n"{NETWARP}" kernel watch .@{good} .@HEAD "$@" --git-bisect\nstatus=$?\n'
        'echo "STEP $(git log -1 --format=%s): answer $status, $(($(date +%s) - begin)) s"\nexit $status\n'
    )
    step.chmod(0o755)
    command = [*GIT, "-C", tree, "bisect", "run", step, "--set", place / "bisected.toml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith("STEP") or "first bad" in line))
    found = re.search(r"^([0-9a-f]{40}) is the first bad commit", done.stdout, re.MULTILINE)
    left = git(tree, "status", "--porcelain")
    git(tree, "bisect", "reset")
    if found is None or left:
        print(done.stdout[-3000:], done.stderr[-3000:], left, file=sys.stderr)
        return ""
    return found[1]


def by_watch(tree: Path, place: Path, good: str, bad: str) -> str:
    """The commit that `kernel watch --over` names, which checks nothing out."""
    words = ["kernel", "watch", tree, "--over", f"{good}..{bad}", "--set", place / "bisected.toml"]
    done = subprocess.run([NETWARP, *words, "--out", place / "out", "--json"], stdout=subprocess.PIPE, check=False)
    commits = [commit for each in json.loads(done.stdout)["bisected"] for commit in each["commits"]]
    return commits[0] if len(commits) == 1 else ""


def bisect(tree: Path, place: Path) -> int:
    """Both ways; 1 if one of them does not name the planted commit."""
    good, planted, bad = grow(tree)
    (place / "bisected.toml").write_text(SPEC)
    git(tree, "checkout", "-q", good)
    started = time.monotonic()
    subprocess.run([NETWARP, "kernel", "build", "--source", f"{tree}@{good}"], check=True)
    print(f"first build: {time.monotonic() - started:.0f} s", flush=True)
    for way in (step_by_git, by_watch):
        started = time.monotonic()
        if way(tree, place, good, bad) != planted:
            print(f"{way.__name__}: {planted} is not what was found", file=sys.stderr)
            return 1
        subject = git(tree, "log", "-1", "--format=%s", planted)
        print(f"{way.__name__} found: {subject} ({time.monotonic() - started:.0f} s)", flush=True)
    return 0


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", type=Path, help="a git tree of Linux to grow the history on (default: unpacked anew)")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="netwarp-bisect-") as folder:
        tree = args.tree.resolve() if args.tree else Path(folder) / "linux"
        if args.tree is None:
            unpack(tree)
        return bisect(tree, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
