"""Cost of a cell: `make bench`. Medians of several runs on this machine, and ratios within the same run."""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import msgspec
from netwarp.captures import read_captures
from netwarp.core.built_programs import BUILD
from netwarp.core.types import Cell, Outcome
from netwarp.experiment import load_spec
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
    repetitions = parser.parse_args().repetitions
    kernel = choose("virtual").kernel
    backend = VirtualBackend(kernel.binary, BUILD)
    where = [("outage", "10 s"), ("reading", "one_way_delay"), ("fault", "cut")]
    plan = make_plan(load_spec("choi2009"), only=["outages"], where=where)
    tcp = next(cell for cell in plan.cells if cell.factors["variant"] == "tcp")
    sctp = next(cell for cell in plan.cells if cell.factors["variant"] == "sctp_multi")
    empty = msgspec.structs.replace(tcp, flows=(), timeline=(), duration_ns=0)
    print(f"Linux {kernel.release} in virtual time on {cpu_model()}; medians of {repetitions}, one cell at a time")
    print(f"{'cell':<42}{'run':>9}{'analysis':>10}{'packets':>9}{'virtual s/s':>12}")
    for name, cell in (
        ("empty: boot, network, captures, power-off", empty),
        ("choi2009, TCP, 10 s cut", tcp),
        ("choi2009, SCTP on two paths, 10 s cut", sctp),
    ):
        cost = measure(cell, backend, repetitions)
        if cost is None:
            return 1
        speed = f"{cell.duration_ns / 1e9 / cost.run_s:.0f}" if cell.duration_ns else ""
        print(f"{name:<42}{cost.run_s:>7.2f} s{1000 * cost.analysis_s:>7.0f} ms{cost.packets:>9}{speed:>12}")
    return 0 if transfers(backend, repetitions) else 1


def transfers(backend: VirtualBackend, repetitions: int) -> bool:
    """20 MB over a link of 100 Mbit/s: what 100 MB and a packet cost; False if a cell did not complete."""
    print(f"\n{'20 MB, 100 Mbit/s, RTT 12 ms':<42}{'s/100 MB':>9}{'analysis':>10}{'packets':>9}{'packets/s':>12}")
    for cell in make_plan(load_spec(Path(__file__).with_name("transfers.toml"))).cells:
        cost = measure(cell, backend, repetitions)
        if cost is None:
            return False
        (total,) = {flow.total_bytes for flow in cell.flows}
        assert total is not None
        name = f"{cell.factors['transfer']}, messages of {cell.flows[0].message_bytes} bytes"
        # each packet is captured twice, at both hosts: halved here
        packets, bytes_s = cost.packets // 2, cost.run_s * 1e8 / total
        print(f"{name:<42}{bytes_s:>7.2f} s{1000 * cost.analysis_s:>7.0f} ms{packets:>9}{packets / cost.run_s:>12.0f}")
    return True


@dataclass(frozen=True, slots=True)
class Cost:
    """Medians of one cell: seconds of wall time, and packets in its captures."""

    run_s: float
    analysis_s: float
    packets: int


def measure(cell: Cell, backend: VirtualBackend, repetitions: int) -> Cost | None:
    """None if the cell did not complete."""
    running: list[float] = []
    analysing: list[float] = []
    with tempfile.TemporaryDirectory(prefix="netwarp-bench-") as root:
        run = RunDir(Path(root))
        for _ in range(repetitions):
            started = time.perf_counter()
            outcome = backend.run_cell(cell, run)
            ran = time.perf_counter()
            if outcome.outcome is not Outcome.COMPLETED:
                print(f"{cell.id}: {outcome.outcome}: {outcome.reason}", file=sys.stderr)
                return None
            analyze_cell(cell, run.cell(cell.id).root)
            running.append(ran - started)
            analysing.append(time.perf_counter() - ran)
        captures = sorted(run.cell(cell.id).capture.glob("*.zst"))
        packets = sum(int(read_captures([capture], ()).sources["packets"].sum()) for capture in captures)
    return Cost(statistics.median(running), statistics.median(analysing), packets)


if __name__ == "__main__":
    sys.exit(main())
