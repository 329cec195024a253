"""Measures how often `netwarp explain --what-if` holds the truth (docs/signalling.md).

Draws cells as blind_settings.py does (settings, network, traffic, an outage), runs each twice in virtual time, as drawn
and with one drawn change, and asks of the first one's captures what would have been: the second is the truth. Losses
are at drawn instants, since those of a rate would be others with the change; traffic without gaps is left out.

    .venv/bin/python benchmarks/blind_what_if.py --cells 30 --seed 1 [--out DIR]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import netwarp
from blind_settings import drawn_sctp, spec
from netwarp.captures import read_captures
from netwarp.captures.sctp.association import Association
from netwarp.captures.sctp.event_match import WITHIN_NS, WITHIN_RATIO
from netwarp.captures.sctp.replay_inputs import END_NAMES
from netwarp.captures.sctp.stalls import OPEN, AssociationCourse, association_course
from netwarp.core.errors import CaptureError, SpecError
from netwarp.engine.what_if import WhatIf

ROLES = ("sender", "receiver")
CHANGES = {
    ("a", "rto_min"): ("100 ms", "200 ms", "300 ms", "500 ms", "1 s"),
    ("a", "rto_max"): ("1 s", "2 s", "5 s", "60 s"),
    ("a", "association_max_retrans"): (2, 4, 10, 20),
    ("a", "pf_retrans"): (0, 1, 3),
    ("b", "sack_delay"): ("20 ms", "100 ms", "300 ms"),
}
"""Of the drawn change: end and setting, and its values."""
TIGHT = 1.5
"""A range is tight if its upper end is at most so many times its lower end."""


@dataclasses.dataclass(frozen=True)
class Draw:
    """A cell, the change that is asked, and whether both ends' captures are given (else a's)."""

    level: dict[str, Any]
    change: tuple[str, str, object]
    both: bool

    @property
    def text(self) -> str:
        """As --what-if takes it."""
        end, name, value = self.change
        return f"{end}.{name}={value}"

    @property
    def changed(self) -> dict[str, Any]:
        """The level of the factor `draw` with the change."""
        end, name, value = self.change
        flow, role = self.level["flow"]["s"], ROLES[END_NAMES.index(end)]
        options = {**flow[role], name: value}
        return self.level | {"flow": {"s": flow | {role: options}}}


def draw(number: int, seed: int) -> Draw:
    """From the number of the cell and the seed alone."""
    random_ = random.Random(f"what-if/{seed}/{number}")
    level = drawn_sctp(number, seed)
    link, flow = level["link"]["p1"], level["flow"]["s"]
    link["loss"] = "0"
    sender = flow["sender"]
    if not {"interval", "burst"} & set(sender):
        sender["interval"] = "200 ms"
    at_s, lasts_s = random_.uniform(5, 20), random_.choice([0.5, 1, 2, 4, 10, 15])
    level["event"]["fault"] |= {"at": f"{at_s:.3f} s", "for": f"{lasts_s} s"}
    taken = [(at_s, at_s + lasts_s)]
    for place in range(random_.choice([0, 0, 1, 3])):
        begin_s = random_.uniform(3, 45)
        if all(begin_s + 1 < one or begin_s > other + 1 for one, other in taken):
            taken.append((begin_s, begin_s))
            short = {"action": "blackhole", "link": "p1", "at": f"{begin_s:.3f} s", "for": "30 ms"}
            level["event"][f"loss{place}"] = short
    while True:
        (end, name), values = random_.choice(list(CHANGES.items()))
        value = random_.choice(values)
        role = flow[ROLES[END_NAMES.index(end)]]
        if value == role.get(name) or (name == "sack_delay" and role.get("sack_frequency") == 1):
            continue
        if name == "pf_retrans" and len(flow["paths"]) < 2:
            continue
        asked = {**role, name: value}
        if end == "b" or _ms(asked["rto_min"]) <= _ms(asked["rto_max"]):
            return Draw(level, (end, name, value), random_.random() < 0.7)


def _ms(text: str) -> float:
    number, unit = text.split()
    return float(number) * {"ms": 1, "s": 1000}[unit]


def experiment(draws: Mapping[str, Draw], seed: int) -> dict[str, Any]:
    """Each draw, as it is and with its change."""
    levels = {name: each.level for name, each in draws.items()}
    levels |= {f"{name}-changed": each.changed for name, each in draws.items()}
    base = spec(0, seed, "sctp")
    base["flow"]["s"]["stop"] = "50 s"
    return base | {
        "name": "blind-what-if",
        "duration": "60 s",
        "factor": {"draw": {"levels": list(levels), "level": levels}},
    }


def true_courses(cell: Path) -> dict[int, AssociationCourse]:
    """The courses of a cell, by end."""
    courses = {}
    for end, host in enumerate(END_NAMES):
        files = sorted(cell.glob(f"capture/{host}-*.pcap*"))
        association = Association(read_captures(files), 0, direction=end)
        row = association.row
        courses[end] = association_course(association, int(row["first_ns"]), int(row["last_ns"]))
    return courses


def within(value: float, low: float, high: float) -> bool:
    """Whether a range holds a value, within what docs/signalling.md says of a replay's times."""
    if OPEN in (value, high):
        return high == OPEN and (value == OPEN or value >= low - max(WITHIN_NS / 1e9, WITHIN_RATIO * low))
    return low - max(WITHIN_NS / 1e9, WITHIN_RATIO * low) <= value <= high + max(WITHIN_NS / 1e9, WITHIN_RATIO * high)


def misses(found: WhatIf, truth: Mapping[int, AssociationCourse]) -> Iterator[str]:
    """What the answer says of the outages and of the end, and the truth does not."""
    for outage in found.outages:
        true_s = truth[outage.end].waits_s.get(outage.tsn, OPEN)
        if outage.known and not within(true_s, outage.low_s, outage.high_s):
            said = f"{outage.low_s:.3f} to {outage.high_s:.3f} s, true {true_s:.3f} s (was {outage.was_s:.3f} s)"
            yield f"{END_NAMES[outage.end]}'s outage at {outage.sent_s:.3f} s: {said}"
    for end in found.field:
        ended = {variant.courses[end].given_up_s is not None for variant in found.changed}
        true = truth[end].given_up_s is not None
        if found.known_until_s is None and true not in ended:
            yield f"{END_NAMES[end]} sees the association given up: {ended}, true {true}"


def asked(name: str, each: Draw, seed: int, out: Path, jobs: int) -> dict[str, Any]:
    """Run a draw and its truth, and ask: what the answer says of it. What is in `out` already is not run again."""
    kept = out / "answer.json"
    if kept.is_file():
        result: dict[str, Any] = json.loads(kept.read_text())
        return result
    shutil.rmtree(out, ignore_errors=True)
    run = netwarp.run(experiment({name: each}, seed), out=out / "truth", jobs=jobs, report=False)
    cells = {str(row["draw"]): run.path / "cells" / str(row["cell_id"]) for row in run.table("cells")}
    paths = [cells[name]] if each.both else sorted(cells[name].glob("capture/a-*.pcap*"))
    result = {"change": each.text, "ends": "both" if each.both else "a"}
    try:
        found = netwarp.what_if(paths, [each.text], merge=not each.both, out=out / "what-if", jobs=jobs)
    except CaptureError as error:
        result["refused"] = str(error)
    except SpecError as error:
        result["broken"] = str(error)
    else:
        result |= {"answered": found.answered, "why_not": found.failed or found.match.parting}
        if found.answered:
            assert found.fits is not None
            result |= {
                "wrong": list(misses(found, true_courses(cells[f"{name}-changed"]))),
                "agree": found.agree,
                "matching": len(found.fits.matching),
                "tried": found.fits.tried,
                "outages": len(found.outages),
                "unknown": sum(not outage.known for outage in found.outages),
                "tight": sum(outage.known and outage.high_s <= TIGHT * outage.low_s for outage in found.outages),
            }
    kept.write_text(json.dumps(result, indent=1))
    return result


def main() -> None:
    """The table: how many answers hold the truth, and what is wrong with the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="*", help="these draws alone")
    parser.add_argument("--out", type=Path, help="what is in there already is not run again")
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="netwarp-blind-"))
    results = []
    for number in args.only or range(args.cells):
        name = f"d{number}"
        results.append(asked(name, draw(number, args.seed), args.seed, out / name, args.jobs))
        print(name, json.dumps(results[-1]), flush=True)
    answered = [each for each in results if each.get("answered")]

    def total(key: str) -> int:
        return sum(each[key] for each in answered)

    rows = [
        ("cells", len(results)),
        ("refused", sum("refused" in each for each in results)),
        ("ended with an error", sum("broken" in each for each in results)),
        ("no settings match, so no answer", sum(each.get("answered") is False for each in results)),
        ("answered", len(answered)),
        ("of these: the truth is in every range", sum(not each["wrong"] for each in answered)),
        ("of these: all settings that match agree", total("agree")),
        ("settings that match, of those tried (medians)", _medians(answered)),
        ("outages in the answers", total("outages")),
        ("of these: unknown, since the network was not seen to come back", total("unknown")),
        (f"of these: upper end at most {TIGHT} times the lower", total("tight")),
    ]
    print("| | |\n| --- | ---: |")
    for text, value in rows:
        print(f"| {text} | {value} |")
    print(out)


def _medians(answered: list[dict[str, Any]]) -> str:
    if not answered:
        return "-"
    return " of ".join(f"{statistics.median(each[key] for each in answered):g}" for key in ("matching", "tried"))


if __name__ == "__main__":
    main()
