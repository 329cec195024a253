"""Schedules of packets: the grammar of a factor with drops, and how a plan grows from the packets of its cells."""

from __future__ import annotations

import itertools

import msgspec
import pytest
from netwarp.core.errors import SpecError
from netwarp.core.link_types import PacketRule
from netwarp.core.outputs import matches
from netwarp.core.schedule_levels import PacketPosition, packets_of_level
from netwarp.core.types import Cell
from netwarp.plan import make_plan
from netwarp.plan.replay import replay_spec
from netwarp.plan.schedules import children, directions_of, most_cells, scheduled_cells, undisturbed, with_cells
from netwarp.plan.types import Plan
from support.specs import BASE, plan_of, problems_of, spec_of

DROPS = "[factor.schedule]\ndrops = { first = 4, together = 2 }\n"


def packets(number: int, gap_ns: int = 10_000_000) -> list[PacketPosition]:
    """Packets that go there and back in turn."""
    return [
        PacketPosition(
            "p1",
            "backward" if place % 2 else "forward",
            1 + place // 2,
            place * gap_ns,
            f"DATA {place + 1}",
            "b" if place % 2 else "a",
            2 * gap_ns if place < number - 2 else None,
        )
        for place in range(number)
    ]


def grown(plan: Plan, positions: list[PacketPosition]) -> Plan:
    """The plan with everything that follows if each cell has the same packets."""
    done: set[str] = set()
    while True:
        new: list[Cell] = []
        for each in scheduled_cells(plan):
            if each.size < each.schedule.together and each.cell.id not in done:
                done.add(each.cell.id)
                new += children(each, positions)
        if not new:
            return plan
        plan = with_cells(plan, [*plan.cells, *new])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("drops = { together = 2 }", "its first is missing"),
        ("drops = { first = 0 }", "whole number from 1 to 1000"),
        ("drops = { first = 4, together = 5 }", "whole number from 1 to 4"),
        ('drops = { first = 4, of = ["p1"] }', "is no direction of a link"),
        (
            'drops = { first = 4, of = ["p9.forward"] }',
            'no cell has the direction "p9.forward"; there is: p1.b',
        ),
        ("drops = { first = 4 }\nreorders = { first = 4 }", "needs a factor of its own"),
        ('drops = { first = 4 }\nlevels = ["x"]', "leave this out"),
        ("reorders = { first = 4, together = 2 }", "only one packet at a time"),
        ("drops = { first = 4, last = 2 }", 'unknown key "last"'),
        ('levels = ["*"]', "cannot name a level"),
    ],
)
def test_what_is_wrong_is_said(text: str, says: str) -> None:
    assert any(says in line for line in problems_of(f"{BASE}[factor.schedule]\n{text}\n"))


def test_two_schedules_need_two_experiments() -> None:
    text = f"{BASE}{DROPS}[factor.late]\nreorders = {{ first = 3 }}\n"
    assert "varies the schedules schedule, late" in "".join(problems_of(text))
    apart = '[experiment.x]\nfactors = ["schedule"]\n[experiment.y]\nfactors = ["late"]\n'
    assert {each.factor for each in scheduled_cells(plan_of(text + apart))} == {"schedule", "late"}


def test_rules_of_the_link_itself_are_refused() -> None:
    with pytest.raises(SpecError, match="has rules for single packets already"):
        plan_of(BASE.replace('one_way_delay = "20 ms"', 'one_way_delay = "20 ms"\ndrop = [3]') + DROPS)


def test_a_router_that_sends_is_refused() -> None:
    far = '[node.r]\nkind = "router"\n[link.p2]\nbetween = ["r", "b"]\nrate = "1 Mbit/s"\nqueue = "9 packets"\n'
    text = BASE.replace('between = ["a", "b"]', 'between = ["a", "r"]').replace("[flow.f]", f"{far}[flow.f]")
    text = text.replace('paths = ["p1"]', 'paths = [{ sender = "p1", receiver = "p2" }]')
    with pytest.raises(SpecError, match=r'come from the router r.*of = \["p1.forward", "p2.backward"\]'):
        plan_of(text + DROPS)
    plan_of(text + DROPS.replace("first = 4", 'first = 4, of = ["p1.forward", "p2.backward"]'))


def test_every_set_of_packets_comes_once_and_in_order() -> None:
    plan = plan_of(BASE + DROPS)
    assert most_cells(plan) == 1 + 4 + 6
    whole = grown(plan, packets(9))
    assert [cell.factors["schedule"] for cell in whole.cells] == [
        "none",
        *(f"DATA {number}" for number in range(1, 5)),
        *(f"DATA {one} + DATA {two}" for one, two in itertools.combinations(range(1, 5), 2)),
    ]
    assert tuple(level.name for level in whole.factors[0].levels) == tuple(
        cell.factors["schedule"] for cell in whole.cells
    )
    assert len({cell.id for cell in whole.cells}) == len(whole.cells)
    for cell in whole.cells:
        link = cell.links[0]
        dropped = sum(len(rule.numbers) for shape in (link.forward, link.backward) for rule in shape.packet_rules)
        assert dropped == packets_of_level(cell.factors["schedule"])
    assert undisturbed(whole) == plan


def test_a_packet_that_is_not_there_is_not_lost() -> None:
    assert len(grown(plan_of(BASE + DROPS), packets(2)).cells) == 1 + 2 + 1


def test_each_cell_counts_on_every_direction() -> None:
    """Also without a schedule: a packet program changes the kernel's random numbers."""
    for cell in grown(plan_of(BASE + DROPS), packets(9)).cells:
        link = cell.links[0]
        assert len(link.forward.packet_rules) == len(link.backward.packet_rules) == 1
    assert plan_of(BASE + DROPS).cells[0].links[0].forward.packet_rules == (PacketRule("drop", ()),)


def test_packets_from_a_time_on() -> None:
    text = BASE + '[factor.schedule]\nduplicates = { first = 2, from = "20 ms", of = ["p1.forward"] }\n'
    plan = plan_of(text)
    (each,) = scheduled_cells(plan)
    wanted = {(link.name, side) for link, side in directions_of(each.schedule, each.cell)}
    mine = [one for one in packets(9) if (one.link, one.direction) in wanted]
    assert [cell.factors["schedule"] for cell in children(each, mine)] == ["DATA 3 twice", "DATA 5 twice"]


def test_a_late_packet_is_overtaken_within_a_round_trip() -> None:
    """The next packet of its direction is 20 ms later, the link's round trip 40 ms."""
    (each,) = scheduled_cells(plan_of(f"{BASE}[factor.late]\nreorders = {{ first = 9 }}\n"))
    cells = children(each, packets(5))
    assert [cell.factors["late"] for cell in cells] == ["DATA 1 late", "DATA 2 late", "DATA 3 late"]
    assert cells[0].links[0].forward.packet_rules == (PacketRule("delay", (1,), "", 20_001_000),)
    assert children(each, packets(5, gap_ns=20_000_000)) == []


def test_a_packet_of_a_burst_cannot_be_late_by_one_place() -> None:
    """Five packets at one instant, then one more: whatever is held back would fall behind all of them."""
    (each,) = scheduled_cells(plan_of(f'{BASE}[factor.late]\nreorders = {{ first = 9, of = ["p1.forward"] }}\n'))
    times = [0, 0, 0, 0, 0, 5_000_000, 9_000_000]
    gaps = [*(after - before for before, after in itertools.pairwise(times)), None]
    burst = [
        PacketPosition("p1", "forward", number, time_ns, f"DATA {number}", "a", gap_ns)
        for number, (time_ns, gap_ns) in enumerate(zip(times, gaps, strict=True), 1)
    ]
    assert [cell.factors["late"] for cell in children(each, burst)] == ["DATA 4 late", "DATA 5 late", "DATA 6 late"]


def test_outputs_that_do_not_name_it_are_of_the_undisturbed_cell() -> None:
    table = '[table.t]\nmetric = "packets"\n[table.u]\nmetric = "packets"\nrows = ["schedule"]\n'
    whole = grown(plan_of(BASE + DROPS + table), packets(9))
    counts = [sum(matches(cell.factors, output.where, ()) for cell in whole.cells) for output in whole.tables]
    assert counts == [1, 11]


def test_where_chooses_the_undisturbed_cell() -> None:
    spec = spec_of(BASE + DROPS)
    alone = make_plan(spec, where=[("schedule", "none")])
    assert alone.cells == make_plan(spec).cells and most_cells(alone) == 1
    with pytest.raises(SpecError, match="the others are found while it runs"):
        make_plan(spec, where=[("schedule", "SYN")])


@pytest.mark.parametrize("action", ["drops", "duplicates", "reorders"])
def test_a_replay_is_the_same_cell(action: str) -> None:
    """Of a factor with other levels, an `only` and a placeholder."""
    more = '[factor.wait]\nlevels = ["5 ms", "20 ms"]\n[factor.wait.level."5 ms"]\nflow.f.port = 7000\n'
    text = BASE.replace('one_way_delay = "20 ms"', 'one_way_delay = "{wait}"') + more
    spec = spec_of(f'{text}[factor.schedule]\n{action} = {{ first = 4 }}\nonly = {{ wait = "5 ms" }}\n')
    for cell in grown(make_plan(spec), packets(9, gap_ns=1_000_000)).cells:
        (again,) = plan_of(replay_spec(spec, cell, 'one "cell"')).cells
        same = {"experiment": cell.experiment, "spec": cell.spec}
        assert msgspec.structs.replace(again, **same) == cell


def test_a_replay_of_many_packets_has_a_level_that_a_spec_may_have() -> None:
    spec = spec_of(BASE + "[factor.schedule]\ndrops = { first = 30, together = 4 }\n")
    (cell,) = make_plan(spec).cells
    level = " + ".join(f"HEARTBEAT ACK {number}" for number in (10, 11, 12, 13))
    cell = msgspec.structs.replace(cell, factors={"schedule": level})
    plan = plan_of(replay_spec(spec, cell, "x"))
    (again,) = plan.cells
    assert again.factors == {"schedule": "4 packets from HEARTBEAT ACK 10"}
    assert [each.title for each in plan.factors[0].levels] == ["none", level]
