"""Links that deliver at opportunities: each packet's fate and time, against mahimahi's rules written a second time."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.chain_packets import frames, from_host
from support.run_files import RunFiles
from support.specs import two_hosts

MS, S, US = 10**6, 10**9, 10**3
DELAY = 10 * MS
NEAR = 20 * US
"""The packets of one opportunity leave one after the other."""
CUT, REPAIR = 1_500 * MS + 500 * US, 1_700 * MS + 500 * US
QUEUES = {
    "packets": 'trace = "made.trace"\nqueue = "15 packets"',
    "bytes": 'trace = "made.trace"\nqueue = "20 kB"',
    "ends": 'trace = { file = "made.trace", after = "end" }\nqueue = "1000 packets"',
    "other": 'trace = { file = "made.trace", opportunity = "1400 B", overhead = "0 B" }\nqueue = "15 packets"',
    "cut": 'trace = "made.trace"\nqueue = "100 packets"',
}


def made() -> list[int]:
    """1,777 ms of opportunities: some ms have several, and there is a gap of 200 ms."""
    draw = random.Random(30)
    times: list[int] = []
    at = 0
    while at < 1777:
        at += 200 if at == 900 else draw.choice((0, 0, 1, 1, 1, 2, 3))
        times.append(min(at, 1777))
    return times


TIMES = made()


def spec(probe: Path) -> str:
    """A load of mixed sizes with bursts; no packet comes within 20 us of a whole ms."""
    levels = "".join(
        f"[factor.kind.level.{name}]\n" + "".join(f"link.p1.forward.{line}\n" for line in text.split("\n"))
        for name, text in QUEUES.items()
    )
    bursts = ",".join(str(at * S + 30 * US + number * 100 * US) for at in (1, 2, 3) for number in range(60))
    return two_hosts(
        'name = "opportunities"\nduration = "5 s"',
        'one_way_delay = "10 ms"\nforward = { trace = "made.trace", queue = "1 packet" }',
        f"""
[flow.load]
protocol = "udp"
start = "0 s"
stop = "4 s"
[flow.load.program]
sender = ["{probe}", "send", "{{to}}", "{{port}}", "1500,1000,1500,700,40", "2200", "1100000", "{S // 2 + 50 * US}",
    "{4 * S}", "{bursts}"]
receiver = ["{probe}", "sink", "{{port}}"]
ready = "listening"
[event.cut]
only = {{ kind = ["cut"] }}
action = "cut"
link = "p1"
directions = ["forward"]
at = "{CUT} ns"
for = "{REPAIR - CUT} ns"
[factor.kind]
levels = {list(QUEUES)}
{levels}""",
    )


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A cell of each kind."""
    place = tmp_path_factory.mktemp("opportunities")
    (place / "made.trace").write_text("".join(f"{at}\n" for at in TIMES))
    return checkout.run_spec(place, spec(checkout.root / "build" / "bin" / "probe"), "--no-report").completed()


def opportunities(times: list[int], *, repeats: bool) -> Iterator[int]:
    """Their times in ns, for ever or once, and then one that never comes."""
    for period in count():
        yield from ((at + period * times[-1]) * MS for at in times)
        if not repeats:
            yield 1 << 62


@dataclass
class LinkQueue:
    """mahimahi's LinkQueue (frontend/link_queue.cc, packet/drop_tail_packet_queue.hh), with an exact clock."""

    opportunities: Iterator[int]
    size: int
    packets: int
    bytes: int

    def __post_init__(self) -> None:
        self.queue: deque[tuple[int, int]] = deque()
        self.in_transit, self.bytes_left = -1, 0
        self.left: dict[int, int] = {}
        self.next = next(self.opportunities)

    def rationalize(self, now: int) -> None:
        """Uses the opportunities up to now."""
        while self.next <= now:
            room = self.size
            while room > 0:
                if self.in_transit < 0:
                    if not self.queue:
                        break
                    self.in_transit, self.bytes_left = self.queue.popleft()
                sent = min(room, self.bytes_left)
                self.bytes_left, room = self.bytes_left - sent, room - sent
                if not self.bytes_left:
                    self.left[self.in_transit], self.in_transit = self.next, -1
            self.next = next(self.opportunities)

    def enqueue(self, now: int, number: int, size: int) -> None:
        """A packet comes; what does not fit is lost."""
        self.rationalize(now)
        waiting = sum(each for _, each in self.queue)
        if len(self.queue) + 1 <= self.packets and waiting + size <= self.bytes:
            self.queue.append((number, size))

    def empty(self, now: int) -> None:
        """What waits is lost."""
        self.rationalize(now)
        self.queue.clear()
        self.in_transit = -1


def test_the_rules_give_the_known_example() -> None:
    """Four packets of 1,000 bytes at 0 ms, opportunities at 10, 20, 30 ms."""
    link = LinkQueue(opportunities([10], repeats=True), 1504, 100, 1 << 40)
    for number in range(4):
        link.enqueue(0, number, 1004)
    link.rationalize(S)
    assert [link.left[number] // MS for number in range(4)] == [10, 20, 30, 30]


@pytest.mark.parametrize("kind", QUEUES)
def test_every_packet_leaves_at_its_opportunity(run: RunFiles, kind: str) -> None:
    cell = run.cell(kind=kind)
    (sender,), (receiver,) = (cell.captures(node, "p1") for node in "ab")
    size, overhead = (1400, 0) if kind == "other" else (1504, 4)
    packets = {"packets": 15, "other": 15, "cut": 100}.get(kind, 1000)
    link = LinkQueue(
        opportunities(TIMES, repeats=kind != "ends"), size, packets, 20_000 if kind == "bytes" else 1 << 40
    )
    cut = False
    sent = from_host("a", frames(sender))
    for number, frame in enumerate(sent):
        came = frame.t_ns + DELAY
        if kind == "cut" and came >= CUT and frame.t_ns < REPAIR:
            if not cut:
                link.empty(CUT)
            cut = True
            continue
        link.enqueue(came, number, frame.ip_bytes + overhead)
    link.rationalize(10 * S)
    arrived = {frame.identity: frame.t_ns for frame in from_host("a", frames(receiver))}
    wrong = []
    for number, frame in enumerate(sent):
        asked, got = link.left.get(number), arrived.get(frame.identity)
        if (asked is None) != (got is None) or (asked is not None and got is not None and abs(got - asked) > NEAR):
            wrong.append((number, frame.ip_bytes, frame.t_ns, asked, got))
    assert wrong == []
    assert len(link.left) > 500
    assert len(link.left) < len(sent)


VALUES = "time [s],rate [Mbit/s],one_way_delay,loss\n0,5,20 ms,0 %\n2,1,30 ms,0 %\n4.5,8,10 ms,1 %\n"
EVENTS = """
[event.slow]
action = "change"
link = "p1"
at = "2 s"
directions = ["forward"]
rate = "1 Mbit/s"
one_way_delay = "30 ms"
[event.fast]
action = "change"
link = "p1"
at = "4.5 s"
directions = ["forward"]
rate = "8 Mbit/s"
one_way_delay = "10 ms"
loss = "1 %"
"""


def test_values_over_time_are_changes(checkout: Checkout, tmp_path: Path) -> None:
    """A trace of values gives the captures of the events that say the same, and the kernels' last word is its last
    row."""
    head = 'name = "values"\nduration = "7 s"'
    flow = '[flow.f]\nprotocol = "tcp"\n'
    link = 'queue = "60 packets"\none_way_delay = "20 ms"\nbackward = { rate = "1 Mbit/s" }\n'
    (tmp_path / "v.csv").write_text(VALUES)
    texts = {
        "trace": two_hosts(head, f'{link}forward = {{ trace = "v.csv" }}', flow),
        "events": two_hosts(head, f'{link}forward = {{ rate = "5 Mbit/s" }}', flow + EVENTS),
    }
    captures = []
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "v.csv").write_text(VALUES)
        run = checkout.run_spec(tmp_path / name, text, "--no-report").completed()
        (cell,) = run.cells.values()
        captures.append([file.read_bytes() for node in "ab" for file in cell.captures(node, "p1")])
    assert captures[0] == captures[1]
