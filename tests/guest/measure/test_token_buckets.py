"""Policers, the burst of a rate, and slots: each packet's fate and time predicted from when it was sent."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.chain_packets import Frame, frames, from_host
from support.run_files import CellFiles, RunFiles
from support.specs import two_hosts

MS, S, US = 10**6, 10**9, 10**3
DELAY = 10 * MS
NEAR = 3 * US
RATE, BURST = 5_130_000, 30_000
HEADER = {"frames": 14}
LINKS = {
    "policer": f'policer = {{ rate = "{RATE} bit/s", burst = "{BURST} B" }}',
    "frames": f'policer = {{ rate = "{RATE} bit/s", burst = "{BURST} B" }}\nlayer = "ethernet"',
    "burst": f'rate = "{RATE} bit/s"\nburst = "{BURST} B"\nqueue = "20 packets"',
    "burst-bytes": f'rate = "{RATE} bit/s"\nburst = "{BURST} B"\nqueue = "40 kB"',
    "slots": 'slots = { after = "5 ms", packets = "8 packets" }\nqueue = "12 packets"',
    "slots-bytes": 'slots = { after = "5 ms", bytes = "6 kB" }\nqueue = "12 packets"',
    "slots-drawn": 'slots = { after = "2 ms", to = "9 ms" }\nqueue = "100 packets"',
}
COUNT, GAP = 1500, 700_013
BURSTS = ((S, 40 * US), (2 * S, 90 * US), (3 * S, 100 * US))
"""When 40 packets more come, and how far apart."""


def spec(probe: Path) -> str:
    """A load of mixed sizes, with bursts in it and after it, over a direction of each kind."""
    levels = "".join(
        f"[factor.kind.level.{name}]\n" + "".join(f"link.p1.forward.{line}\n" for line in text.split("\n"))
        for name, text in LINKS.items()
    )
    moments = ",".join(str(start + number * gap) for start, gap in BURSTS for number in range(40))
    load = f"""
[flow.load]
protocol = "udp"
start = "0 s"
stop = "4 s"
[flow.load.program]
sender = ["{probe}", "send", "{{to}}", "{{port}}", "1500,1500,700,300", "{COUNT}", "{GAP}", "{S // 2}", "{4 * S}",
    "{moments}"]
receiver = ["{probe}", "sink", "{{port}}"]
ready = "listening"
"""
    return two_hosts(
        'name = "buckets"\nduration = "5 s"',
        'one_way_delay = "10 ms"',
        f"{load}[factor.kind]\nlevels = {list(LINKS)}\n{levels}",
    )


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A cell of each kind."""
    text = spec(checkout.root / "build" / "bin" / "probe")
    return checkout.run_spec(tmp_path_factory.mktemp("buckets"), text, "--no-report").completed()


@dataclass(frozen=True)
class Sent:
    """A packet that a sent: when it came to the link, and when it left it (None: never)."""

    frame: Frame
    came_ns: int
    left_ns: int | None


def passage(cell: CellFiles, delay_ns: int) -> list[Sent]:
    (sender,), (receiver,) = (cell.captures(node, "p1") for node in "ab")
    arrived = {frame.identity: frame.t_ns for frame in from_host("a", frames(receiver))}
    return [Sent(frame, frame.t_ns + delay_ns, arrived.get(frame.identity)) for frame in from_host("a", frames(sender))]


def needs(frame: Frame, header: int) -> int:
    return 8 * S * (frame.ip_bytes + header) // RATE


@pytest.mark.parametrize("kind", ["policer", "frames"])
def test_a_policer_loses_what_its_bucket_does_not_hold(run: RunFiles, kind: str) -> None:
    """Every packet's fate is that of a token bucket, but where it is short of a packet by less than 1 us. Those that
    pass take the delay and nothing else. What the kernel counted is what did not come.
    """
    cell, full = run.cell(kind=kind), 8 * S * BURST // RATE
    tokens, since, close, lost = full, 0, 0, 0
    for each in passage(cell, 0):
        left = min(full, tokens + each.came_ns - since) - needs(each.frame, HEADER.get(kind, 0))
        close += abs(left) < US
        if each.left_ns is None:
            assert left < US, each
            lost += 1
        else:
            assert left > -US, each
            assert abs(each.left_ns - each.came_ns - DELAY) < NEAR
            tokens, since = left, each.came_ns
    assert lost > 200
    assert close < 10
    (counted,) = (metrics for row, metrics in run.measured("") if row["kind"] == kind)
    assert counted["policer_dropped_packets"] == lost


@pytest.mark.parametrize("kind", ["burst", "burst-bytes"])
def test_a_rate_with_a_burst_is_a_token_bucket_behind_a_queue(run: RunFiles, kind: str) -> None:
    """A packet leaves when the bucket holds it and the one before it has left; it is lost where the queue is full."""
    full = 8 * S * BURST // RATE
    tokens, since, early, lost = full, -S, 0, 0
    waiting: list[Sent] = []
    for each in passage(run.cell(kind=kind), DELAY):
        waiting = [other for other in waiting if (other.left_ns or 0) > each.came_ns]
        if kind == "burst":
            room = 20 - len(waiting)
        else:
            room = 40_000 - sum(other.frame.ip_bytes for other in waiting) - each.frame.ip_bytes + 1
        at_once = any(abs((other.left_ns or 0) - each.came_ns) < NEAR for other in waiting)
        if each.left_ns is None:
            assert room <= 0 or at_once, each
            lost += 1
            continue
        assert room > 0 or at_once, each
        waiting.append(each)
        due = max(each.came_ns, since, since + needs(each.frame, 0) - tokens)
        assert abs(each.left_ns - due) < NEAR, (each, due)
        at_its_coming = each.left_ns - each.came_ns < NEAR
        early += at_its_coming and each.left_ns - since < needs(each.frame, 0) - NEAR
        tokens = min(full, tokens + each.left_ns - since) - needs(each.frame, 0)
        since = each.left_ns
    assert lost > 50
    assert early > 50  # from what the bucket held


def slots_of(passed: list[Sent], after_ns: int, packets: int, size: int) -> Iterator[int]:
    """When netem's slots let each packet go (sch_netem.c: netem_dequeue, get_slot_next): a slot counts from when the
    packets before it really left.
    """
    opens, count, room = -S, packets, size
    waiting = list(passed)
    now = waiting[0].came_ns
    while waiting:
        head = waiting[0]
        if opens < head.came_ns <= now:  # nothing left in this slot: the next begins with the packet that came
            opens, count, room = now + after_ns, packets, size
        if head.came_ns <= now and opens <= now:
            yield now
            now = waiting.pop(0).left_ns or 0
            count, room = count - 1, room - head.frame.ip_bytes
            if count <= 0 or room <= 0:
                opens, count, room = now + after_ns, packets, size
        else:
            now = max(head.came_ns, opens)


@pytest.mark.parametrize(("kind", "packets", "size"), [("slots", 8, 1 << 40), ("slots-bytes", 1 << 40, 6000)])
def test_packets_leave_together_in_slots(run: RunFiles, kind: str, packets: int, size: int) -> None:
    """Every packet leaves in its slot: 5 ms after the first that waits came, or after the slot before was full."""
    sent = passage(run.cell(kind=kind), DELAY)
    passed = [each for each in sent if each.left_ns is not None]
    expected = list(slots_of(passed, 5 * MS, packets, size))
    wrong = [(e, each) for each, e in zip(passed, expected, strict=True) if abs((each.left_ns or 0) - e) > NEAR]
    assert wrong == []
    assert len(passed) < len(sent)
    assert len(set(expected)) > 100


def test_drawn_slots_are_within_their_bounds(run: RunFiles) -> None:
    """From the first that waits to the group's departure 2 to 9 ms, as many short as long ones."""
    groups: list[list[Sent]] = []
    for each in passage(run.cell(kind="slots-drawn"), DELAY):
        assert each.left_ns is not None
        if groups and each.left_ns - (groups[-1][-1].left_ns or 0) < 500 * US:
            groups[-1].append(each)
        else:
            groups.append([each])
    waits = [(group[0].left_ns or 0) - group[0].came_ns for group in groups]
    assert len(waits) > 80
    assert 2 * MS - NEAR < min(waits) < 3 * MS
    assert 8 * MS < max(waits) < 9 * MS + NEAR
    assert abs(sum(waits) / len(waits) - 5.5 * MS) < 0.8 * MS
