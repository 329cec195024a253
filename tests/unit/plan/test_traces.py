"""Traces of links: both formats, what a spec may say, the events they make, and a cell's id by a trace's content."""

from __future__ import annotations

import hashlib
import itertools
import re
from pathlib import Path

import msgspec
import pytest
from netwarp.core.errors import SpecError
from netwarp.core.frozen import from_json, to_json
from netwarp.core.link_types import LinkImpairment, Opportunities
from netwarp.core.types import Cell, Event
from netwarp.experiment.traces import read_trace
from netwarp.measure.planned_paths import capacity_bit_s, opportunities_bit_s
from netwarp.plan import make_plan
from netwarp.plan.traces import MOST_WAITING
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.delivery_program import LARGEST_RING, DeliveryProgram, ring_size
from netwarp.testbed.qdiscs import Fq, attributes_of
from support.specs import spec_of

MS, S = 10**6, 10**9
HEAD = """\
format = 1
name = "traces"
duration = "10 s"
[node.a]
[node.b]
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
[link.p1]
between = ["a", "b"]
one_way_delay = "20 ms"
queue = "50 packets"
backward = { rate = "1 Mbit/s" }
[link.p1.forward]
"""
VALUES = "time [s],rate [Mbit/s],one_way_delay,loss\n0,5,20 ms,0 %\n2,1,30 ms,0 %\n2.5,1,30 ms,0\n4.5,8,10 ms,1 %\n"


def cell_of(tmp_path: Path, keys: str, **files: str) -> Cell:
    """The cell of a spec with these keys of p1 forward; files: beside it, with . for _."""
    for name, text in files.items():
        (tmp_path / name.replace("_", ".")).write_text(text)
    (cell,) = make_plan(spec_of(HEAD + keys, tmp_path)).cells
    return cell


def changes(cell: Cell) -> list[tuple[int, LinkImpairment | None]]:
    return [(event.at_ns, event.forward) for event in cell.timeline]


def test_values_become_events(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, 'trace = "v.csv"\n', v_csv=VALUES)
    own = cell.links[0].forward
    assert (own.rate_bit_s, own.one_way_delay_ns, own.loss_ratio, own.queue_packets) == (5_000_000, 20 * MS, 0.0, 50)
    slow = msgspec.structs.replace(own, rate_bit_s=1_000_000, one_way_delay_ns=30 * MS)
    fast = msgspec.structs.replace(own, rate_bit_s=8_000_000, one_way_delay_ns=10 * MS, loss_ratio=0.01)
    assert changes(cell) == [(2 * S, slow), (4500 * MS, fast)]  # the row at 2.5 s changes nothing
    first: Event = cell.timeline[0]
    assert (first.name, first.action, first.directions, first.backward) == ("p1.trace", "change", ("forward",), None)
    assert first.of_the_link
    path = cell.flows[0].paths[0]
    assert path.bottleneck_bit_s == (5_000_000 * 2 + 1_000_000 * 2.5) / 4.5 // 1
    assert capacity_bit_s(cell, cell.flows[0], path, 0, 10 * S) == (5 * 2 + 1 * 2.5 + 8 * 5.5) * 1e6 / 10


def test_values_repeat_from_their_last_row_on(tmp_path: Path) -> None:
    text = "time,rate\n0 s,5 Mbit/s\n1 s,1 Mbit/s\n3 s,5 Mbit/s\n"
    cell = cell_of(tmp_path, 'trace = { file = "v.csv", after = "repeat" }\n', v_csv=text)
    assert [at / S for at, _ in changes(cell)] == [1, 3, 4, 6, 7, 9]
    assert [shape.rate_bit_s for _, shape in changes(cell) if shape] == [1_000_000, 5_000_000] * 3
    assert cell.flows[0].paths[0].bottleneck_bit_s == (5 + 2) * 10**6 // 3


def test_opportunities_are_in_the_cell(tmp_path: Path) -> None:
    text = "0\n3\n3\n10\n"
    cell = cell_of(tmp_path, 'trace = "x.down"\n', x_down=text)
    traced = cell.links[0].forward.opportunities
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert traced == Opportunities("x.down", digest, (0, 3, 0, 7), 10, 1504, 4, 4 * 1504 * 8 * 100)
    assert from_json(to_json(cell), Cell) == cell
    assert cell.flows[0].paths[0].bottleneck_bit_s == traced.mean_bit_s
    other = cell_of(tmp_path, 'trace = "x.down"\n', x_down="0\n3\n4\n10\n")
    assert other.id != cell.id
    ends = cell_of(tmp_path, 'trace = { file = "x.down", after = "end", opportunity = "1400 B", overhead = "0 B" }\n')
    traced = ends.links[0].forward.opportunities
    assert isinstance(traced, Opportunities)
    assert (traced.period_ms, traced.bytes, traced.overhead_bytes) == (None, 1400, 0)


def test_what_the_cell_cannot_reach_is_left_out(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, 'trace = "x.down"\n', x_down="".join(f"{at}\n" for at in range(1000, 100_000, 1000)))
    traced = cell.links[0].forward.opportunities
    assert isinstance(traced, Opportunities)
    assert len(traced.gaps_ms) == 21  # 10 s, 10 s of grace, and one that never comes
    assert traced.period_ms == 99_000


def test_opportunities_may_be_rates(tmp_path: Path) -> None:
    """Windows of 100 ms; one without opportunities is part of the next."""
    times = [10, 20, 30, 100, 350, 400]
    keys = 'trace = { file = "x.down", window = "100 ms", after = "hold" }\naqm = { kind = "codel" }\n'
    cell = cell_of(tmp_path, keys, x_down="".join(f"{at}\n" for at in times))
    rates = [(0, cell.links[0].forward.rate_bit_s), *((at, shape.rate_bit_s) for at, shape in changes(cell) if shape)]
    assert rates == [(0, 4 * 1500 * 80), (100 * MS, 2 * 1500 * 80 // 3)]


def test_capacity_counts_opportunities() -> None:
    traced = Opportunities("x", "", (0, 3, 0, 7), 10, 1504, 4, 1)
    for from_ms, to_ms in ((0, 10), (0, 3), (3, 4), (5, 25), (10, 1000)):
        times = [at + 10 * period for period, at in itertools.product(range(101), (0, 3, 3, 10))]
        there = sum(from_ms < at <= to_ms for at in times)
        expected = 8 * there * 1504 * 1000 / (to_ms - from_ms)
        assert opportunities_bit_s(traced, from_ms * MS, to_ms * MS) == pytest.approx(expected)


def test_the_line_of_opportunities(tmp_path: Path) -> None:
    cell = cell_of(tmp_path, 'trace = "x.down"\n', x_down="3\n3\n10\n")
    compiled = compile_cell(cell, Clock(t0_realtime_ns=0))
    (program,) = compiled.programs
    assert isinstance(program.program, DeliveryProgram)
    assert program.program.settings(2)[8:] == b"".join(at.to_bytes(4, "little") for at in (3, 3, 10, 0xFFFFFFFF))
    commands = "\n".join(step.command for step in compiled.steps if step.command)
    said = "fq limit 1000000 flow_limit 1000000 nopacing orphan_mask 0"
    assert f"tc qdisc replace dev b root handle 1: {said}" in commands
    asked = Fq(1000)
    assert Fq.decode(attributes_of(asked.encode())) == asked


def problem(tmp_path: Path, keys: str, **files: str) -> str:
    with pytest.raises(SpecError) as caught:
        cell_of(tmp_path, keys, **files)
    return str(caught.value)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ('trace = "other.csv"', 'there is no file "other.csv" beside the spec'),
        ('trace = "../v.csv"', 'there is no file "../v.csv" beside the spec'),
        ("trace = 5", "is a file, or a table with one"),
        ('trace = { after = "end" }', "file is missing"),
        ('trace = { file = "x.down", after = "hold" }', "is one of repeat, end"),
        ('trace = { file = "x.down", until = "end" }', 'unknown key "until"'),
        ('trace = "x.down"\nrate = "5 Mbit/s"', "opportunities are in place of a rate; leave rate out"),
        ('trace = "x.down"\naqm = { kind = "codel" }', "use them as rates, trace = {"),
        ('trace = "v.csv"\nrate = "5 Mbit/s"', "stands in the trace; leave rate out"),
        ('trace = "v.csv"\nburst = "16 kB"', "belongs to a rate that does not change; leave burst out"),
        ('trace = { file = "v.csv", window = "1 s" }', "is for a trace of opportunities"),
        ('trace = { file = "v.csv", after = "repeat" }', "has to say what the first says"),
        ('trace = "v.csv"\n[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\nrate = "1 Mbit/s"', "has a trace"),
    ],
)  # fmt: skip
def test_mistakes_are_said(tmp_path: Path, keys: str, said: str) -> None:
    assert said in problem(tmp_path, keys, v_csv=VALUES, x_down="3\n10\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("5\n3\n", "line 2: 3 comes after 5"),
        ("5\n\n", "line 2: '' is no time in whole ms"),
        ("0\n0\n", "lasts at least 1 ms"),
        ("rate,time\n", "its first column is not time"),
        ("time,bandwidth\n", "there is no column 'bandwidth'"),
        ("time,rate\n", "has a header and no row"),
        ("time,rate\n0 s\n", "line 2: 1 fields, but the header has 2"),
        ("time,rate\n0 s,5\n", "line 2, rate: '5' is a bare number"),
        ("time,rate\n1 s,5 Mbit/s\n", "begin with 0 s"),
        ("time,rate\n0 s,5 Mbit/s\n0 s,6 Mbit/s\n", "line 3: times begin with 0 s and rise"),
        ('time,rate\n0 s,"' + 200_000 * "5" + '"\n', "is no CSV: field larger than"),
        ("5\n" + 5000 * "5" + "\n", "line 2: '55555555555555555555' is no time in whole ms"),
    ],
)
def test_wrong_files_are_said(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read_trace(text.encode())


def test_the_mark_and_the_empty_lines_of_a_table_program_are_no_rows() -> None:
    rows = read_trace(b"time,rate\n0 s,5 Mbit/s\n").rows
    assert read_trace(b"\xef\xbb\xbftime,rate\r\n\r\n0 s,5 Mbit/s\r\n\r\n").rows == rows
    assert read_trace(b"\xef\xbb\xbf3\n10\n").opportunities_ms == (3, 10)


def test_one_mistake_of_a_trace_is_said_once(tmp_path: Path) -> None:
    said = problem(tmp_path, 'trace = "x.down"\naqm = { kind = "codel" }', x_down="0\n")
    assert "lasts at least 1 ms" in said
    assert len(said.splitlines()) == 1


def test_no_queue_is_longer_than_what_the_program_keeps(tmp_path: Path) -> None:
    assert ring_size(MOST_WAITING, None, 4) == LARGEST_RING > MOST_WAITING + 1
    assert cell_of(tmp_path, f'trace = "x.down"\nqueue = "{MOST_WAITING} packets"', x_down="3\n10\n")
    said = problem(tmp_path, f'trace = "x.down"\nqueue = "{MOST_WAITING + 1} packets"', x_down="3\n10\n")
    assert "is at most 65534 packets before a trace of opportunities" in said


def test_the_other_direction_may_change(tmp_path: Path) -> None:
    keys = 'trace = "x.down"\n[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\ndirections = ["backward"]\n'
    cell = cell_of(tmp_path, f'{keys}one_way_delay = "50 ms"\n', x_down="3\n10\n")
    (event,) = cell.timeline
    assert event.forward is None
    assert event.backward is not None
    assert event.backward.one_way_delay_ns == 50 * MS


def test_a_level_may_name_a_trace(tmp_path: Path) -> None:
    (tmp_path / "one.down").write_text("3\n10\n")
    (tmp_path / "two.down").write_text("5\n")
    keys = 'trace = "{network}"\n[factor.network]\nlevels = ["one.down", "two.down"]\n'
    spec = spec_of(HEAD + keys, tmp_path)
    assert {"one.down", "two.down"} <= spec.files.keys()
    one, two = make_plan(spec).cells
    assert one.links[0].forward.opportunities != two.links[0].forward.opportunities
