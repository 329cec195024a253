"""Explores a kernel in which bugs can be switched on (switched_bugs/), and says which are found, by which cell.

    .venv/bin/python experiments/schedules/explore_bugs.py --group sctp --cells 400 [--plain] [--seed N] [--out DIR]

First the roots (experiments/roots) run with no bug, and with each alone: what shows with one and not without is found
by a root. Then the other bugs are switched on together and explored. The smallest schedule of each finding runs without
any, and with each one alone. Found bugs are switched off, and the rest is explored again, until nothing is found.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from netwarp.core.checkout import CHECKOUT
from netwarp.engine.events import Notice
from netwarp.engine.explore import explore

HERE = Path(__file__).parent
FILES = ["net/sctp/*.c", "net/ipv4/tcp*.c", "net/mptcp/*.c"]
KERNEL = "6.12+gcov-sctp-ipv4-tcp-mptcp+switched-bugs"
SWITCH = 'node.a.sysctl."net.planted.bugs"'
GROUPS: dict[str, list[int]] = {"sctp": [0, 1, 2, 3, 4, 5, 8, 9, 11], "tcp": [6, 7], "mptcp": [10]}
"""Protocol -> its bugs (bits of the switch)."""
Mark = tuple[str, str]


def main() -> int:
    """Run the roots, explore, and attribute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, default="sctp")
    parser.add_argument("--cells", type=int, default=400, help="of each round")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "explore-bugs")
    args = parser.parse_args()
    bits = GROUPS[args.group]
    found: dict[int, str] = {}
    without = marks(roots([], args))
    for bit in bits:
        told = roots([bit], args)
        new = {
            (each["kind"], each["mark"]): each
            for each in told["findings"]
            if (each["kind"], each["mark"]) not in without
        }
        if new:
            found[bit] = "; ".join(f"{kind}, root {name_of(each, told)}" for (kind, _), each in new.items())
            say(f"bug {bit}: {found[bit]}")
    say(f"{args.group}: the roots alone show {sorted(found)} of {bits}")
    for number in range(args.rounds):
        left = [bit for bit in bits if bit not in found]
        if not left:
            break
        place = args.out / f"{args.group}-{'plain' if args.plain else 'drawn'}-{args.seed}-{number}"
        told = once(place, left, args, cells=args.cells, seed=args.seed + number, plain=args.plain, jobs=args.jobs)
        say(f"round {number + 1}, bugs {left}: {told['cells']} cells, {len(told['findings'])} findings")
        new_ones = attribute(told, place, left, args)
        found |= new_ones
        if args.plain or not new_ones:
            break
    say(f"{args.group}: found {sorted(found)} of {bits}")
    for bit, text in sorted(found.items()):
        say(f"  {bit}: {text}")
    return 0


def roots(bits: list[int], args: argparse.Namespace) -> dict[str, Any]:
    """The roots with these bugs."""
    place = args.out / f"{args.group}-roots-{'-'.join(map(str, bits)) or 'none'}"
    return once(place, bits, args, cells=1, small=False, jobs=args.jobs)


def marks(told: dict[str, Any]) -> set[Mark]:
    """What was found, whichever cell shows it."""
    return {(each["kind"], each["mark"]) for each in told["findings"]}


def name_of(finding: dict[str, Any], told: dict[str, Any]) -> str:
    """The cell of a root."""
    return next((each["cell"] for each in told["corpus"] if each["root"] == finding["root"]), "?")


def attribute(told: dict[str, Any], place: Path, bits: list[int], args: argparse.Namespace) -> dict[int, str]:
    """Bug -> the finding that shows it alone."""
    if not told["findings"]:
        return {}
    smallest = place / "smallest"
    smallest.mkdir(exist_ok=True)
    (smallest / "explore.json").write_text(json.dumps(told | {"corpus": []}))
    shown = {
        bit: marks(once(place / f"alone-{bit}", [] if bit is None else [bit], args, again=smallest, small=False))
        for bit in (None, *bits)
    }
    found: dict[int, str] = {}
    for finding in told["findings"]:
        by = [bit for bit, those in shown.items() if (finding["kind"], finding["mark"]) in those]
        names = ", ".join("without any" if bit is None else str(bit) for bit in by) or "several together"
        say(f"  {finding['kind']}, cell {finding['first_at']}: {finding['text'][:100]}")
        say(f"    {finding['schedule'][:200]}; shown by: {names}")
        if None not in by:
            found |= {bit: f"{finding['kind']}, cell {finding['first_at']}" for bit in by if bit is not None}
    return found


def once(place: Path, bits: list[int], args: argparse.Namespace, **options: Any) -> dict[str, Any]:
    """An exploration of the group's roots with these bugs on, unless there is one."""
    if not (place / "explore.json").exists():
        explore(
            "roots", files=FILES, kernel=KERNEL, only=["common", args.group], where={"protocol": [args.group]},
            sets={SWITCH: f'"{sum(1 << bit for bit in bits)}"'}, out=place,
            progress=lambda event: say(event.text) if isinstance(event, Notice) else None, **options,
        )  # fmt: skip
    told: dict[str, Any] = json.loads((place / "explore.json").read_bytes())
    return told


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
