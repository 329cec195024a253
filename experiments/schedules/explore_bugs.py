"""Explores a kernel in which bugs can be switched on (switched_bugs/), and says which are found, by which cell.

    .venv/bin/python experiments/schedules/explore_bugs.py --group sctp --cells 400 [--plain] [--seed N] [--out DIR]

All bugs of a protocol are on at once. The smallest schedule of each finding is then run without any, and with each one
alone: what shows without is no bug of these, and what shows with one alone is that one. Found bugs are switched off,
and the rest is explored again, until nothing is found.
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
GROUPS: dict[str, tuple[list[int], list[str]]] = {
    "reneging": ([0, 1, 2, 3, 4, 8], ["sctp"]),
    "sctp": ([0, 1, 2, 3, 4, 5, 8, 9, 11], ["sctp", "sctp2"]),
    "tcp": ([6, 7], ["tcp"]),
    "mptcp": ([10], ["mptcp2"]),
}
"""Group -> its bugs (bits of the switch), and the levels of the factor `variant` that are explored."""
SMALL = {"flow.f.receiver.rcvbuf": '"4 KiB"', "flow.f.message_size": "20 B"}
"""Roots of the group `reneging`: its bugs need a receiver that is short of memory."""


def main() -> int:
    """Explore, and attribute."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--group", choices=GROUPS, default="sctp")
    parser.add_argument("--without", type=int, action="append", default=[], metavar="BIT", help="leave it off")
    parser.add_argument("--cells", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "explore-bugs")
    args = parser.parse_args()
    every, variants = GROUPS[args.group]
    bits = [bit for bit in every if bit not in args.without]
    sets = SMALL if args.group == "reneging" else {}
    found: dict[int, str] = {}
    for number in range(args.rounds):
        left = [bit for bit in bits if bit not in found]
        place = args.out / f"{args.group}-{'plain' if args.plain else 'drawn'}-{args.seed}-{number}"
        result = search(left, variants, sets, args, place)
        say(f"round {number + 1}, bugs {left}: {result['cells']} cells, {len(result['findings'])} findings")
        new = attribute(result, place, left, variants, sets)
        found |= new
        if args.plain or not new or len(found) == len(bits):
            break
    say(f"{args.group}: found {sorted(found)} of {bits}")
    for bit, text in sorted(found.items()):
        say(f"  {bit}: {text}")
    return 0


def search(
    bits: list[int], variants: list[str], sets: dict[str, str], args: argparse.Namespace, place: Path
) -> dict[str, Any]:
    """An exploration with these bugs on, unless there is one."""
    if not (place / "explore.json").exists():
        run(variants, bits, sets, place, cells=args.cells, seed=args.seed + len(bits), plain=args.plain, jobs=args.jobs)
    told: dict[str, Any] = json.loads((place / "explore.json").read_bytes())
    return told


def attribute(
    result: dict[str, Any], place: Path, bits: list[int], variants: list[str], sets: dict[str, str]
) -> dict[int, str]:
    """Bug -> the finding that shows it alone."""
    if not result["findings"]:
        return {}
    smallest = place / "smallest"
    smallest.mkdir(exist_ok=True)
    (smallest / "explore.json").write_text(json.dumps(result | {"corpus": []}))
    shown = {bit: alone(smallest, [] if bit is None else [bit], variants, sets, place) for bit in (None, *bits)}
    found: dict[int, str] = {}
    for finding in result["findings"]:
        key = (finding["kind"], finding["mark"])
        by = [bit for bit, marks in shown.items() if key in marks]
        names = ", ".join("without any" if bit is None else str(bit) for bit in by) or "several together"
        say(f"  {finding['kind']}, cell {finding['first_at']}: {finding['text'][:100]}")
        say(f"    {finding['schedule'][:200]}; shown by: {names}")
        if None not in by:
            found |= {bit: f"{finding['kind']}, cell {finding['first_at']}" for bit in by if bit is not None}
    return found


def alone(
    smallest: Path, bits: list[int], variants: list[str], sets: dict[str, str], place: Path
) -> set[tuple[str, str]]:
    """What the smallest schedules show with these bugs alone."""
    out = place / f"alone-{'-'.join(map(str, bits)) or 'none'}"
    if not (out / "explore.json").exists():
        run(variants, bits, sets, out, again=smallest, small=False)
    told = json.loads((out / "explore.json").read_bytes())
    return {(each["kind"], each["mark"]) for each in told["findings"]}


def run(variants: list[str], bits: list[int], sets: dict[str, str], out: Path, **options: Any) -> None:
    """An exploration with these bugs on."""
    explore(
        "schedules", files=FILES, kernel=KERNEL, only=["join" if variants == ["mptcp2"] else "handshake", "transfer"],
        where={"variant": variants}, sets={**sets, SWITCH: switched(bits)}, out=out,
        progress=lambda event: say(event.text) if isinstance(event, Notice) else None, **options,
    )  # fmt: skip


def switched(bits: list[int]) -> str:
    """The value of the switch, as TOML."""
    return f'"{sum(1 << bit for bit in bits)}"'


def say(text: str) -> None:
    """A line on stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
