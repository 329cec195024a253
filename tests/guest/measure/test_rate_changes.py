"""A rate that changes holds for what waits: packet by packet, from the captures of a link that is always busy."""

from __future__ import annotations

import random
from bisect import bisect_right
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.chain_packets import frames, from_host
from support.run_files import RunFiles
from support.specs import two_hosts

MS, S, US = 10**6, 10**9, 10**3
DELAY = 10 * MS
RATES = (10_000_000, 500_000, 2_000_000, 1_000_000, 8_000_000)
CHANGES = 1000
START, LAST = 1 * S, 15 * S
OWN = 5_000_000
QUEUES = {
    "packets": 'queue = "20 packets"',
    "bytes": 'queue = "30 kB"',
    "frames": 'queue = "20 packets"\nlayer = "ethernet"',
    "fq_codel": 'queue = "1000 packets"\naqm = { kind = "fq_codel", ecn = false }',
    "red": 'queue = "60 kB"\naqm = { kind = "red", min = "10 kB", max = "30 kB" }',
    "cake": 'queue = "4 MiB"\naqm = { kind = "cake" }',
}


def schedule() -> list[tuple[int, int]]:
    """(time, rate) of every change, the link's own rate first. Some are to the rate there is."""
    draw = random.Random(26)
    times = sorted(draw.sample(range(START // US, LAST // US), CHANGES))
    rates = [draw.choice((*RATES, OWN)) for _ in range(CHANGES - 1)]
    return [(-S, OWN), *((at * US, rate) for at, rate in zip(times, [RATES[0], *rates], strict=True))]


CHANGED = schedule()


def spec(probe: Path) -> str:
    """A load of 16 Mbit/s of mixed sizes over a link of six kinds of queue, whose rate changes a thousand times."""
    events = "".join(
        f'[event.e{number}]\naction = "change"\nlink = "p1"\ndirections = ["forward"]\nat = "{at / US:.0f} us"\n'
        f'rate = "{rate} bit/s"\n'
        for number, (at, rate) in enumerate(CHANGED[1:])
    )
    levels = "".join(
        f"[factor.queue.level.{name}]\n" + "".join(f"link.p1.forward.{line}\n" for line in text.split("\n"))
        for name, text in QUEUES.items()
    )
    return two_hosts(
        'name = "rates"\nduration = "17 s"',
        f'one_way_delay = "10 ms"\nrate = "{OWN} bit/s"\nqueue = "20 packets"',
        f"""
[flow.load]
protocol = "udp"
start = "0 s"
stop = "16 s"
[flow.load.program]
sender = ["{probe}", "send", "{{to}}", "{{port}}", "1500,1500,700,300", "30000", "500000", "{S // 2}", "{16 * S}"]
receiver = ["{probe}", "sink", "{{port}}"]
ready = "listening"
{events}
[factor.queue]
levels = {list(QUEUES)}
{levels}""",
    )


@pytest.fixture(scope="module")
def run(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """Every kind of queue."""
    text = spec(checkout.root / "build" / "bin" / "probe")
    return checkout.run_spec(tmp_path_factory.mktemp("rates"), text, "--no-report").completed()


def rates_at(t_ns: int) -> set[int]:
    """The rate at a time; two within 5 us of a change."""
    return {CHANGED[bisect_right(CHANGED, (t_ns + side, 1 << 62)) - 1][1] for side in (-5 * US, 5 * US)}


@pytest.mark.parametrize("queue", QUEUES)
def test_every_packet_takes_its_time_at_the_rate_of_its_start(run: RunFiles, queue: str) -> None:
    """A packet begins when it comes, or when the one before it is sent. With a queue in packets it arrives when it is
    sent; with the others when its sending begins (docs/spec.md).
    """
    (sender,), (receiver,) = (run.cell(queue=queue).captures(node, "p1") for node in "ab")
    came = {frame.identity: frame.t_ns + DELAY for frame in from_host("a", frames(sender))}
    at_its_end, header = queue in ("packets", "frames"), 14 if queue == "frames" else 0
    wrong, frees, waited, late = [], {0}, 0, 0  # two times where a packet began as the rate changed
    for frame in from_host("a", frames(receiver)):
        waited += min(frees) > came[frame.identity]
        ways = []
        for begins in (max(free, came[frame.identity]) for free in frees):
            takes = {8 * S * (frame.ip_bytes + header) // rate for rate in rates_at(begins)}
            ways += [(begins + at_its_end * took, begins + took) for took in takes]
        arrives = min((way[0] for way in ways), key=lambda at: abs(at - frame.t_ns))
        if abs(arrives - frame.t_ns) > 2 * US:
            wrong.append((frame.t_ns, frame.ip_bytes, ways))
        late += frame.t_ns - arrives
        frees = {free - at + frame.t_ns for at, free in ways if abs(at - arrives) < 2 * US}
    assert waited > 5000
    assert wrong == []
    assert abs(late) < 8 * S * 1500 // max(RATES)  # of what the link sends in all the time, a packet


SAME = two_hosts(
    'name = "same"\nduration = "10 s"',
    'one_way_delay = "10 ms"\nrate = "10 Mbit/s"\nqueue = "{queue}"',
    """
[flow.bulk]
protocol = "tcp"
[factor.queue]
levels = ["30 packets", "45 kB"]
[factor.changes]
levels = ["none", "other", "same", "dip"]
[event.same]
only = { changes = ["same"] }
action = "change"
link = "p1"
directions = ["forward"]
rate = "10 Mbit/s"
at = "1 s"
every = "100 ms"
for = "50 ms"
[event.dip]
only = { changes = ["dip"] }
action = "change"
link = "p1"
rate = "12 kbit/s"
at = "2 s"
for = "0.6 s"
[event.other]                    # so that the others are changes
only = { changes = ["other", "same"] }
action = "change"
link = "p1"
directions = ["forward"]
rate = "5 Mbit/s"
at = "9.96 s"
for = "20 ms"
""",
)


@pytest.fixture(scope="module")
def same(checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> RunFiles:
    """A link without events, with a change at its end, with changes to the same rate before that, and with a dip."""
    return checkout.run_spec(tmp_path_factory.mktemp("same"), SAME, "--no-report").completed()


@pytest.mark.parametrize(("queue", "beside"), [("30 packets", "none"), ("30 packets", "other"), ("45 kB", "other")])
def test_a_change_to_the_same_rate_alters_nothing(same: RunFiles, queue: str, beside: str) -> None:
    """Until the other rate every packet comes as without the changes; with a queue in packets, as on a link without
    any, whose rate is netem's. (tbf loses the 256 ns by which a timer is late, packet by packet, where htb does not.)
    """
    captures = [same.cell(queue=queue, changes=changes).captures("b", "p1")[0] for changes in (beside, "same")]
    plain, changed = ([frame for frame in frames(each) if frame.t_ns < 9900 * MS] for each in captures)
    assert [(frame.length, frame.flags) for frame in changed] == [(frame.length, frame.flags) for frame in plain]
    assert len(plain) > 8000
    assert max(abs(one.t_ns - other.t_ns) for one, other in zip(plain, changed, strict=True)) < 2 * US


@pytest.mark.parametrize("queue", ["30 packets", "45 kB"])
def test_after_a_dip_a_link_has_its_rate_again(same: RunFiles, queue: str) -> None:
    """One packet is sent at 12 kbit/s, and takes a second; netem had sent all that waited so, a packet a second."""
    there = from_host("a", frames(same.cell(queue=queue, changes="dip").captures("b", "p1")[0]))
    since = [frame.t_ns - there[0].t_ns for frame in there]
    after = sum(frame.ip_bytes for frame, t_ns in zip(there, since, strict=True) if 5500 < t_ns // MS <= 9500)
    assert 8 * after / 4 > 0.99 * 10_000_000
