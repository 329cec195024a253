"""Speed of the analyser beside tshark and tcptrace, on captures of real kernels: `make bench-analysis`.

Everything of one table is measured in one run on one machine. Ours: calls in this process, files in the page cache;
tshark, tcptrace: whole processes, output thrown away. One table compares whole processes, with the core's part of ours.
CPU time is shown beside the clock's because a busy machine stretches only the latter; ratios are of CPU time.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench_captures import Captures, make_captures, make_syns, repeat
from netwarp.captures import read_captures
from netwarp.captures.capture import ROW_TABLES
from netwarp.captures.stream import read_stream
from netwarp.core.built_programs import BUILD
from netwarp.core.executables import find_executable
from netwarp.store.manifest import cpu_model

FIELDS = [
    "frame.time_epoch",
    "ip.src",
    "ip.dst",
    "ip.len",
    "tcp.srcport",
    "tcp.dstport",
    "tcp.seq",
    "tcp.ack",
    "tcp.len",
]
FIELDS += ["tcp.analysis.retransmission"]
MANY_PACKETS = 10_000_000
CONNECTIONS = (10_000, 100_000, 300_000)
STORED_LIMIT_BYTES = 15_000_000
LIMIT_S = 60
"""Of one run of a program, by the clock: tcptrace takes minutes for 300,000 connections."""


@dataclasses.dataclass(frozen=True)
class Cost:
    """Medians of one thing done several times."""

    cpu_s: float
    wall_s: float
    peak_bytes: int = 0
    stopped: bool = False
    """It took longer than LIMIT_S."""


def ours(work: Callable[[], object], repetitions: int) -> Cost:
    """A call in this process."""
    cpu, wall = [], []
    for _ in range(repetitions):
        before, started = time.process_time(), time.perf_counter()
        result = work()
        cpu.append(time.process_time() - before)
        wall.append(time.perf_counter() - started)
        del result
    return Cost(statistics.median(cpu), statistics.median(wall))


STARTER = """
import os, signal, sys, time
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
null = [(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)]
started = time.perf_counter()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ, file_actions=null)
for number in (signal.SIGALRM, signal.SIGTERM):
    signal.signal(number, lambda *_: os.kill(process, signal.SIGKILL))
signal.alarm(int(sys.argv[1]))
_, status, usage = os.wait4(process, 0)
wall = time.perf_counter() - started
print(os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss)
"""
"""A small process that starts the command: what Linux calls the peak memory of a process begins with its starter's.
Python's bytecode is kept, as it is for every user (the variable would double the start-up of netwarp).
"""


def theirs(command: list[str], repetitions: int) -> Cost:
    """A whole process."""
    runs = []
    for _ in range(repetitions):
        starter = [sys.executable, "-S", "-c", STARTER, str(LIMIT_S), *command]
        with subprocess.Popen(starter, stdout=subprocess.PIPE, text=True) as process:
            try:
                out, _ = process.communicate()
            except BaseException:
                process.terminate()  # it ends the command
                raise
        status, *used = out.split()
        if int(status) == -signal.SIGKILL:
            return Cost(float(used[0]), LIMIT_S, stopped=True)
        if status != "0":
            raise SystemExit(f"{command[0]} ended with {status}")
        runs.append([float(word) for word in used])
    cpu, wall, peak = zip(*runs, strict=True)
    return Cost(statistics.median(cpu), statistics.median(wall), 1024 * int(max(peak)))


def line(name: str, units: int, cost: Cost, against: dict[str, Cost]) -> None:
    """One row: M/s by CPU and by the clock, and how many times each tool's rate on the same capture."""
    ratios = "".join(f"{tool.cpu_s / cost.cpu_s:>10.1f}x" for tool in against.values())
    rates = "".join(f"{units / seconds / 1e6:>9.2f} M/s" for seconds in (cost.cpu_s, cost.wall_s))
    print(f"  {name:<46}{1e3 * cost.cpu_s:>9.1f} ms{rates}{ratios}")


def tools_of(capture: Path, repetitions: int) -> dict[str, Cost]:
    """The times of tshark and tcptrace for it."""
    found = {}
    if find_executable("tshark"):
        fields = [word for field in FIELDS for word in ("-e", field)]
        found["tshark -T fields (10)"] = theirs(["tshark", "-n", "-r", str(capture), "-T", "fields", *fields], 3)
    if find_executable("tcptrace"):
        found["tcptrace -l"] = theirs(["tcptrace", "-l", str(capture)], repetitions)
    return found


def tcp(capture: Path, title: str, repetitions: int) -> None:
    """One table of a TCP capture."""
    read = read_captures([capture])
    packets, again = len(read.packets), int(read.packets["is_retransmission"].sum())
    flow = int(read.flow_paths["flow"][read.flow_paths["packets"].sum(axis=1).argmax()])
    del read
    tools = tools_of(capture, repetitions)
    print(f"\n{title}: {packets} packets, {capture.stat().st_size / 1e6:.1f} MB, {again} retransmissions")
    print(f"  {'':<46}{'CPU':>12}{'by CPU':>13}{'by clock':>13}" + "".join(f"{name.split()[0]:>11}" for name in tools))
    line("totals (retransmissions among them)", packets, ours(lambda: read_captures([capture], ()), repetitions), tools)
    line("totals and series, in constant memory", packets, ours(lambda: read_stream([capture]), repetitions), tools)
    line("all tables", packets, ours(lambda: read_captures([capture]), repetitions), tools)
    if importlib.util.find_spec("netwarp.captures.tcp"):
        from netwarp.captures.tcp import analyze_tcp

        # .totals: what analyze_tcp returns computes when it is asked
        wanted = ("segments", "blocks")
        cost = ours(lambda: analyze_tcp(read_captures([capture], wanted), flow).totals, repetitions)
        line("flow metrics, retransmissions why", packets, cost, tools)
    for name, cost in tools.items():
        line(name, packets, cost, tools)


def sctp(capture: Path, repetitions: int) -> None:
    """One table of an SCTP capture; tshark's ten fields of chunks beside it."""
    read = read_captures([capture])
    chunks, packets = len(read.chunks), len(read.packets)
    flow = int(read.flow_paths["flow"][read.flow_paths["packets"].sum(axis=1).argmax()])
    del read
    size = f"{capture.stat().st_size / 1e6:.1f} MB"
    print(f"\nSCTP, 100-byte messages: {chunks} chunks in {packets} packets, {size}; rates in chunks/s")
    line("totals", chunks, ours(lambda: read_captures([capture], ()), repetitions), {})
    line("all tables", chunks, ours(lambda: read_captures([capture]), repetitions), {})
    if importlib.util.find_spec("netwarp.captures.sctp"):
        from netwarp.captures.sctp import analyze_sctp

        cost = ours(lambda: analyze_sctp(read_captures([capture]), flow).totals, repetitions)
        line("all tables, flow metrics", chunks, cost, {})
    fields = ["frame.time_epoch", "ip.src", "ip.dst", "ip.len", "sctp.chunk_type", "sctp.data_tsn", "sctp.data_sid"]
    fields += ["sctp.data_ssn", "sctp.sack_cumulative_tsn_ack", "sctp.retransmission"]
    if find_executable("tshark"):
        command = [
            "tshark",
            "-n",
            "-r",
            str(capture),
            "-T",
            "fields",
            *(word for one in fields for word in ("-e", one)),
        ]
        line("tshark -T fields (10)", chunks, theirs(command, 1), {})


def whole_processes(captures: Captures, repetitions: int) -> None:
    """What a user waits for: the process from its start on, beside the other programs' and beside nothing to read."""
    print("\nWhole processes, output thrown away: CPU time and peak memory; and what of ours the core is")
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="bench-") as directory:
        empty = Path(directory) / "empty.pcap"
        empty.write_bytes(captures.tcp_short.read_bytes()[:24])
        files = [("an empty capture (start-up)", empty), ("one TCP connection", captures.tcp_short),
                 ("20 TCP connections", captures.tcp_twenty)]  # fmt: skip
        for count in CONNECTIONS:
            files.append((f"{count:,} connections of a SYN", Path(directory) / f"{count}.pcap"))
            make_syns(files[-1][1], count)
        for title, path in files:
            packets = int(read_captures([path], ()).sources["packets"][0])
            print(f"  {title}, {packets:,} packets")
            ours_alone = [sys.executable, "-m", "netwarp", "analyze", str(path)]
            commands = {"netwarp analyze": ours_alone, "netwarp analyze --json": [*ours_alone, "--json"]}
            if find_executable("tcptrace") and packets:
                commands["tcptrace -l"] = ["tcptrace", "-l", str(path)]
            if find_executable("tshark"):
                commands["tshark -z conv,tcp"] = ["tshark", "-n", "-q", "-r", str(path), "-z", "conv,tcp"]
            for name, command in commands.items():
                many = packets > 0 and (packets in CONNECTIONS or name.startswith("tshark"))
                cost = theirs(command, 1 if many else repetitions)
                if cost.stopped:
                    print(f"    {name:<26}stopped after {cost.wall_s:.0f} s ({cost.cpu_s:.1f} s of CPU time)")
                else:
                    print(f"    {name:<26}{cost.cpu_s:>9.2f} s{cost.peak_bytes / 1e6:>9.0f} MB")
            if packets:
                line("  the core: totals", packets, ours(core(path, ()), repetitions), {})
                line("  the core: all tables", packets, ours(core(path), repetitions), {})


def core(capture: Path, tables: Sequence[str] = ROW_TABLES) -> Callable[[], object]:
    """Reading it."""
    return lambda: read_captures([capture], tables)


CHILD = """
import sys, time
from netwarp.captures.stream import read_stream
before = time.process_time()
found = read_stream([sys.argv[1]])
spent = time.process_time() - before
totals = found.capture.flow_paths
print(int(found.capture.sources["packets"].sum()), int(totals["new_bytes"].sum()), len(found.capture.flows),
      sum(int(one.new_bytes.sum()) for one in found.flows.values()), spent,
      *(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""


def memory(capture: Path, packets_wanted: int) -> bool:
    """Totals and series of the capture and of many times the capture, each in a process of its own."""
    packets = int(read_captures([capture], ()).sources["packets"][0])
    print(f"\nMemory of totals and series ({capture.name}, repeated: other times, other ports)")
    told: list[list[float]] = []
    counts = [1, -(-packets_wanted // packets)]
    for times in counts:
        with tempfile.TemporaryDirectory(dir=BUILD, prefix="bench-") as directory:
            many = Path(directory) / "many.pcap"
            repeat(capture, many, times)
            done = subprocess.run([sys.executable, "-c", CHILD, many], check=True, capture_output=True, text=True)
        told.append([float(word) for word in done.stdout.split()])
        count, _, flows, _, spent, rss_kib = told[-1]
        print(
            f"  {int(count):>10} packets, {int(flows):>3} flows: peak RSS {rss_kib / 1024:>6.1f} MiB, "
            f"{count / spent / 1e6:.2f} M packets/s by CPU"
        )
    one, many_times = told
    right = all(many_times[at] == counts[1] * one[at] for at in (0, 1, 3)) and many_times[1] == many_times[3]
    if not right:
        print("the repeated capture's totals are not that many times the capture's", file=sys.stderr)
    return right


def stored(captures: Captures) -> bool:
    """What a run keeps of 100 MB in full-size packets, both ends' captures together."""
    print("\nStored of a 100 MB transfer in full-size packets (zstd, both ends), at most 15 MB:")
    for name, size in captures.stored_bytes.items():
        print(f"  {name.removesuffix('100mb'):<6}{size / 1e6:>8.2f} MB")
    return max(captures.stored_bytes.values()) <= STORED_LIMIT_BYTES


def main() -> int:
    """Print the tables; 1 if a result (not a rate) is not what it must be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=7, help="of each of ours and of tcptrace (tshark: 3)")
    parser.add_argument("--packets", type=int, default=MANY_PACKETS, help="of the repeated capture")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what is being measured ends too
    captures = make_captures(BUILD)
    print(f"{cpu_model()}, load {' '.join(f'{one:.2f}' for one in os.getloadavg())}; medians of {options.repetitions}")
    tcp(captures.tcp_short, "TCP, 128 bytes of each packet", options.repetitions)
    tcp(captures.tcp_full, "TCP, whole packets", options.repetitions)
    sctp(captures.sctp, options.repetitions)
    whole_processes(captures, options.repetitions)
    good = memory(captures.tcp_short, options.packets)
    return 0 if stored(captures) and good else 1


if __name__ == "__main__":
    sys.exit(main())
