"""netwarp itself in a guest on the wall clock: `in_a_guest.py --dir DIR -- run SPEC --backend netns ...`.

For hosts whose own kernel has no netem or no SCTP: the guest's has both, and netwarp's back end netns is at home there.
Inside, DIR is /run/cell (use `--out /run/cell/run`); the rest of the file system is the host's, read-only. What netwarp
printed is in DIR/guest.out and DIR/guest.err. Ends with netwarp's own exit status.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from netwarp.core.built_programs import BUILD
from netwarp.core.errors import BackendUnavailable
from netwarp.core.units import parse_quantity
from netwarp.doctor import memory_dir
from netwarp.sandbox.choose import choose
from netwarp.store.init_records import Exit, read_init_log
from netwarp.store.ndjson import of_kind
from netwarp.testbed.steps import step, to_text

ROOT = Path(__file__).resolve().parents[1]
S = 1_000_000_000
QUIET = ("net/ipv6/conf/all/disable_ipv6", "net/ipv6/conf/default/disable_ipv6")


def run_in_guest(folder: Path, command: Sequence[str], *, limit_ns: int, memory: str = "2G") -> Exit | None:
    """Run a command in a guest on the wall clock, whose /run/cell is `folder`: a new directory, then with guest.out and
    guest.err. How the command ended; None: the guest ended before it. Raises BackendUnavailable: no room for memory.
    """
    place = memory_dir()
    if place is None:
        raise BackendUnavailable("no room for the guest's memory; `netwarp doctor` says where it looks")
    folder.mkdir(parents=True)
    shutil.copy(BUILD / "bin" / "cell-init", folder / "init")
    environment = [f"PYTHONPATH={ROOT}", "HOME=/run/cell", "TMPDIR=/run/cell", "PYTHONDONTWRITEBYTECODE=1"]
    steps = [
        step("sandbox", kind="guest"), step("clock", t0_after_ready_ns=S // 10),
        step("deadline", setup_ns=9 * S, after_t0_ns=limit_ns + 30 * S), step("ns", index=0, name="machine"),
        *(step("sysctl", ns=0, path=path, value="1") for path in QUIET), step("ready"),
        step("spawn", id="guest", ns=0, stdout="guest.out", stderr="guest.err", flow=1, at_ns=0, arg=command,
             env=environment),
        step("end", at_ns=limit_ns, early=1, grace_ns=5 * S),
    ]  # fmt: skip
    (folder / "steps.txt").write_text(to_text(steps))
    guest = [
        str(BUILD / "bin" / "guest-exec"), "--kernel", str(choose("virtual").kernel.binary), "--dir", str(folder),
        "--seed", "1", "--memory", memory, "--mode", "wall", "--tmpdir", str(place), "--parent", str(os.getpid()),
    ]  # fmt: skip
    subprocess.run(guest, check=False, stdin=subprocess.DEVNULL)
    return next((ended for ended in of_kind(read_init_log(folder / "init.ndjson"), Exit) if ended.id == "guest"), None)


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, required=True, help="a new directory: the guest's /run/cell")
    parser.add_argument("--limit", default="30 min", help="the guest ends by then (default: %(default)s)")
    parser.add_argument("--memory", default="2G", help="of the guest (default: %(default)s)")
    parser.add_argument("arguments", nargs="+", metavar="ARGUMENT", help="netwarp's own, after --")
    args = parser.parse_args()
    limit_ns = int(parse_quantity(args.limit, "time").value)
    command = [sys.executable, "-m", "netwarp", *args.arguments]
    try:
        ended = run_in_guest(args.dir, command, limit_ns=limit_ns, memory=args.memory)
    except BackendUnavailable as error:
        parser.error(str(error))
    for name, stream in (("guest.out", sys.stdout), ("guest.err", sys.stderr)):
        stream.write((args.dir / name).read_text())
    if ended is None or ended.killed or ended.status is None:
        print(f"in_a_guest: netwarp did not end by itself: {ended}", file=sys.stderr)
        return 1
    return ended.status


if __name__ == "__main__":
    sys.exit(main())
