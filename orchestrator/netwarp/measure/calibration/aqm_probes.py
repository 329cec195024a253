"""Defines the cells that calibrate active queue management: datagrams at a constant rate, more than the link carries.

They take no notice of losses, so what the queue does is its own law. The link has no delay line: a packet comes to the
queue when it is sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...core.numbers import given
from ...core.types import Flow, Link
from ...experiment import parse_spec
from ...plan import make_plan
from .datagram_probes import APART_NS, MS, PORTS, START_NS, S, send_words, sending_flow
from .tcp_probes import Probe, probe_cell

RATE_BIT_S = 5_000_000
SIZE_BYTES = 1000
SENDING_NS = 8 * 10**9 * SIZE_BYTES // RATE_BIT_S
"""1.6 ms for a packet."""
SMALL_BYTES, LARGE_BYTES = 500, 1500
SETTLED_NS = 20 * S
"""From the first datagram until PIE's probability has settled."""
PIE_DROPS = 0.38
"""Share that cannot pass: PIE's probability is then near 0.61, where the second packet after a drop has the first
chance; see aqm_judge.py."""


@dataclass(frozen=True, slots=True)
class Stream:
    """Datagrams at a constant rate; drop_share: of them so many are too many for the link."""

    size_bytes: int
    interval_ns: int
    lasts_ns: int

    @property
    def count(self) -> int:
        """Their number."""
        return self.lasts_ns // self.interval_ns


def overload(drop_share: float, lasts_ns: int) -> Stream:
    """Datagrams of which this share cannot pass."""
    return Stream(SIZE_BYTES, round(SENDING_NS * (1 - drop_share)), lasts_ns)


RED = '{ kind = "red", min = "20 kB", max = "80 kB", max_p = "50 %", average = 7 }'
AQMS: dict[str, tuple[str, str, tuple[Stream, ...]]] = {
    **{
        f"red, {given(100 * share)} % too much": ("400 packets", RED, (overload(share, 30 * S),))
        for share in (0.03, 0.1, 0.2)
    },
    "codel": ("2000 packets", '{ kind = "codel", target = "5 ms", interval = "100 ms" }', (overload(0.1, 10 * S),)),
    "pie": (
        "2000 packets",
        '{ kind = "pie", target = "15 ms", update = "15 ms", alpha = 2, beta = 20 }',
        (overload(PIE_DROPS, 80 * S),),
    ),
    "fq_codel": (
        "20000 packets",
        '{ kind = "fq_codel", target = "200 ms", interval = "2 s", quantum = "1514 B" }',
        (Stream(LARGE_BYTES, 5 * MS // 2, 10 * S), Stream(SMALL_BYTES, MS, 10 * S)),
    ),
    "cake": ("8 MiB", '{ kind = "cake", rtt = "100 ms" }', (overload(0.1, 10 * S),)),
}
"""Name -> its hard limit, what a spec says, and what is sent. RED: so that the average stays between its thresholds.
fq_codel: a target that both flows' queues stay above, so that neither is ever empty."""


def aqm_probes(program: Path, seed: int = 1) -> tuple[Probe, ...]:
    """Every cell."""
    probes = []
    for name, (queue, aqm, streams) in AQMS.items():
        link = read_link(queue, aqm)
        assert link.forward.aqm is not None
        kind = link.forward.aqm.kind
        flows: list[Flow] = []
        end = START_NS + max(stream.lasts_ns for stream in streams) + 5 * S
        for port, stream in zip(PORTS, streams, strict=False):
            send = send_words(port, (stream.size_bytes,), stream.count, stream.interval_ns, START_NS, end)
            spawned_ns = len(flows) * APART_NS
            flows.append(sending_flow(f"datagrams-{port}", "a", "b", port, program, send, "sink", end, spawned_ns))
        cell = probe_cell(f"aqm {name}", link, tuple(flows), end, seed)
        probes.append(Probe(f"aqm: {name}", cell, (kind,)))
    return tuple(probes)


def read_link(queue: str, aqm: str) -> Link:
    """The link as the planner makes it, with every setting that is not said."""
    text = (
        'format = 1\nname = "calibration"\nduration = "100 s"\n[node.a]\n[node.b]\n'
        f'[link.p1]\nbetween = ["a", "b"]\n[link.p1.forward]\nrate = "{RATE_BIT_S} bit/s"\nqueue = "{queue}"\n'
        f"aqm = {aqm}\n"
        '[flow.f]\nfrom = "a"\nto = "b"\nprotocol = "tcp"\npaths = ["p1"]\nbytes = "1 MB"\n'
    )
    (cell, *_) = make_plan(parse_spec(text.encode(), Path("calibration.toml"), sets={})).cells
    return cell.links[0]
