"""Measures how often the settings inferred from captures of SCTP or TCP hold the ends' own (docs/signalling.md).

Draws cells (settings, network, traffic and fault at random from a seed), runs them in virtual time, infers each end's
settings from the captures of both hosts without looking at the cell, and compares.

    .venv/bin/python benchmarks/blind_settings.py --cells 200 --seed 1 [--protocol tcp] [--out DIR]
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import netwarp
from netwarp.captures import read_captures
from netwarp.captures.inference import InferredSetting
from netwarp.captures.sctp.settings import LINUX, infer_settings
from netwarp.captures.tcp.settings import infer_tcp_settings
from netwarp.core.types import Cell, Outcome
from netwarp.core.wire import TCP

TIGHT = 1.5
"""An interval is tight if its upper end is at most so many times its lower end."""

Truth = float | tuple[float, float] | None
"""A setting's value; two: the kernel takes any between them; None: it has none."""


def drawn_sctp(number: int, seed: int) -> dict[str, Any]:
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
    size = f"{random_.choice([60, 200, 800])} B"
    if random_.random() < 0.25:  # large messages, which bursts are seen by
        size = f"{random_.choice([10, 20, 40])} kB"
        traffic = {"interval": f"{random_.choice([200, 500, 2000])} ms"}
    if random_.random() < 0.6:
        sender["max_burst"] = random_.choice([0, 1, 2, 3, 6, 8, 16])
    flow = {
        "paths": ["p1", "p2"] if two else ["p1"],
        "message_size": size,
        "sender": {**sender, **traffic},
        "receiver": receiver,
    }
    return {"link": {"p1": _link(random_, "init")}, "event": {"fault": _fault(random_)}, "flow": {"s": flow}}


def drawn_tcp(number: int, seed: int) -> dict[str, Any]:
    """What one cell changes. Of TCP's timers only the floor can be set, by a sysctl; it bounds the delay of ACKs."""
    random_ = random.Random(f"tcp/{seed}/{number}")
    nodes = {
        node: {
            "sysctl": {
                "net.ipv4.tcp_rto_min_us": str(1000 * random_.choice([20, 50, 100, 200, 200, 200, 300, 500, 1000])),
                "net.ipv4.tcp_sack": random_.choice(["0", "1", "1"]),
                "net.ipv4.tcp_timestamps": random_.choice(["0", "1", "1"]),
                "net.ipv4.tcp_early_retrans": random_.choice(["0", "3", "3"]),
            }
        }
        for node in ("a", "b")
    }
    traffic: dict[str, Any] = random_.choice(
        [
            {"interval": "50 ms"},
            {"interval": "150 ms"},
            {"interval": "1 s"},
            {"burst": {"messages": 8, "every": "2 s"}},
            {"message_rate": "2 Mbit/s"},
            {},
        ]
    )
    flow = {
        "message_size": f"{random_.choice([60, 200, 1400])} B",
        "sender": {"initial_window": f"{random_.choice([2, 4, 10, 20])} packets", "mss": "1400 B", **traffic},
        "receiver": {"quick_ack": True} if random_.random() < 0.25 else {},
    }
    return {
        "node": nodes,
        "link": {"p1": _link(random_, "syn")},
        "event": {"fault": _fault(random_)},
        "flow": {"s": flow},
    }


def _link(random_: random.Random, opening: str) -> dict[str, Any]:
    link: dict[str, Any] = {
        "one_way_delay": f"{random_.choice([1, 5, 20, 50, 120])} ms",
        "loss": random_.choice(["0", "0", "0.2 %", "1 %", "3 %"]),
    }
    if random_.random() < 0.15:
        link["drop"] = {opening: list(range(1, random_.randint(2, 4)))}
    if random_.random() < 0.2 and link["one_way_delay"] not in ("1 ms",):
        link["jitter"] = f"{random_.choice([1, 3])} ms"
    return link


def _fault(random_: random.Random) -> dict[str, Any]:
    return {
        "action": random_.choice(["cut", "blackhole"]),
        "at": f"{random_.uniform(5, 40):.3f} s",
        "for": f"{random_.choice([0, 0, 1, 4, 15, 60])} s",
        "directions": random_.choice([["forward"], ["backward"], ["forward", "backward"]]),
    }


DRAWN = {"sctp": drawn_sctp, "tcp": drawn_tcp}


def spec(cells: int, seed: int, protocol: str) -> dict[str, Any]:
    """The experiment of all draws."""
    names = [f"d{number}" for number in range(cells)]
    drawn = DRAWN[protocol]
    link = {"rate": "10 Mbit/s", "queue": "200 packets", "one_way_delay": "20 ms"}
    return {
        "format": 1,
        "name": "blind-settings",
        "seed": seed,
        "duration": "100 s",
        "node": {"a": {}, "b": {}},
        "link": {"p1": {"between": ["a", "b"], **link}, "p2": {"between": ["a", "b"], **link}},
        "flow": {"s": {"from": "a", "to": "b", "protocol": protocol, "paths": ["p1"], "stop": "90 s"}},
        "event": {"fault": {"action": "cut", "link": "p1", "at": "20 s", "for": "0 s"}},
        "factor": {"draw": {"levels": names, "level": {name: drawn(n, seed) for n, name in enumerate(names)}}},
    }


def truth(cell: Cell) -> dict[tuple[int, str], Truth]:
    """(end, setting) -> value as the cell was configured, with Linux' values where it said nothing."""
    return _truth_of_sctp(cell) if cell.flows[0].protocol == "sctp" else _truth_of_tcp(cell)


def _truth_of_sctp(cell: Cell) -> dict[tuple[int, str], Truth]:
    (flow,) = cell.flows
    result: dict[tuple[int, str], Truth] = {}
    for end, options in ((0, flow.sender_options), (1, flow.receiver_options)):
        values: dict[str, Any] = LINUX | {"path_max_retrans": 5, "pf_retrans": 0}
        for key, value in options.items():
            if (name := key.removesuffix("_ns").removesuffix("_ms")) in values:
                values[name] = value / 1e9 if key.endswith("_ns") else value / 1e3 if key.endswith("_ms") else value
        pf, path = int(values["pf_retrans"]), int(values["path_max_retrans"])
        values["failover_threshold"] = pf if pf + 1 < path else path  # docs/failover.md
        if values["sack_frequency"] == 1:
            del values["sack_delay"]
        if values["max_burst"] == 0:
            values["max_burst"] = float("inf")
        result |= {(end, name): value for name, value in values.items()}
    return result


def _truth_of_tcp(cell: Cell) -> dict[tuple[int, str], Truth]:
    """ack_delay: TCP_DELACK_MIN or more, as the round trip is long, and below the host's own rto_min
    (net/ipv4/tcp_output.c: tcp_send_delayed_ack, tcp_delack_max).
    """
    (flow,), (link, *_) = cell.flows, cell.links
    rtt_s = (link.forward.one_way_delay_ns + link.backward.one_way_delay_ns) / 1e9
    settings = {node.name: dict(node.sysctls) for node in cell.nodes}
    result: dict[tuple[int, str], Truth] = {}
    for end, node in ((0, "a"), (1, "b")):
        mine = {
            key.removeprefix("net.ipv4.tcp_"): int(value) for key, value in settings[node].items() if " " not in value
        }
        least_s = mine["rto_min_us"] / 1e6
        longest_s = min(0.2, least_s - 0.001)
        result |= {
            (end, "rto_min"): least_s,
            (end, "rto_max"): 120.0,
            (end, "syn_timeout"): 1.0,
            (end, "syn_retries"): 6.0,
            (end, "ack_delay"): (min(0.04, longest_s), max(min(0.04, longest_s), min(longest_s, 2 * rtt_s))),
            (end, "ack_frequency"): 1.0 if end and flow.receiver_options.get("quick_ack") else 2.0,
        }
        for name, key in (("sack_permitted", "sack"), ("timestamps", "timestamps")):
            result[end, name] = float(mine[key] and (not end or result[0, name] == 1))
    result[0, "mss"] = float(flow.sender_options["mss_bytes"])
    result[0, "initial_window"] = float(
        flow.sender_options["initial_window_packets"] * flow.sender_options["mss_bytes"]
    )
    if flow.receiver_options.get("quick_ack"):
        del result[1, "ack_delay"]
    return result


def inferred(directory: Path) -> list[tuple[str, InferredSetting]]:
    """(host, setting) of each capture point of a cell."""
    result = []
    for host in ("a", "b"):
        files = sorted(directory.glob(f"capture/{host}-*.pcap*"))
        capture = read_captures(files)
        for flow in range(len(capture.flows)):
            infer = infer_tcp_settings if capture.flows[flow]["protocol"] == TCP else infer_settings
            result += [(host, setting) for setting in infer(capture, flow)]
    return result


def holds(setting: InferredSetting, value: Truth) -> bool:
    """Whether the interval holds the value that the cell had, or one of those that the kernel takes."""
    least, most = value if isinstance(value, tuple) else (value, value)
    if least is None or most is None:
        return False
    return (setting.low is None or setting.low <= most) and (setting.high is None or least <= setting.high)


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
    parser.add_argument("--protocol", default="sctp", choices=sorted(DRAWN))
    args = parser.parse_args()
    out = args.out or Path(tempfile.mkdtemp(prefix="netwarp-blind-"))
    if args.again:
        run = netwarp.open_run(out)
    else:
        drawn_cells = spec(args.cells, args.seed, args.protocol)
        run = netwarp.run(drawn_cells, out=out, backend=args.backend, jobs=args.jobs, report=False)
    late = [cell for cell in run.plan.cells if run.results.outcomes[cell.id].outcome is Outcome.INVALID]
    _print_table(out, [cell for cell in run.plan.cells if cell not in late])
    if late:
        print(f"\n{len(late)} cells are INVALID; theirs:\n")
        _print_table(out, late)
    print(out)


def _print_table(out: Path, cells: Sequence[Cell]) -> None:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    wrong = []
    for cell in cells:
        if not (out / "cells" / cell.id / "capture").is_dir():
            continue
        values = truth(cell)
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


if __name__ == "__main__":
    main()
