"""Watches known regressions of net/: each patch of regressions/ undoes a published fix. Writes README.md's list.

    .venv/bin/python experiments/watch/regressions.py [--out DIR] [NAME...]

A kernel with a patch takes a minute to build with ccache, and what runs on it some minutes. What DIR holds already is
not run again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netwarp.core.checkout import CHECKOUT
from netwarp.core.metrics.catalogue import HEADLINE
from netwarp.core.numbers import percent
from netwarp.core.units import counted
from netwarp.present.comparison_words import amount

HERE = Path(__file__).parent
PAGE = HERE / "README.md"
SET = HERE / "regressions" / "set.toml"
WIDTH = 156
BEGIN, END = "<!-- regressions -->", "<!-- /regressions -->"


@dataclass(frozen=True, slots=True)
class Regression:
    """base, new: as of `netwarp kernel watch`. commits: what brought it, and what mended it; cell: the one that shows
    it among others that differ for other reasons ("": the first).
    """

    name: str
    new: str
    commits: str
    cell: str = ""
    base: str = "6.12"


REGRESSIONS = (
    Regression(
        "slow receive buffer", "tcp-slow-receive-buffer", "65c5287892e9, mended by aa251c84636c", "window growth"
    ),
    Regression("late acknowledgements", "tcp-delayed-ack", "mended by 4720852ed9af"),
    Regression("no probe after reordering", "tcp-late-probe", "df92c8394e6e, mended by 62d9f1a6945b"),
    Regression("ACK trains that are none", "tcp-hystart-train", "mended by 4e1fddc98d25"),
    Regression("a cookie that comes again", "7.3", "2f3dd6ec901f, not mended in 7.3.4", "sctp start"),
    Regression("full windows forgotten", "tcp-forgets-cwnd-limited", "ca8a22634381, mended by f4ce91ce12a7"),
)


def main() -> int:
    """Run what is not there, and write the list."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="patches, or 7.3 (default: all)")
    parser.add_argument("--out", type=Path, default=CHECKOUT / "build" / "regressions", metavar="DIR")
    args = parser.parse_args()
    items = []
    for each in REGRESSIONS:
        place = args.out / each.new
        if not (place / "watch.json").is_file() and (not args.names or each.new in args.names):
            watch(each, place)
        if (place / "watch.json").is_file():
            text = item(each, json.loads((place / "watch.json").read_text()))
            items.append(textwrap.fill(f"- {text}", WIDTH, subsequent_indent="  ", break_long_words=False))
    before, _, rest = PAGE.read_text().partition(BEGIN)
    listed = "\n".join(items)
    PAGE.write_text(f"{before}{BEGIN}\n{listed}\n{END}{rest.partition(END)[2]}")
    print(listed)
    return 0


def watch(each: Regression, place: Path) -> None:
    """Build and run."""
    patch = HERE / "regressions" / f"{each.new}.patch"
    new = f"{each.base}+{patch}" if patch.is_file() else each.new
    command: list[str | Path] = [
        CHECKOUT / ".venv/bin/netwarp",
        "kernel",
        "watch",
        each.base,
        new,
        "--set",
        SET,
        "--out",
        place,
    ]
    done = subprocess.run(command, check=False)
    if done.returncode > 1:
        raise SystemExit(done.returncode)


def item(each: Regression, said: dict[str, Any]) -> str:
    """What watch.json says of a regression."""
    cells = said["cells"]
    ran = counted(sum(said["numbers"].values()), "number")
    text = f"**{each.name}** (`{each.new}`; {each.commits}): "
    shown = next((cell for cell in cells if not each.cell or each.cell in cell["levels"].values()), None)
    if shown is None:
        return f"{text}not seen; none of {ran} moved."
    first, *others = shown["numbers"]
    head = next((one for one in others if one["metric"] in HEADLINE), None)
    numbers = " and ".join(map(change, [first] if head is None or first["metric"] in HEADLINE else [first, head]))
    moved = counted(said["numbers"]["changed"], "number")
    return (
        f"{text}{moved} moved in {counted(len(cells), 'cell')}. In *{' '.join(shown['levels'].values())}*, number "
        f"{shown['finding']} of the list, {numbers}; first packet that differs {shown['first_packet']}."
    )


def change(one: dict[str, Any]) -> str:
    """A number that moved."""
    relative = f" ({percent(one['relative'], signed=True)})" if one["relative"] is not None else ""
    return f"`{one['metric']}` from {amount(one['base'], one['unit'])} to {amount(one['new'], one['unit'])}{relative}"


if __name__ == "__main__":
    raise SystemExit(main())
