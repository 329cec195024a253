"""`netwarp sctp`: what is wrong with the settings of two SCTP ends, and which settings keep a budget."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..core.errors import SpecError
from ..core.numbers import in_short, percent
from ..core.units import hanging
from .output import print_json
from .places import new_file, new_folder

if TYPE_CHECKING:
    from ..engine.sctp_advice import SctpAdvice, Shown
    from ..engine.sctp_bounds import SctpBudget
    from ..engine.sctp_check import Finding, SctpCheck


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
    from ..engine.sctp_check import SctpNetwork, check_sctp
    from .progress import TerminalProgress

    network = SctpNetwork(args.rtt, args.rate, args.loss, args.message, args.paths)
    with TerminalProgress() as progress:
        checked = check_sctp(args.a, args.b, network, out=args.out, seed=args.seed, jobs=args.jobs, progress=progress)
    if args.junit:
        checked.write_junit(args.junit)
    if args.json:
        print_json(checked.as_json())
    else:
        print("\n".join(_lines(checked)))
    return 1 if checked.findings or not checked.run.complete else 0


def _lines(checked: SctpCheck) -> Iterator[str]:
    for name, side in (("A", checked.a), ("B", checked.b)):
        said = ", ".join(f"{key} {_word(value)}" for key, value in side.settings.items()) or "nothing is set"
        yield from hanging(f"{name}  ", f"{side.title}: {said}")
        if side.ignored:
            yield from hanging("   ", f"not looked at: {', '.join(side.ignored)}")
    yield ""
    yield "What is wrong, worst first" if checked.findings else "Nothing is wrong in these cells"
    for number, each in enumerate(checked.findings, 1):
        yield from _finding(f"{number:>3}. ", each)
    if checked.good:
        yield ""
        yield "What is well"
        for each in checked.good:
            yield from hanging("  \u2022 ", each.text)
    yield ""
    yield str(checked.run.path)


def _finding(lead: str, finding: Finding) -> Iterator[str]:
    yield from hanging(lead, finding.text)
    if finding.remedy:
        yield from hanging("     \u2192 ", finding.remedy)
    shown = ", ".join(finding.cells[:3]) + (f" and {len(finding.cells) - 3} more" if len(finding.cells) > 3 else "")
    yield from hanging("     cell: ", shown)


def run_advise(args: argparse.Namespace) -> int:
    """`netwarp sctp advise`: 0 settings were found that keep the budget, 1 none."""
    from ..engine.sctp_advice import advise_sctp
    from ..engine.sctp_bounds import SctpBudget
    from .progress import TerminalProgress

    if args.spare is not None and args.paths == 1:
        raise SpecError("sctp advise: --spare is of two paths; add --paths 2, or leave it out")
    budget = SctpBudget.read(
        args.back, args.survive, args.needless, args.rtt, paths=args.paths, spare=args.spare or "60 s"
    )
    with TerminalProgress() as progress:
        advice = advise_sctp(budget, out=args.out, seed=args.seed, jobs=args.jobs, progress=progress)
    if args.json:
        print_json(advice.as_json())
    else:
        print("\n".join(_advice_lines(advice)))
    return 0 if any(each.keeps(budget) for each in advice.shown) else 1


def _advice_lines(advice: SctpAdvice) -> Iterator[str]:
    if advice.run is None:
        from ..engine.sctp_advice import contradiction

        said = f"no settings keep this budget by their timers: {contradiction(advice.budget)}"
        yield from hanging("", said)
        return
    number = len(advice.shown)
    yield f"{advice.considered} settings keep the budget by their timers; {number} were run, both ends alike"
    for each in advice.shown:
        yield ""
        yield from _shown_lines(each, advice.budget)
    yield ""
    yield str(advice.run.path)


def _word(value: object) -> str:
    """A setting's value as a spec has it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _shown_lines(shown: Shown, budget: SctpBudget) -> Iterator[str]:
    options = ", ".join(f"{key} = {_word(value)}" for key, value in shown.settings.options(budget.paths).items())
    yield from hanging("", f"{'keeps it' if shown.keeps(budget) else 'does not keep it'}: {options}")
    if budget.paths > 1:
        text = _worst(shown.moves_ns, shown.computed_moves_ns)
        yield from hanging("  \u2022 ", f"new data on the other path after the one in use fails: {text}")
        text = _worst(shown.spare_ns, shown.computed_spare_ns)
        yield from hanging("  \u2022 ", f"data on a path again after its repair: {text}")
    all_ = " of both paths" if budget.paths > 1 else ""
    yield from hanging("  \u2022 ", f"new data after a repair{all_}: {_worst(shown.back_ns, shown.computed_back_ns)}")
    from ..engine.sctp_advice import limit_text

    survived = f"{shown.outages - shown.lost} of {shown.outages} outages survived"
    limit = limit_text(shown.survives_ns, up=False)
    yield from hanging("  \u2022 ", f"{survived}; computed: any outage{all_} shorter than {limit}")
    needless = "unknown" if shown.needless is None else percent(shown.needless, 2)
    yield from hanging("  \u2022 ", f"messages sent twice without need: {needless}")


def _worst(measured_ns: float | None, computed_ns: float | None) -> str:
    """Measured beside computed."""
    if measured_ns is None or computed_ns is None:
        return "unknown (a cell did not complete, or nothing came)"
    measured, computed = (in_short(each / 1e9, "s") for each in (measured_ns, computed_ns))
    if measured_ns > computed_ns:
        return f"measured at worst {measured}, more than the {computed} that were computed, so the bound does not hold"
    gap = percent((computed_ns - measured_ns) / computed_ns, 2)
    return f"measured at worst {measured}, computed at worst {computed} (gap {gap})"
