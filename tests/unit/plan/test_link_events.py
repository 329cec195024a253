"""A link's own recurring events: expanded into the cell's timeline, no fault under test."""

from __future__ import annotations

import msgspec
import pytest
from netwarp.core.types import Cell
from netwarp.measure.planned_paths import faults_met, faults_of
from netwarp.store.init_records import Exit, Timeline
from netwarp.testbed.compile import Clock, S, compile_cell
from netwarp.testbed.readback import verify
from support.specs import BASE, cell_of, problems_of, replaced

MS = 10**6
DELAY = 'one_way_delay = "20 ms"\n'
OWN = '[link.p1.event.gap]\naction = "blackhole"\nat = "3 s"\nfor = "50 ms"\nevery = "3 s"\n'
LEO = replaced(
    'rate = "1 Mbit/s"\nqueue = "50 packets"\none_way_delay = "20 ms"\n', 'profile = "leo-handover"\n'
).replace('"10 s"', '"100 s"')


def moments(cell: Cell) -> list[tuple[float, str, str]]:
    """(seconds, name, action) of the timeline."""
    return [(event.at_ns / 1e9, event.name, event.action) for event in cell.timeline]


def test_a_links_event_repeats_until_the_cell_ends() -> None:
    gap = [(at + more, "p1.gap", action) for at in (3, 6, 9) for more, action in ((0, "blackhole"), (0.05, "repair"))]
    assert moments(cell_of(BASE + OWN)) == gap
    assert moments(cell_of((BASE + OWN).replace('"10 s"', '"2 s"'))) == []  # shorter than its first time
    # what would end after the cell does not end
    assert moments(cell_of((BASE + OWN).replace('"10 s"', '"9.02 s"')))[-1] == (9.0, "p1.gap", "blackhole")


def test_a_profiles_events_and_what_the_link_says_of_them() -> None:
    cell = cell_of(LEO)
    gaps = [at for at, name, action in moments(cell) if (name, action) == ("p1.handover", "blackhole")]
    assert gaps == [15, 30, 45, 60, 75, 90]
    delays: dict[float, int] = {}
    for event in cell.timeline:
        if event.action == "change" and event.forward is not None:
            delays[event.at_ns / 1e9] = event.forward.one_way_delay_ns // MS  # the last of one instant stays
    assert delays == {15: 25, 30: 40, 45: 15, 60: 25, 75: 40, 90: 15}
    assert all(event.forward is None or event.forward.keeps_order for event in cell.timeline)
    sooner = cell_of(LEO + '[link.p1.event]\nhandover = { every = "5 s" }\nfarther = { for = "0 s" }\n')
    names = [name for _, name, action in moments(sooner) if action in ("blackhole", "change")]
    assert names.count("p1.handover") == 17
    assert "p1.farther" not in names


def test_a_links_own_event_is_no_fault_under_test() -> None:
    text = BASE + OWN + '[event.real]\naction = "cut"\nlink = "p1"\nat = "4 s"\nfor = "1 s"\n'
    cell = cell_of(text)
    assert [fault.name for fault in faults_of(cell.timeline)] == ["real"]
    assert [fault.name for fault in faults_met(cell, cell.flows[0])] == ["real"]


def test_an_event_of_the_spec_may_repeat_too_and_is_a_fault_each_time() -> None:
    text = BASE + '[event.e]\naction = "cut"\nlink = "p1"\nat = "1 s"\nfor = "1 s"\nevery = "4 s"\n'
    assert [(fault.from_ns // S, (fault.to_ns or 0) // S) for fault in faults_of(cell_of(text).timeline)] == [
        (1, 2), (5, 6), (9, 10),
    ]  # fmt: skip
    shifted = cell_of(text + 'phase = { uniform = ["0 s", "500 ms"] }\n')
    starts = [event.at_ns for event in shifted.timeline if event.action == "cut"]
    assert len({start % (4 * S) for start in starts}) == 1  # one draw shifts them all
    assert starts[0] != S


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BASE + OWN.replace('for = "50 ms"\n', ""), "needs `for`"),
        (BASE + OWN.replace('for = "50 ms"', 'for = "4 s"'), "one must end first"),
        (BASE + OWN.replace('every = "3 s"', 'every = "1 ms"').replace('"50 ms"', '"500 us"'), "more than 1000 times"),
        (BASE + OWN.replace("blackhole", "link"), "is none of cut, blackhole, change"),
        (BASE + OWN + 'link = "p1"\n', 'unknown key "link"'),
        (BASE + OWN + '[event.e]\naction = "cut"\nlink = "p1"\nat = "3 s"\nfor = "1 s"\n', 'overlaps event "p1.gap"'),
        (replaced(DELAY, DELAY + 'jitter = "1 ms"\nreorder = "1 %"\n'), "stands alone"),
        (replaced(DELAY, DELAY + 'in_order = true\nreorder = "1 %"\n'), "stands alone"),
        (replaced('one_way_delay = "20 ms"', 'one_way_delay = "3 s"\njitter = "2.2 s"'), "2.147 s"),
        (replaced('one_way_delay = "20 ms"', 'one_way_delay = "3 s"\nreorder = "1 %"'), "2.147 s"),
    ],
)  # fmt: skip
def test_mistakes(text: str, says: str) -> None:
    assert any(says in line for line in problems_of(text)), problems_of(text)


def test_events_after_a_cells_end_are_not_expected() -> None:
    """A flow may end long before the timeline: the cell ends with it, in the state it then has."""
    compiled = compile_cell(cell_of(BASE + OWN), Clock(t0_realtime_ns=0))
    first, second = list(compiled.events)[:2]
    timeline = [step.number for step in numbered(compiled.steps) if step.number <= first and step.at_ns is not None]
    begun = [Timeline(number, "netlink", 0, 0) for number in timeline]
    records = [*begun, Exit("ftp.sender", 0, None, killed=False, t_ns=3_010_000_000)]
    played = set(timeline)
    at_end = next(dump for dump in compiled.dumps.values() if dump.qdiscs is None and dump.namespace == 2)
    (root, *_) = compiled.expected(at_end, played)  # type: ignore[arg-type]
    assert root.stage.loss == 0xFFFFFFFF  # it ended inside the first gap
    (whole, *_) = compiled.expected(at_end, {*played, second})  # type: ignore[arg-type]
    assert whole.stage.loss == 0
    missing = next(check for check in verify(compiled, records)[0] if check.check == "dumps").detail
    later = [number for number, dump in compiled.dumps.items() if dump.at_ns is not None and number > first]
    assert later
    assert not any(f"(step {number})" in missing for number in later)
    # but a step whose time had come is missed
    records[-1] = Exit("ftp.sender", 0, None, killed=False, t_ns=9_900_000_000)
    missing = next(check for check in verify(compiled, records)[0] if check.check == "dumps").detail
    assert all(f"(step {number})" in missing for number in later)


class Numbered(msgspec.Struct):
    """A step and its line."""

    number: int
    at_ns: int | None


def numbered(steps: list[object]) -> list[Numbered]:
    """As steps.txt counts them: line 1 is its head."""
    return [Numbered(index + 2, getattr(step, "at_ns", None)) for index, step in enumerate(steps)]
