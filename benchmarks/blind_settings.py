"""Measures how often the settings inferred from captures of SCTP hold the ends' own (docs/signalling.md).

Draws cells (settings, network, traffic and fault at random from a seed), runs them in virtual time, infers each end's
settings from the captures of both hosts without looking at the cell, and compares.

    .venv/bin/python benchmarks/blind_settings.py --cells 200 --seed 1 [--out DIR]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import netwarp
from netwarp.captures import read_captures
from netwarp.captures.sctp.settings import LINUX, InferredSetting, infer_settings
from netwarp.core.types import Cell

TIGHT = 1.5
"""An interval is tight if its upper end is at most so many times its lower end."""


def drawn(number: int, seed: int) -> dict[str, Any]:
    """What one cell changes: a level of the factor `draw`."""
    random_ = random.Random(f"{seed}/{number}")
    rto_min = random_.choice([100, 120, 200, 300, 500, 800, 1000, 1500])
    rto_max = rto_min * random_.choice([1, 2, 3, 5, 20, 60])
    rto_initial = min(max(random_.choice([120, 500, 1000, 2000, 3000]), rto_min), rto_max)
    two = random_.random() < 0.5
    path_max = random_.randint(1, 6)
    sender = {
        "rto_initial": f"{rto_initial} ms",
        "rto_min": f"{rto_min} ms",
        "rto_max": f"{rto_max} ms",
        "path_max_retrans": path_max,
        "association_max_retrans": random_.choice([4, 6, 10, 12]),
        "pf_retrans": random_.choice([0, 0, 1, 2, 3]),
        "heartbeat_interval": random_.choice(["1 s", "3 s", "5 s", "10 s", "30 s"]),
        "init_attempts": random_.randint(2, 8),
        "init_max_timeout": random_.choice(["1 s", "4 s", "60 s"]),
    }
    receiver = {
        "sack_delay": f"{random_.choice([20, 40, 80, 120, 200, 300, 500])} ms",
        "sack_frequency": random_.choice([1, 2, 2, 2, 3, 4]),
        "heartbeat_interval": random_.choice(["2 s", "5 s", "30 s"]),
    }
    if receiver["sack_frequency"] == 1:
        del receiver["sack_delay"]
    traffic: dict[str, Any] = random_.choice(
        [
            {"interval": "50 ms"},
            {"interval": "1 s"},
            {"interval": "10 s"},
            {"burst": {"messages": 3, "every": "700 ms"}},
            {"burst": {"messages": 8, "every": "2 s"}},
            {},
        ]
    )
    link: dict[str, Any] = {
        "one_way_delay": f"{random_.choice([1, 5, 20, 50, 120])} ms",
        "loss": random_.choice(["0", "0", "0.2 %", "1 %", "3 %"]),
    }
    if random_.random() < 0.15:
        link["drop"] = {"init": list(range(1, random_.randint(2, 4)))}
    if random_.random() < 0.2 and link["one_way_delay"] not in ("1 ms",):
        link["jitter"] = f"{random_.choice([1, 3])} ms"
    event = {
        "action": random_.choice(["cut", "blackhole"]),
        "at": f"{random_.uniform(5, 40):.3f} s",
        "for": f"{random_.choice([0, 0, 1, 4, 15, 60])} s",
        "directions": random_.choice([["forward"], ["backward"], ["forward", "backward"]]),
    }
    flow = {
        "paths": ["p1", "p2"] if two else ["p1"],
        "message_size": f"{random_.choice([60, 200, 800])} B",
        "sender": {**sender, **traffic},
        "receiver": receiver,
    }
    return {"link": {"p1": link}, "event": {"fault": event}, "flow": {"s": flow}}


def spec(cells: int, seed: int) -> dict[str, Any]:
    """The experiment of all draws."""
    names = [f"d{number}" for number in range(cells)]
    link = {"rate": "10 Mbit/s", "queue": "200 packets", "one_way_delay": "20 ms"}
    return {
        "format": 1,
        "name": "blind-settings",
        "seed": seed,
        "duration": "100 s",
        "node": {"a": {}, "b": {}},
        "link": {"p1": {"between": ["a", "b"], **link}, "p2": {"between": ["a", "b"], **link}},
        "flow": {"s": {"from": "a", "to": "b", "protocol": "sctp", "paths": ["p1"], "stop": "90 s"}},
        "event": {"fault": {"action": "cut", "link": "p1", "at": "20 s", "for": "0 s"}},
        "factor": {"draw": {"levels": names, "level": {name: drawn(n, seed) for n, name in enumerate(names)}}},
    }


def truth(cell: Cell) -> Iterator[tuple[int, str, float | None]]:
    """(end, setting, value) as the cell was configured, with Linux' values where it said nothing."""
    (flow,) = cell.flows
    for end, options in ((0, flow.sender_options), (1, flow.receiver_options)):
        values = LINUX | {"path_max_retrans": 5, "pf_retrans": 0}
        for key, value in options.items():
            if (name := key.removesuffix("_ns").removesuffix("_ms")) in values:
                values[name] = value / 1e9 if key.endswith("_ns") else value / 1e3 if key.endswith("_ms") else value
        pf, path = int(values["pf_retrans"]), int(values["path_max_retrans"])
        values["failover_threshold"] = pf if pf + 1 < path else path  # docs/failover.md
        if values["sack_frequency"] == 1:
            del values["sack_delay"]
        for name, value in values.items():
            yield end, name, value


def inferred(directory: Path) -> list[tuple[str, InferredSetting]]:
    """(host, setting) of each capture point of a cell."""
    result = []
    for host in ("a", "b"):
        files = sorted(directory.glob(f"capture/{host}-*.pcap*"))
        capture = read_captures(files, ("packets", "chunks", "sacks", "blocks", "inits", "addresses", "causes"))
        for flow in range(len(capture.flows)):
            result += [(host, setting) for setting in infer_settings(capture, flow)]
    return result


def holds(setting: InferredSetting, value: float) -> bool:
    """Whether the interval holds the value that the cell had."""
    return (setting.low is None or setting.low <= value) and (setting.high is None or value <= setting.high)


def is_tight(setting: InferredSetting) -> bool:
    """Whether both sides are bounded, closely."""
    return setting.low is not None and setting.high is not None and setting.high <= TIGHT * setting.low


def main() -> None:
    """The table: of each setting how many intervals, how many hold the truth, how many are tight."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", action="store_true", help="infer from the captures of --out, run nothing")
    parser.add_argument("--backend", default="virtual", help="guest: on the wall clock")
    parser.add_argument(
        "--jobs", type=int, default=2, help="cells at once; of those on the wall clock, which wait, more"
    )
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="netwarp-blind-"))
    if args.again:
        run = netwarp.open_run(out)
    else:
        drawn_cells = spec(args.cells, args.seed)
        run = netwarp.run(drawn_cells, out=out, backend=args.backend, jobs=args.jobs, report=False)
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    wrong = []
    for cell in run.plan.cells:
        if not (out / "cells" / cell.id / "capture").is_dir():
            continue
        values = {(end, name): value for end, name, value in truth(cell)}
        for host, setting in inferred(out / "cells" / cell.id):
            value = values.get((setting.end, setting.name))
            if value is None:
                continue
            row = counts[setting.name]
            row["intervals"] += 1
            row["hold"] += holds(setting, value)
            row["two-sided"] += setting.low is not None and setting.high is not None
            row["tight"] += is_tight(setting)
            if not holds(setting, value):
                wrong.append((cell.id, host, value, setting))
    columns = ("intervals", "hold", "two-sided", "tight")
    print("| setting | intervals | hold the value | bounded on both sides | and upper at most 1.5 times lower |")
    print("| --- | ---: | ---: | ---: | ---: |")
    rows = [*sorted(counts.items()), ("all", {key: sum(row[key] for row in counts.values()) for key in columns})]
    for name, row in rows:
        print(f"| {name} | {' | '.join(str(row[key]) for key in columns)} |")
    for line in wrong:
        print(*line)
    print(out)


if __name__ == "__main__":
    main()
