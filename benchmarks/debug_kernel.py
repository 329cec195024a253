"""Cost of a debug kernel: CPU seconds of one cell (debug/cost.toml) on the plain kernel, on a debug one, and on that
with single checks switched off at boot; with --unstripped also the share of each part of the kernel, sampled by perf.

    .venv/bin/python benchmarks/debug_kernel.py [--kernel 6.12+debug] [--plain 6.12] [--runs 3] [--unstripped FILE]

CPU time of all processes of a guest: on a busy machine wall time says little. Least of the runs. Sampling needs a
binary with symbols, which the cache has not: --unstripped names it. A kernel is a name of the cache or a file.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import msgspec
from netwarp.core.built_programs import BUILD
from netwarp.core.types import Cell, Outcome
from netwarp.experiment import load_spec
from netwarp.guestkernel.cache import find_named
from netwarp.plan import make_plan
from netwarp.sandbox import VirtualBackend
from netwarp.store.run_dir import CellDir, RunDir

HERE = Path(__file__).parent
SWITCHES = {
    "kmemleak": "kmemleak=off",
    "debug objects": "no_debug_objects",
    "lockdep's proofs": "lockdep.prove_locking=0",
    "SLUB's checks": "slab_debug=-",
}
"""A check -> the argument of the kernel that switches it off."""
PARTS = {
    "saving stacks (KASAN's, lockdep's, kmemleak's)": "dump_trace save_addr kernel_text_address core_kernel_text "
    "stack_trace save_stack stack_depot filter_irq_stacks in_gate_area is_bpf_text bpf_ksym is_module_text",
    "KASAN's functions": "kasan asan quarantine qlist qlink memory_is_poisoned check_region",
    "lockdep": "lock_acquire lock_release lockdep lock_is_held mark_lock mark_usage mark_held validate_chain hlock "
    "check_chain lookup_chain register_lock_class check_wait_context held_lock check_flags trace_hardirqs "
    "trace_softirqs lock_held check_prev __bfs lock_pin",
    "debug objects": "debug_object debug_timer debug_work debug_hrtimer fill_pool check_no_obj",
    "kmemleak": "kmemleak create_object delete_object link_object alloc_object",
}
"""A part -> words in the names of its functions."""
REST = "everything else, with KASAN's inlined checks"
HOST = "the host's kernel: system calls, page faults"


def main() -> int:
    """Print the table; 1 if a cell did not complete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernel", default="6.12+debug")
    parser.add_argument("--plain", default="6.12")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--unstripped", type=Path, metavar="FILE", help="the debug kernel with its symbols")
    args = parser.parse_args()
    cell = make_plan(load_spec(HERE / "debug" / "cost.toml")).cells[0]
    empty = msgspec.structs.replace(cell, flows=(), timeline=(), duration_ns=0)
    plain, debug = (binary(name) for name in (args.plain, args.kernel))
    rows = [("plain kernel", plain, ""), ("debug kernel", debug, "")]
    rows += [(f"without {name}: `{argument}`", debug, argument) for name, argument in SWITCHES.items()]
    print("| | boot and empty cell, CPU s | 20 s of SCTP with a cut, CPU s |\n| --- | --- | --- |")
    for name, kernel, argument in rows:
        costs = [min(cost(each, kernel, argument) for _ in range(args.runs)) for each in (empty, cell)]
        print(f"| {name} | {costs[0]:.2f} | {costs[1]:.2f} |", flush=True)
    if args.unstripped is not None:
        print("\n| part | share of CPU time |\n| --- | --- |")
        for name, share in shares(cell, args.unstripped).most_common():
            print(f"| {name} | {share:.0f} % |")
    return 0


def shares(cell: Cell, kernel: Path) -> Counter[str]:
    """The percentage of CPU time of each part, in a cell on that kernel."""
    backend = Switched(kernel, BUILD)
    with tempfile.TemporaryDirectory(prefix="netwarp-debug-") as folder:
        Path(folder).chmod(0o711)
        backend.sampled = Path(folder) / "perf.data"
        backend.run_cell(cell, RunDir(Path(folder) / "run"))
        report = ["perf", "report", "--stdio", "-q", "-t", ";", "--sort", "sym", "-i", str(backend.sampled)]
        text = subprocess.run(report, capture_output=True, text=True, check=True).stdout
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if match := re.match(r"\s*([\d.]+)%;\[(.)\] (\S+)", line):
            own = (name for name, words in PARTS.items() if any(word in match[3] for word in words.split()))
            found[HOST if match[2] == "k" else next(own, REST)] += float(match[1])
    return found


def binary(name: str) -> Path:
    """Of a kernel of the cache, or a file."""
    build = None if "/" in name else find_named(name)
    if build is None and "/" not in name:
        raise SystemExit(f"the kernel {name} is not built; `netwarp kernel list` lists those that are")
    return Path(name) if build is None else build.binary


class Switched(VirtualBackend):
    """Guests whose kernel gets one more argument, or whose kernel's CPU time is sampled."""

    argument = ""
    sampled: Path | None = None

    def command(self, cell: Cell, directory: CellDir) -> list[str]:
        """The guest's, below `perf record` where that is asked for."""
        command = super().command(cell, directory)
        if self.argument:
            command += ["--argument", self.argument]
        if self.sampled is not None:
            parent = command.index("--parent")  # perf is
            del command[parent : parent + 2]
            command = ["perf", "record", "-q", "-F", "499", "-o", str(self.sampled), "--", *command]
        return command


def cost(cell: Cell, kernel: Path, argument: str) -> float:
    """CPU seconds of all processes of the cell's guest. Raises SystemExit if it does not complete."""
    backend = Switched(kernel, BUILD)
    backend.argument = argument
    with tempfile.TemporaryDirectory(prefix="netwarp-debug-") as folder:
        Path(folder).chmod(0o711)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        outcome = backend.run_cell(cell, RunDir(Path(folder) / "run"))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if outcome.outcome is not Outcome.COMPLETED:
        raise SystemExit(f"{kernel} {argument}: {outcome.reason}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    sys.exit(main())
