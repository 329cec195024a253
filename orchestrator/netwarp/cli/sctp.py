"""`netwarp sctp`: what is wrong with the settings of two SCTP ends, and which settings keep a budget."""

from __future__ import annotations

import argparse

from ..core.errors import SpecError
from ..core.lines import Line
from .output import print_json, print_lines, run_lines
from .places import new_file, new_folder


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "sctp check",
        help="run two SCTP ends, and say what is wrong with their settings",
        example="netwarp sctp check open5gs srsran-gnb --rtt '40 ms'",
        description="Runs two ends in virtual time: messages each way, lost INITs, outages, a path that dies, one way "
        "only, large packets lost. Says what is wrong, worst first, with the cells that show it (docs/signalling.md). "
        "A and B: a product of stack-profiles/ (open5gs, srsran-gnb, linux ...), its configuration file, or settings; "
        "open5gs,sack_delay=40ms is a product with another setting. A connects to B.",
    )
    parser.add_argument("a", metavar="A", help="product, file or key=value,...")
    parser.add_argument("b", metavar="B", help="likewise")
    parser.add_argument("--rtt", default="20 ms", help="between the two (default: %(default)s)")
    parser.add_argument("--rate", default="100 Mbit/s", help="of each path (default: %(default)s)")
    parser.add_argument("--loss", default="0", help="of each path (default: %(default)s)")
    parser.add_argument("--message", default="200 B", help="size of a message (default: %(default)s)")
    parser.add_argument("--paths", type=int, choices=(1, 2), default=1, help="default: 1")
    parser.add_argument(
        "--out", type=new_folder, metavar="DIR", help="run directory (default: results/sctp-check/<time>)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="of the cells")
    parser.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores)")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--junit", type=new_file, metavar="FILE", help="the findings as failed tests, too")
    parser.set_defaults(run=run_check)
    advise = commands.add_parser(
        "sctp advise",
        help="find settings of two SCTP ends that keep a budget, each run with the fault at its worst instant",
        example="netwarp sctp advise --back '2 s' --survive '20 s'",
        description="Enumerates settings of both ends, keeps those whose timers keep the budget (RFC 9260 6.3.3, 8.1, "
        "8.2, RFC 7829), and runs the nearest to Linux' own: outages whose repair falls at twelve instants, one "
        "of exactly --survive, with two paths also the failure of the one in use at twelve instants, and traffic "
        "without faults. Shows measured beside computed worst.",
    )
    advise.add_argument(
        "--back", default="1 s", help="from a repair, or a path's failure, to new data, at most (default: %(default)s)"
    )
    advise.add_argument(
        "--survive", default="30 s", help="an outage of all paths it must outlive (default: %(default)s)"
    )
    advise.add_argument("--needless", default="0.1 %", help="messages sent twice, at most (default: %(default)s)")
    advise.add_argument("--rtt", default="20 ms", help="between the two (default: %(default)s)")
    advise.add_argument("--paths", type=int, choices=(1, 2), default=1, help="default: 1")
    advise.add_argument(
        "--spare", metavar="TIME",
        help="with two paths: from the repair of one until data is back on it, at most (default: 60 s)",
    )  # fmt: skip
    advise.add_argument(
        "--out", type=new_folder, metavar="DIR", help="run directory (default: results/sctp-advise/<time>)"
    )
    advise.add_argument("--seed", type=int, metavar="N", help="of the cells")
    advise.add_argument("--jobs", type=int, metavar="N", help="cells at once (default: cores)")
    advise.add_argument("--json", action="store_true", help="print one JSON object")
    advise.set_defaults(run=run_advise)


def run_check(args: argparse.Namespace) -> int:
    """`netwarp sctp check`: 0 nothing is wrong, 1 something is."""
    from ..engine.conclusions import check_conclusion
    from ..engine.sctp_check import SctpNetwork, check_sctp
    from ..present.conclusion_words import conclusion_lines
    from .progress import TerminalProgress

    network = SctpNetwork(args.rtt, args.rate, args.loss, args.message, args.paths)
    with TerminalProgress() as progress:
        checked = check_sctp(
            args.a,
            args.b,
            network,
            out=args.out,
            seed=args.seed,
            jobs=args.jobs,
            progress=progress,
            arguments=args.typed,
        )
    if args.junit:
        checked.write_junit(args.junit)
    if args.json:
        print_json(checked.as_json())
    else:
        print_lines([*conclusion_lines(check_conclusion(checked)), Line(""), *run_lines(checked.run)])
    return 1 if checked.findings or not checked.run.complete else 0


def run_advise(args: argparse.Namespace) -> int:
    """`netwarp sctp advise`: 0 settings were found that keep the budget, 1 none."""
    from ..engine.conclusions import advice_conclusion
    from ..engine.sctp_advice import advise_sctp, contradiction
    from ..engine.sctp_bounds import SctpBudget
    from ..present.conclusion_words import conclusion_lines
    from .progress import TerminalProgress

    if args.spare is not None and args.paths == 1:
        raise SpecError("sctp advise: --spare is of two paths; add --paths 2, or leave it out")
    budget = SctpBudget.read(
        args.back, args.survive, args.needless, args.rtt, paths=args.paths, spare=args.spare or "60 s"
    )
    with TerminalProgress() as progress:
        advice = advise_sctp(
            budget, out=args.out, seed=args.seed, jobs=args.jobs, progress=progress, arguments=args.typed
        )
    if args.json:
        print_json(advice.as_json())
    elif advice.run is None:
        print_lines([Line("", f"no settings keep this budget by their timers: {contradiction(advice.budget)}")])
    else:
        print_lines([*conclusion_lines(advice_conclusion(advice)), Line(""), *run_lines(advice.run)])
    return 0 if any(each.keeps(budget) for each in advice.shown) else 1
