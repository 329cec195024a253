"""Cost of a cell: `make bench`. Medians of several runs on this machine, and ratios within the same run.

With --kernel KEY, several times: kernels of the cache against each other, in turns, so that other work on the machine
slows each as much. With --traced each of them also with its programs traced, where it would run them otherwise.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from netwarp.captures import read_captures
from netwarp.core.built_programs import BUILD
from netwarp.core.types import Cell, Outcome
from netwarp.experiment import load_spec
from netwarp.guestkernel import KernelBuild, find_kernel
from netwarp.guestkernel.seccomp import SWITCH
from netwarp.measure.cell import analyze_cell
from netwarp.plan import make_plan
from netwarp.sandbox import VirtualBackend
from netwarp.sandbox.choose import choose
from netwarp.store.manifest import cpu_model
from netwarp.store.run_dir import RunDir


def main() -> int:
    """Print the table; 1 if a cell did not complete."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--kernel", action="append", metavar="KEY", help="a kernel of `netwarp kernel list`")
    parser.add_argument("--traced", action="store_true", help="each kernel a second time, with NETWARP_SECCOMP=off")
    arguments = parser.parse_args()
    repetitions = arguments.repetitions
    kernels = [kernel_named(key) for key in arguments.kernel] if arguments.kernel else [choose("virtual").kernel]
    switches = ["on", "off"] if arguments.traced else [os.environ.get(SWITCH, "")]
    backends = [(VirtualBackend(kernel.binary, BUILD), switch) for kernel in kernels for switch in switches]
    where = [("outage", "10 s"), ("reading", "one_way_delay"), ("fault", "cut")]
    plan = make_plan(load_spec("choi2009"), only=["outages"], where=where)
    tcp = next(cell for cell in plan.cells if cell.factors["variant"] == "tcp")
    sctp = next(cell for cell in plan.cells if cell.factors["variant"] == "sctp_multi")
    empty = msgspec.structs.replace(tcp, flows=(), timeline=(), duration_ns=0)
    names = ", ".join(
        f"{kernel.release} {kernel.key}".strip() + (f" ({SWITCH}={switch})" if switch else "")
        for kernel in kernels
        for switch in switches
    )
    print(f"Linux {names} in virtual time on {cpu_model()}; medians of {repetitions}, one cell at a time")
    print(f"{'cell':<42}{'run':>9}{'CPU':>9}{'analysis':>10}{'packets':>9}{'virtual s/s':>12}")
    for name, cell in (
        ("empty: boot, network, captures, power-off", empty),
        ("choi2009, TCP, 10 s cut", tcp),
        ("choi2009, SCTP on two paths, 10 s cut", sctp),
    ):
        costs = measure(cell, backends, repetitions)
        if costs is None:
            return 1
        for cost in costs:
            speed = f"{cell.duration_ns / 1e9 / cost.run_s:.0f}" if cell.duration_ns else ""
            times = f"{cost.run_s:>7.3f} s{cost.cpu_s:>7.3f} s{1000 * cost.analysis_s:>7.0f} ms"
            print(f"{name:<42}{times}{cost.packets:>9}{speed:>12}")
    return 0 if transfers(backends, repetitions) else 1


def kernel_named(key: str) -> KernelBuild:
    """A kernel of the cache. Raises SystemExit where there is none."""
    kernel = find_kernel(key)
    if kernel is None:
        raise SystemExit(f"no kernel {key}: `netwarp kernel list` names those there are")
    return kernel


def transfers(backends: Sequence[tuple[VirtualBackend, str]], repetitions: int) -> bool:
    """20 MB over a link of 100 Mbit/s: what 100 MB and a packet cost; False if a cell did not complete."""
    title = "20 MB, 100 Mbit/s, RTT 12 ms"
    print(f"\n{title:<42}{'s/100 MB':>9}{'CPU':>9}{'analysis':>10}{'packets':>9}{'packets/s':>12}")
    for cell in make_plan(load_spec(Path(__file__).with_name("transfers.toml"))).cells:
        costs = measure(cell, backends, repetitions)
        if costs is None:
            return False
        (total,) = {flow.total_bytes for flow in cell.flows}
        assert total is not None
        name = f"{cell.factors['transfer']}, messages of {cell.flows[0].message_bytes} bytes"
        for cost in costs:
            # each packet is captured twice, at both hosts: halved here
            packets, run_s, cpu_s = cost.packets // 2, cost.run_s * 1e8 / total, cost.cpu_s * 1e8 / total
            times = f"{run_s:>7.2f} s{cpu_s:>7.2f} s{1000 * cost.analysis_s:>7.0f} ms"
            print(f"{name:<42}{times}{packets:>9}{packets / cost.run_s:>12.0f}")
    return True


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of one cell: seconds of wall time, of CPU of its guest, of analysis; and packets in its captures."""

    run_s: float
    cpu_s: float
    analysis_s: float
    packets: int


def measure(cell: Cell, backends: Sequence[tuple[VirtualBackend, str]], repetitions: int) -> list[Cost] | None:
    """The cost with each back end and value of NETWARP_SECCOMP; None if the cell did not complete."""
    times: list[list[tuple[float, float, float]]] = [[] for _ in backends]
    packets = [0] * len(backends)
    with tempfile.TemporaryDirectory(prefix="netwarp-bench-") as root:
        run = RunDir(Path(root))
        for _ in range(repetitions):
            for number, (backend, switch) in enumerate(backends):
                os.environ[SWITCH] = switch
                started, cpu = time.perf_counter(), guests_cpu_s()
                outcome = backend.run_cell(cell, run)
                ran, cpu = time.perf_counter(), guests_cpu_s() - cpu
                if outcome.outcome is not Outcome.COMPLETED:
                    print(f"{cell.id}: {outcome.outcome}: {outcome.reason}", file=sys.stderr)
                    return None
                analyze_cell(cell, run.cell(cell.id).root)
                times[number].append((ran - started, cpu, time.perf_counter() - ran))
                captures = sorted(run.cell(cell.id).capture.glob("*.zst"))
                packets[number] = sum(int(read_captures([file], ()).sources["packets"].sum()) for file in captures)
    medians = [[statistics.median(column) for column in zip(*rows, strict=True)] for rows in times]
    return [Cost(run, cpu, analysis, count) for (run, cpu, analysis), count in zip(medians, packets, strict=True)]


def guests_cpu_s() -> float:
    """CPU seconds of the guests that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
