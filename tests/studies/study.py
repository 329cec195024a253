"""Draws a whole study: its network, flows, events and outputs, as one experiment written in Python."""

from __future__ import annotations

import hashlib
import subprocess
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import netwarp

from .beside import begin
from .draw import MS, Draw, S, time_text, two_digits
from .events import Events
from .flows import Flows, cost_packets
from .keys import keys_of
from .networks import Network, Networks
from .outputs import Outputs

Keys = dict[str, Any]
ROOT = Path(__file__).resolve().parents[2]
SYSCTLS = {
    "net.ipv4.tcp_sack": ("0",), "net.ipv4.tcp_timestamps": ("0",), "net.ipv4.tcp_ecn": ("1", "1", "1", "0"),
    "net.ipv4.tcp_dsack": ("0",), "net.ipv4.tcp_recovery": ("0",), "net.ipv4.tcp_early_retrans": ("0",),
    "net.ipv4.tcp_window_scaling": ("0",), "net.ipv4.tcp_rmem": ("4096 65536 200000",),
    "net.sctp.pf_enable": ("0",), "net.sctp.ecn_enable": ("0",), "net.sctp.hb_interval": ("1000",),
}  # fmt: skip
STACKS = ("linux-2.6.10-like", "linux-2.6.32-like", "ns-2.29-like")
BUDGETS = (60, 250, 250, 800, 1500)
"""Packets of a cell, about: with more a study takes longer and shows little else."""


@dataclass(frozen=True)
class Study:
    """A drawn study. document: what its experiment says, without netwarp's own classes."""

    seed: int
    number: int
    experiment: netwarp.Experiment
    document: Keys


WANTED = (
    "Stops.first", "Sizes.pareto", "Sizes.exponential", "Sizes.published", "Sizes.uniform", "Aqm.overload",
    "Claim.experiment", "Program.listens", "Event.only", "Node.unless", "End.hop", "Aqm.protection", "Aqm.low_latency",
    "Aqm.coupling", "Experiment.levels", "Messages.think", "Metric.published", "Event.killed", "Repeated.longer_than",
    "Flow.only", "Flow.unless", "Event.like", "Sender.lifetime", "Experiment.optional", "Experiment.zip", "Switch.only",
    "Page.frame", "Aqm.drop_early", "Factor.drops",
)  # fmt: skip
"""Keys that few studies have by themselves: one study of WANTS_EVERY is drawn until it has one of them."""
WANTS_EVERY, MOST_DRAWS = 4, 200


def seed_of_tree() -> int:
    """A seed of the committed tree: each commit draws other studies. Without git: of the product's and these files."""
    tree = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "HEAD^{tree}"], capture_output=True, text=True, check=False
    )
    if tree.returncode == 0:
        return int(tree.stdout.strip()[:8], 16)
    whole = hashlib.sha256()
    for path in sorted([*(ROOT / "orchestrator").rglob("*.py"), *(ROOT / "tests" / "studies").rglob("*.py")]):
        whole.update(path.read_bytes())
    return int(whole.hexdigest()[:8], 16)


def drawn(seed: int, number: int) -> Study:
    """The study with this number of that seed."""
    study = _drawn(Draw(seed, number), seed, number)
    turn, rest = divmod(number, WANTS_EVERY)
    again = 0
    while rest == WANTS_EVERY - 1 and again < MOST_DRAWS and not keys_of(study.document)[WANTED[turn % len(WANTED)]]:
        again += 1
        study = _drawn(Draw(seed, number, again), seed, number)
    return study


def _drawn(draw: Draw, seed: int, number: int) -> Study:
    study = begin(f"s{number}", {"seed": draw.whole(1, 10**6)})
    budget = draw.of(BUDGETS)
    net = Networks(draw, study, _nodes(draw), _defaults(draw)).drawn()
    duration = _duration(draw, net, budget)
    if draw.maybe(0.05):
        study.parameter("length", time_text(duration))
        study.set(duration="{length}")
    else:
        study.set(duration=time_text(duration))
    if draw.maybe(0.1):
        study.set(**draw.of(({"title": "What it does"}, {"description": "Drawn."}, {"repetitions": 1})))
    flows = Flows(draw, study, net, duration, budget)
    flows.drawn()
    Events(draw, study, net, flows, duration).drawn()
    Outputs(draw, study, net, flows, duration).drawn()
    return Study(seed, number, study, tomllib.loads(study.to_toml()))


def _defaults(draw: Draw) -> Keys:
    """What lies below every item of a kind; what the items say themselves wins."""
    every: Keys = {
        "flow": {"protocol": "tcp"}, "event": {"action": "cut"}, "node": {"kind": "host"}, "link": {"mtu": "1500 B"},
        "table": {"title": "A table"}, "figure": {"title": "A figure"}, "experiment": {"repeat": "all"},
        "metric": {"unit": "bit/s"},
    }  # fmt: skip
    return {kind: keys for kind, keys in every.items() if draw.maybe(0.06)}


def _nodes(draw: Draw) -> dict[str, Keys]:
    keys: dict[str, Keys] = {"host": {}, "router": {}}
    if draw.maybe(0.35):
        chosen = draw.some(list(SYSCTLS), 3)
        if draw.maybe(0.4):
            chosen = list(dict.fromkeys([*chosen, "net.ipv4.tcp_ecn"]))
        keys["host"]["sysctl"] = {name: draw.of(SYSCTLS[name]) for name in chosen}
    if draw.maybe(0.05):
        keys["host"]["stack"] = draw.of(STACKS)
    return keys


def _duration(draw: Draw, net: Network, budget: int) -> int:
    """A duration in ns within which no path carries more packets than the budget; of 2 to 60 round trips, if it can."""
    slowest = max(way.rtt_ns for way in net.ways)
    duration = max(2 * MS, two_digits(slowest * draw.log(2, 60)))
    if draw.maybe(0.5):
        duration = max(duration, draw.of((1, 2, 5, 10)) * S)
    duration = min(duration, 120 * S)
    while cost_packets([*net.ways, *net.multihomed], duration) > budget and duration > 2 * MS:
        duration = two_digits(duration * 0.7)
    return max(duration, 2 * MS)
