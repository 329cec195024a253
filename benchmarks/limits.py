"""Shares of what limited TCP senders, as `netwarp analyze` says them, against the kernel's own (TCP_INFO).

    python benchmarks/limits.py DIR...

Each DIR has one folder for each condition, with captures (*.pcap, *.pcap.zst) of its TCP connections and counters.json,
whose `tcp_info` has busy_time, rwnd_limited and sndbuf_limited (us) for each connection by its sender's port (a single
one needs none), read when everything was acknowledged. Linux adds them up in jiffies (tcp_chrono_set in
net/ipv4/tcp_output.c), so connections of less than SHORTEST_S are left out. What Linux does not count as busy is
`idle_ratio`, rwnd_limited is `receive_window_limited_ratio`, both of `limits_s`. sndbuf_limited has no total: on the
wire it is unknown.

WRONG: a share is more than 5 points above the kernel's, or with all that is unknown more than 5 below. Status 1 then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from netwarp.captures import summarise_points

SHORTEST_S = 0.2
POINTS = 0.05
COLUMNS = ("idle", "application", "receive_window", "congestion_window", "loss", "path", "unknown")


def main(folders: list[str]) -> int:
    """Print a line for each connection and capture; the exit status."""
    print(f"{'condition':34}{'captured at':12}  kernel: idle window buffer | {' '.join(COLUMNS)} (%)")
    count = wrong = 0
    for counters in sorted(path for folder in folders for path in Path(folder).glob("*/counters.json")):
        for line, is_wrong in _lines(counters):
            count, wrong = count + 1, wrong + is_wrong
            print(line)
    print(f"{count} connections and captures, {wrong} wrong")
    return int(wrong > 0 or not count)


def _lines(counters: Path) -> Iterator[tuple[str, bool]]:
    told = json.loads(counters.read_text()).get("tcp_info", [])
    kernel = {
        info.get("port"): {name.removesuffix("_us"): value for name, value in info.items()}
        for info in told
        if "port" in info or len(told) == 1
    }
    for file in sorted(counters.parent.glob("*.pcap*")):
        for connection in summarise_points([[file]])[0].connections:
            its = kernel.get(int(connection.ends[0].rpartition(":")[2]), kernel.get(None))
            time_s = connection.totals.get("limits_s")
            if its is None or not time_s or time_s < SHORTEST_S:
                continue
            kernels = [1 - its["busy_time"] / 1e6 / time_s] + [
                its[name] / 1e6 / time_s for name in ("rwnd_limited", "sndbuf_limited")
            ]
            shares = _shares(connection.totals)
            unknown = shares["unknown"]
            is_wrong = any(
                said > its_own + POINTS or its_own > said + unknown + POINTS
                for said, its_own in zip((shares["idle"], shares["receive_window"]), kernels, strict=False)
            )
            texts = [" ".join(f"{100 * value:6.1f}" for value in row) for row in (kernels, shares.values())]
            point = file.name.partition(".")[0]
            name = f"{counters.parent.name:34}{point:12}"
            yield f"{name}  {' | '.join(texts)}{'  WRONG' if is_wrong else ''}", is_wrong


def _shares(totals: Any) -> dict[str, float]:
    """By COLUMNS; `application` without `idle`."""
    shares = {name: totals.get(f"{name}_limited_ratio") for name in COLUMNS}
    shares |= {"idle": totals["idle_ratio"], "unknown": totals["unknown_limit_ratio"]}
    shares["application"] -= shares["idle"]
    return shares


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
