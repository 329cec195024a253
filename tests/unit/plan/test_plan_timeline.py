"""The events of a cell: faults, repairs, changes, lengths and phases drawn from the seed."""

from __future__ import annotations

from netwarp.core.types import Event
from netwarp.plan import make_plan
from support.specs import BASE, TWO, cell_of, plan_of, problems_of, replaced, shape, spec_of

MS, S = 10**6, 10**9
X = '[factor.x]\nlevels = ["1 s", "2 s", "3 s"]\n'


def event(body: str) -> str:
    return f'[event.e]\nlink = "p1"\n{body}\n'


def test_fault_and_repair() -> None:
    text = TWO + event('action = "blackhole"\nat = "2 s"\nfor = "1 s"\ndirections = ["backward"]')
    assert cell_of(text).timeline == (
        Event(2 * S, "e", "blackhole", "p1", directions=("backward",)),
        Event(3 * S, "e", "repair", "p1", directions=("backward",)),
    )
    assert [e.action for e in cell_of(BASE + event('action = "cut"\nat = "2 s"')).timeline] == ["cut"]
    assert (
        cell_of(BASE + event('action = "nonsense"\nat = "2 s"\nfor = "0 s"').replace("nonsense", "cut")).timeline == ()
    )


def test_a_change_and_its_end() -> None:
    text = BASE + event('action = "change"\nat = "2 s"\nfor = "1 s"\nrate = "100 kbit/s"\nbackward = { loss = "10 %" }')
    there, back = cell_of(text).timeline
    slow = shape(rate_bit_s=100_000)
    assert (there.forward, there.backward) == (slow, shape(rate_bit_s=100_000, loss_ratio=0.1))
    assert (back.at_ns, back.forward, back.backward) == (3 * S, shape(), shape())
    assert cell_of(text).random
    one = cell_of(
        BASE + event('action = "change"\nat = "2 s"\nforward = { rtt = "1 s" }').replace("rtt", "one_way_delay")
    )
    assert (one.timeline[0].directions, one.timeline[0].backward) == (("forward",), None)
    assert one.timeline[0].forward == shape(one_way_delay_ns=S)


def test_changed_rate_makes_the_bdp_queue_anew() -> None:
    text = replaced('queue = "50 packets"', 'queue = "1 bdp"') + event(
        'action = "change"\nat = "2 s"\nrate = "10 Mbit/s"'
    )
    change = cell_of(text).timeline[0].forward
    assert change is not None
    assert change.queue_packets == 34  # 10 Mbit/s x 40 ms = 50,000 B


def test_a_link_end_goes_down() -> None:
    text = BASE + event('action = "link"\nat = "2 s"\nfor = "1 s"\nend = { hop = "a" }')
    down, up = cell_of(text).timeline
    assert (down.end, down.directions, up.action, up.end) == ("p1.hop:a", ("forward", "backward"), "repair", None)


def test_lengths_are_drawn_from_the_seed() -> None:
    text = BASE + event('action = "cut"\nat = "2 s"\nfor = "1 s"\nfor_phase = { uniform = ["0 s", "2 s"] }')
    lengths = []
    for cell in make_plan(spec_of(text), repetitions=50).cells:
        fault, repair = cell.timeline
        assert fault.at_ns == 2 * S, "the beginning is not drawn"
        lengths.append(repair.at_ns - fault.at_ns)
        assert cell.random
    assert len(set(lengths)) == 50
    assert 1 * S <= min(lengths) < 1.3 * S < 2.7 * S < max(lengths) <= 3 * S
    again = [cell.timeline for cell in make_plan(spec_of(text), seed=2, repetitions=49).cells]
    assert again == [cell.timeline for cell in make_plan(spec_of(text), seed=1, repetitions=50).cells[1:]]
    both = event(
        'action = "cut"\nat = "2 s"\nfor = "1 s"\nfor_phase = { uniform = ["0 s", "1 s"] }\n'
        'phase = { uniform = ["0 s", "1 s"] }'
    )
    fault, repair = cell_of(BASE + both).timeline
    assert fault.at_ns - 2 * S != repair.at_ns - fault.at_ns - S, "two draws, not one twice"
    steady = cell_of(BASE + event('action = "cut"\nat = "2 s"\nfor = "1 s"\nfor_phase = { uniform = ["1 s", "1 s"] }'))
    assert (steady.random, steady.timeline[1].at_ns) == (False, 4 * S)


def test_phases_are_drawn_from_the_seed() -> None:
    text = BASE + event('action = "cut"\nat = "2 s"\nfor = "1 s"\nphase = { uniform = ["0 s", "1 s"] }')
    plan = make_plan(spec_of(text), repetitions=200)
    assert all(cell.random for cell in plan.cells)
    starts = [cell.timeline[0].at_ns for cell in plan.cells]
    assert all(cell.timeline[1].at_ns - cell.timeline[0].at_ns == S for cell in plan.cells)
    assert all(2 * S <= at <= 3 * S for at in starts)
    assert len(set(starts)) == 200
    assert 2.4 * S < sum(starts) / 200 < 2.6 * S
    assert make_plan(spec_of(text), seed=11).cells[0].timeline == plan.cells[10].timeline


def test_events_in_time_order_and_as_listed_at_one_time() -> None:
    text = TWO + (
        '[event.late]\naction = "cut"\nlink = "p1"\nat = "5 s"\n'
        '[event.first]\naction = "cut"\nlink = "p2"\nat = "1 s"\nfor = "4 s"\n'
        '[event.again]\naction = "cut"\nlink = "p2"\nat = "5 s"\n'
    )
    assert [(e.at_ns // S, e.name, e.action) for e in cell_of(text).timeline] == [
        (1, "first", "cut"), (5, "first", "repair"), (5, "late", "cut"), (5, "again", "cut"),
    ]  # fmt: skip


def test_unless_and_only() -> None:
    text = BASE + X + event('action = "cut"\nat = "2 s"\nonly = { x = ["1 s", "2 s"] }\nunless = { x = "2 s" }')
    assert [len(cell.timeline) for cell in plan_of(text).cells] == [1, 0, 0]


def test_what_ends_comes_before_what_begins_at_that_time_in_any_order_listed() -> None:
    first = '[event.first]\nlink = "p1"\naction = "change"\nat = "2 s"\nfor = "2 s"\nrate = "2 Mbit/s"\n'
    second = '[event.second]\nlink = "p1"\naction = "change"\nat = "4 s"\nfor = "2 s"\nrate = "3 Mbit/s"\n'
    there, back, again, end = cell_of(BASE + second + first).timeline
    assert [event.name for event in (there, back, again, end)] == ["first", "first", "second", "second"]
    assert again.at_ns == back.at_ns and again.forward == shape(rate_bit_s=3_000_000)
    assert cell_of(BASE + first + second).timeline == (there, back, again, end)


def change(name: str, at: str, body: str) -> str:
    return f'[event.{name}]\naction = "change"\nlink = "p1"\nat = "{at}"\n{body}\n'


def test_a_change_back_to_the_links_own_rate() -> None:
    """It takes the place of the change before it, in the directions in which there was one."""
    there = change("slow", "2 s", 'forward = { rate = "100 kbit/s" }')
    slow, back = cell_of(BASE + there + change("back", "4 s", 'rate = "1 Mbit/s"')).timeline
    assert (slow.directions, back.directions) == (("forward",), ("forward",))
    assert (back.at_ns, back.forward, back.backward) == (4 * S, shape(), None)
    other = change("other", "4 s", 'backward = { loss = "1 %" }')
    assert [event.directions for event in cell_of(BASE + there + other).timeline] == [("forward",), ("backward",)]


def test_a_change_that_changes_nothing_is_told_once() -> None:
    for body in ('rate = "1 Mbit/s"', 'rate = "1 Mbit/s"\nevery = "1 s"\nfor = "10 ms"', ""):
        (problem,) = problems_of(BASE + change("e", "2 s", body))
        assert "changes nothing" in problem
    both = BASE + change("e", "2 s", 'loss = "1 %"') + change("f", "3 s", 'rate = "1 Mbit/s"')
    assert cell_of(both).timeline[1].forward == shape()


def test_a_rate_that_changes_sends_a_packet_in_a_minute() -> None:
    jumbo = replaced("between", 'mtu = "9000 B"\nbetween')
    (problem,) = problems_of(jumbo + change("e", "2 s", 'rate = "1 kbit/s"'))
    assert "at a rate that changes a packet takes at most 60 s: not below 1202 bit/s" in problem
    assert len(cell_of(jumbo + change("e", "2 s", 'rate = "1208 bit/s"')).timeline) == 1
    slow = replaced('"1 Mbit/s"', '"1 kbit/s"', jumbo)
    assert len(cell_of(slow + change("e", "2 s", 'loss = "1 %"')).timeline) == 1


def test_a_thousand_changes() -> None:
    text = BASE + "".join(change(f"e{n}", f"{n + 1} ms", f'rate = "{1 + n % 3} Mbit/s"') for n in range(1000))
    assert len(cell_of(text).timeline) == 1000
