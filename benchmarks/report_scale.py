"""Tables, summary and report of many cells: seconds, memory, and what a browser needs to open the report.

    PYTHONPATH=tests .venv/bin/python benchmarks/report_scale.py [--cells 10000] [--metrics 90] [--folder DIR]
                                                                 [--no-report] [--pictures DIR] [--real]

Cells are planned from a spec of tests/support/report_kit.py; what a finished cell leaves is made up and written,
then the functions of the engine run as for a real run: plan written and read, tables, report. Each step is a process of
its own, so that its peak of memory is its own. CPU seconds, because others may use the machine; the
browser's are wall, with its CPU seconds beside them.

With --real the cells are run: 5 virtual seconds each, half of TCP and half of SCTP (the spec of scale.py). A few in
10,000 do not complete: where two packets of SCTP's set-up are lost, it takes longer than the cell.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import netwarp
from netwarp.cli.summary import print_summary
from netwarp.core.types import CellOutcome, Check, Measurement, Outcome
from netwarp.engine.analysis import tabulate
from netwarp.engine.run_directory import open_run
from netwarp.store.plan_file import read_plan, write_plan
from netwarp.store.run_dir import RunDir
from scale import SPEC
from support import report_kit
from support.chromium import Browser, chromium, find_chromium

OPENED = (
    "(() => { const load = performance.getEntriesByType('navigation')[0];"
    " const paint = performance.getEntriesByType('paint').find((one) => one.name === 'first-contentful-paint');"
    " return [paint ? paint.startTime / 1000 : NaN, load.loadEventEnd / 1000, netwarp.cells.count,"
    " document.querySelectorAll('*').length]; })()"
)
PHONE, DESKTOP = (390, 844), (1280, 900)


def main() -> int:
    """Run the steps, each in a process of its own; 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--metrics", type=int, default=90, help="measurements of a cell (choi2009: about 90)")
    parser.add_argument("--folder", type=Path, help="where to write the run; kept (default: removed at the end)")
    parser.add_argument("--no-report", action="store_true", help="plan and tables only")
    parser.add_argument("--pictures", type=Path, help="write screenshots there")
    parser.add_argument("--real", action="store_true", help="run the cells, instead of making up what they leave")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.step:
        STEPS[args.step](args)
        return 0
    with tempfile.TemporaryDirectory(prefix="netwarp-scale-") as scratch:
        folder = args.folder or Path(scratch)
        made_up = f", {args.metrics} measurements each"
        steps = ["run"] if args.real else ["plan", "finish", "tables"]
        steps += ["summary"]
        steps += [] if args.no_report else ["report", "browser"]
        print(f"{args.cells} cells{'' if args.real else made_up}; load {os.getloadavg()[0]:.1f}", flush=True)
        for step in steps:
            words = [sys.executable, __file__, "--step", step, "--cells", str(args.cells), "--folder", str(folder),
                     "--metrics", str(args.metrics)]  # fmt: skip
            words += ["--pictures", str(args.pictures)] if args.pictures else []
            words += ["--real"] if args.real else []
            if subprocess.run(words, check=False).returncode:
                return 1
    return 0


def said(what: str, started: float, more: str = "") -> None:
    """Print a step's CPU seconds since it started, the process' peak of memory, and more."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    print(f"{what:<26}{time.process_time() - started:>8.1f} s CPU {peak:>7.0f} MB peak  {more}", flush=True)


def run(args: argparse.Namespace) -> None:
    """Run the cells on all cores, and write their tables."""
    args.folder.mkdir(parents=True, exist_ok=True)
    spec = args.folder / "spec.toml"
    spec.write_text(SPEC.replace("DURATION", "5 s"))
    started, wall, before = time.process_time(), time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    made = netwarp.run(spec, repetitions=args.cells // 2, out=args.folder / "run", report=False)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cells_s = used.ru_utime + used.ru_stime - before.ru_utime - before.ru_stime
    wall = time.monotonic() - wall
    size = sum(path.stat().st_size for path in made.path.rglob("*") if path.is_file())
    ended = ", ".join(f"{count} {outcome}" for outcome, count in made.outcomes.items() if count)
    below = f"workers and guests {cells_s:.0f} s CPU"
    said("run, tables", started, f"{ended}, {wall:.0f} s of wall; {below}; {size / 1e6:.0f} MB")


def plan(args: argparse.Namespace) -> None:
    """Plan the cells and write plan.json."""
    started = time.process_time()
    more = '[factor.rtt]\nlevels = ["10 ms", "50 ms", "100 ms", "200 ms", "1000 ms"]\n'
    text = report_kit.spec_text(loss="1 %", more=more, extra=', "rtt"', where='where = { rtt = "200 ms" }')
    spec = args.folder / "spec"
    once = len(report_kit.plan_of(text + report_kit.KINDS, spec).cells)
    made = report_kit.plan_of(text + report_kit.KINDS, spec, repetitions=max(1, args.cells // once))
    run = RunDir(args.folder / "run")
    write_plan(run, made)
    said("planned", started, f"{len(made.cells)} cells, plan.json {run.plan.stat().st_size / 1e6:.0f} MB")


def finish(args: argparse.Namespace) -> None:
    """Write what finished cells leave, with made-up numbers; not measured."""
    run = RunDir(args.folder / "run")
    made = read_plan(run)
    manifest = report_kit.MANIFEST | {"spec": made.name, "seed": made.seed, "repetitions": made.repetitions}
    report_kit.put(run.manifest, manifest)
    outcome = CellOutcome(Outcome.COMPLETED, "", 100.5, 0.4)
    for cell in made.cells:
        name = cell.id  # a hash of the whole cell: made once
        directory = run.cell(name)
        rows = report_kit.cell_measurements(cell)
        rows += [Measurement(name, "ftp", f"more_{n}_s", cell.seed + n / 7, "s") for n in range(args.metrics)]
        if args.no_report:
            report_kit.put(directory.outcome, outcome)
            report_kit.put(directory.checks, [Check("made up", True, "")])
        else:
            report_kit.write_cell(run, cell, outcome)
        report_kit.put(directory.measurements, rows[: args.metrics])


def tables(args: argparse.Namespace) -> None:
    """Write tables/ from the cells' derived files."""
    started = time.process_time()
    run = RunDir(args.folder / "run")
    tabulate(read_plan(run), run)
    size = sum(path.stat().st_size for path in run.tables.glob("*.csv"))
    said("tables and claims written", started, f"{size / 1e6:.0f} MB")


def summary(args: argparse.Namespace) -> None:
    """Print the summary that ends a run, from a run directory alone."""
    started = time.process_time()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print_summary(open_run(args.folder / "run"))
    said("summary", started, f"{len(text.getvalue().splitlines())} lines")


def report(args: argparse.Namespace) -> None:
    """Write report/ from tables and derived files."""
    started, wall = time.process_time(), time.monotonic()
    page = netwarp.report(args.folder / "run")
    size = page.stat().st_size / 1e6
    said("report written", started, f"{time.monotonic() - wall:.0f} s of wall, index.html {size:.1f} MB")


def browser(args: argparse.Namespace) -> None:
    """Open the report in Chromium, at the size of a phone and of a desktop; search and sort its list."""
    executable = find_chromium()
    if executable is None:
        sys.exit("no Chromium: apt-get install chromium")
    address = (args.folder / "run" / "report" / "index.html").as_uri()
    for name, (width, height) in (("phone", PHONE), ("desktop", DESKTOP)):
        with chromium(executable) as running:
            page = running.page()
            page.emulate(width=width, height=height, mobile=name == "phone")
            empty, before = memory_mb(running), cpu_s(running)
            page.open(address)
            paint, load, cells, elements = page.evaluate(OPENED)
            opened, after = memory_mb(running), cpu_s(running)
            heap = page.evaluate("performance.memory.usedJSHeapSize") / 1e6
            print(
                f"opened on a {name:<11} painted after {paint:.2f} s, loaded after {load:.2f} s of wall: {cells} cells,"
                f" CPU of the tab {after[0] - before[0]:.2f} s, of all of the browser {after[1] - before[1]:.2f} s;"
                f" {elements} elements, JS heap {heap:.0f} MB, tab {opened[0]:.0f} MB, all of the browser"
                f" +{opened[1] - empty[1]:.0f} MB on {empty[1]:.0f} MB when empty (PSS)",
                flush=True,
            )
            took = page.evaluate(
                "(() => { const start = performance.now(), form = document.getElementById('cell-filters');"
                " form.elements.text.value = WORDS; form.dispatchEvent(new Event('input'));"
                " document.querySelectorAll('#cell-table thead button')[4].click();"
                " return [performance.now() - start, document.getElementById('cell-count').textContent]; })()".replace(
                    "WORDS", "'sctp'" if args.real else "'rfc4960 20'"
                )
            )
            print(f"  search and sort: {took[0]:.0f} ms, {took[1]}; tab {memory_mb(running)[0]:.0f} MB")
            if args.pictures:
                args.pictures.mkdir(parents=True, exist_ok=True)
                page.evaluate("document.getElementById('cells').scrollIntoView({behavior: 'instant'})")
                page.screenshot(args.pictures / f"{name}-list.png")
                page.evaluate("window.scrollTo({top: 0, behavior: 'instant'})")
                page.screenshot(args.pictures / f"{name}-top.png")
            if page.problems:
                sys.exit(json.dumps(page.problems))


def memory_mb(running: Browser) -> tuple[float, float]:
    """Memory of the largest renderer, and of all processes: what is private, and their part of what is shared."""
    tab = whole = 0.0
    for pid in descendants(running.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        size = next((int(line.split()[1]) * 1024 / 1e6 for line in lines if line.startswith("Pss:")), 0.0)
        whole += size
        tab = max(tab, size) if b"--type=renderer" in command else tab
    return tab, whole


def cpu_s(running: Browser) -> tuple[float, float]:
    """CPU seconds of the renderer that used most, and of all processes of the browser that live."""
    tab = whole = 0.0
    for pid in descendants(running.pid):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        whole += used
        tab = max(tab, used) if b"--type=renderer" in command else tab
    return tab, whole


def descendants(pid: int) -> list[int]:
    """A process and all below it."""
    try:
        children = [
            Path(f"/proc/{pid}/task/{thread}/children").read_text() for thread in os.listdir(f"/proc/{pid}/task")
        ]
    except OSError:
        return []
    return [pid, *(one for text in children for child in text.split() for one in descendants(int(child)))]


STEPS = {
    "run": run,
    "plan": plan,
    "finish": finish,
    "tables": tables,
    "summary": summary,
    "report": report,
    "browser": browser,
}

if __name__ == "__main__":
    sys.exit(main())
