"""`netwarp selftest`: the kernel's own tests in guests on the virtual clock, reported as KTAP."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from ..core.errors import SpecError
from ..core.units import QuantityError, parse_quantity
from ..engine.packetdrill import PREFIX, PacketdrillRun, run_packetdrill
from ..engine.selftests import DEFAULT, SelftestRun, run_selftests
from ..selftests.guest import VIRTUAL_LIMIT_S, Result
from ..selftests.nipa import result_file
from ..selftests.packetdrill.counts import rows as script_rows
from ..selftests.packetdrill.counts import update_table
from ..selftests.table import rows, update_page
from ..selftests.tap import head, not_passed, report
from .kernel import Shown
from .nipa import add_nipa_arguments, telling_nipa, write_nipa
from .places import new_file, new_folder


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare it."""
    parser = commands.add_parser("selftest", example="netwarp selftest net/mptcp:simult_flows.sh")
    parser.add_argument(
        "tests",
        nargs="*",
        metavar="COLLECTION:PROGRAM",
        help="e.g. net/mptcp:simult_flows.sh (default: a set of them); scripts: 'packetdrill:*', packetdrill:./own.pkt",
    )
    parser.add_argument("--source", type=Path, metavar="DIR|TARBALL|PACKAGE", help="as of `netwarp kernel build`")
    parser.add_argument(
        "--kernel",
        metavar="RELEASE|KEY",
        help="a kernel that is built, instead of one with the options the tests ask for",
    )
    parser.add_argument(
        "--debug", action="store_true", help="on a kernel with checks for memory, locks and RCU (kernel/debug.config)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="guests at once (default: one per core)")
    parser.add_argument(
        "--seed", type=int, metavar="N", default=1, help="of all that is random in the guests (default: 1)"
    )
    parser.add_argument("--wall-limit", type=float, default=600.0, metavar="S", help="of each test (default: 600)")
    parser.add_argument(
        "--virtual-limit", type=int, default=VIRTUAL_LIMIT_S, metavar="S", help=f"(default: {VIRTUAL_LIMIT_S})"
    )
    parser.add_argument(
        "--tolerance",
        metavar="TIME",
        help='of packetdrill\'s scripts: "0 us", "1 ms", ... (default: each script\'s own, as packetdrill has it)',
    )
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="keep each test's output there (default: nowhere)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout instead of KTAP")
    parser.add_argument("--quiet", action="store_true", help="KTAP without what the tests print")
    parser.add_argument(
        "--table", type=new_file, metavar="FILE", help="put the results into the table of this page (Markdown)"
    )
    add_nipa_arguments(parser, "selftests.md", "netwarp-uml")
    parser.set_defaults(run=run_selftest)


def run_selftest(args: argparse.Namespace) -> int:
    """`netwarp selftest`; 0 if no test failed."""
    if args.debug and args.kernel:
        raise SpecError(f"--debug builds a kernel, and --kernel {args.kernel} names one: leave one of them out")
    with telling_nipa(args):
        if args.out is not None:
            return _run(args, args.out)
        with tempfile.TemporaryDirectory(prefix="netwarp-selftest-") as folder:
            Path(folder).chmod(0o711)
            return _run(args, Path(folder) / "run")


def _print_head(args: argparse.Namespace, count: int) -> None:
    if not args.json:
        print("\n".join(head(count)), flush=True)


def _print_result(args: argparse.Namespace, number: int, result: Result) -> None:
    if not args.json:
        output = () if args.quiet else result.output.splitlines()
        print("\n".join(report(number, result.test.name, result.verdict, _note(result), output)), flush=True)


def _print_not_passed(results: Sequence[Result]) -> None:
    for line in not_passed((each.test.name, each.verdict, each.note) for each in results):
        print(line)


def _run(args: argparse.Namespace, out: Path) -> int:
    names = tuple(args.tests or DEFAULT)
    scripts = [name.startswith(PREFIX) for name in names]
    if all(scripts):
        return _run_scripts(args, names, out)
    if any(scripts) or args.tolerance is not None:
        raise SpecError(
            "packetdrill's scripts run on another kernel than programs do: name them in a call of their own, "
            "for example: netwarp selftest 'packetdrill:*' --tolerance '1 ms'"
        )
    _print_head(args, len(names))
    with Shown() as shown:
        done = run_selftests(
            names, source=args.source, kernel=args.kernel, debug=args.debug, jobs=args.jobs, seed=args.seed,
            wall_limit_s=args.wall_limit,
            virtual_limit_s=args.virtual_limit, out=out, building=shown.update, finished=partial(_print_result, args),
        )  # fmt: skip
    for program, why in done.unbuilt.items():
        print(f"netwarp: {program} cannot be built: {why}", file=sys.stderr)
    write_nipa(args, partial(result_file, done.results))
    if args.table is not None:
        release = done.kernel.release
        update_page(args.table, rows(done.results, release if args.kernel else f"{release} with the tests' options"))
    if args.json:
        print(json.dumps(_as_json(done)))
    else:
        _print_not_passed(done.results)
    return int(any(result.verdict == "fail" for result in done.results))


def _run_scripts(args: argparse.Namespace, names: tuple[str, ...], out: Path) -> int:
    try:
        tolerance_us = None if args.tolerance is None else int(parse_quantity(args.tolerance, "time").value) // 1000
    except QuantityError as error:
        raise SpecError(f"--tolerance: {error}") from error

    with Shown() as shown:
        done = run_packetdrill(
            names, source=args.source, kernel=args.kernel, debug=args.debug, jobs=args.jobs, seed=args.seed,
            wall_limit_s=args.wall_limit,
            tolerance_us=tolerance_us, out=out, building=shown.update, planned=partial(_print_head, args),
            finished=partial(_print_result, args),
        )  # fmt: skip
    write_nipa(args, partial(result_file, done.results))
    if args.table is not None:
        update_table(args.table, script_rows(done.scripts, done.kernel.release), done.kernel.release)
    counts = done.counts
    if args.json:
        print(json.dumps(_scripts_as_json(done)))
    else:
        _print_not_passed(done.results)
        print(
            f"# {counts.scripts} scripts, {counts.cases} cases: {counts.own} hold at their own tolerance, "
            f"{counts.within_1ms} at 1 ms, {counts.exact} at 0; {counts.failed} failed, {counts.skipped} skipped"
        )
    return int(any(result.verdict == "fail" for result in done.results))


def _scripts_as_json(done: PacketdrillRun) -> dict[str, object]:
    return {
        "kernel": {"release": done.kernel.release, "sha256": done.kernel.sha256, "source": done.kernel.source},
        "counts": dataclasses.asdict(done.counts),
        "tests": [
            {
                "test": f"{PREFIX}{script.name}",
                "verdict": script.verdict,
                "note": script.reason,
                "cases": [
                    {
                        "case": case.version,
                        "verdict": case.verdict,
                        "note": case.reason,
                        "needs_us": case.needs_us,
                        "own_tolerance": case.own,
                        "within_1ms": case.within_1ms,
                        "exact": case.exact,
                        "virtual_s": case.virtual_s,
                        "wall_s": round(case.wall_s, 3),
                    }
                    for case in script.cases
                ],
            }
            for script in done.scripts
        ],
    }


def _note(result: Result) -> str:
    times = f"wall {result.wall_s:.1f} s"
    if result.virtual_s is not None:
        times = f"virtual {result.virtual_s:.1f} s, {times}"
    return f"{result.note} ({times})" if result.note else times


def _as_json(done: SelftestRun) -> dict[str, object]:
    return {
        "kernel": {"release": done.kernel.release, "sha256": done.kernel.sha256, "source": done.kernel.source},
        "unbuilt": done.unbuilt,
        "tests": [
            {
                "test": result.test.name,
                "verdict": result.verdict,
                "status": result.status,
                "note": result.note,
                "virtual_s": result.virtual_s,
                "wall_s": round(result.wall_s, 3),
                "cases": [[case.name, case.verdict, case.note] for case in result.cases],
            }
            for result in done.results
        ],
    }
