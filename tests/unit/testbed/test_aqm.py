"""Active queue management: from the spec to the qdiscs asked for, and what a dump of them shows."""

from __future__ import annotations

import math

import msgspec
import pytest
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell
from netwarp.measure.groups.counters import aqm_metrics
from netwarp.testbed.aqm import AqmQdisc, aqm_stage, idle_table
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.netem import Netem
from netwarp.testbed.qdiscs import Tbf, attributes_of
from netwarp.testbed.readback import Qdisc
from support.specs import BASE, cell_of, problems_of, replaced

QUEUE = 'queue = "50 packets"'
RED = 'aqm = { kind = "red", min = "5 packets", max = "15 packets", max_p = "10 %" }'
OTHERS = {
    "codel": 'aqm = { kind = "codel", target = "5 ms", ecn = true }',
    "fq_codel": 'aqm = { kind = "fq_codel", flows = 64 }',
    "pie": 'aqm = { kind = "pie", update = "10 ms" }',
    "cake": 'aqm = { kind = "cake", rtt = "50 ms" }',
    "dualpi2": 'aqm = { kind = "dualpi2", step = "5 packets", low_latency = "any", drop_early = true }',
}


def with_aqm(aqm: str, queue: str = QUEUE) -> str:
    """The small spec with that in place of its tail-drop queue."""
    return replaced(QUEUE, f"{queue}\n{aqm}")


def test_red_counts_bytes_and_its_cells_are_random() -> None:
    cell = cell_of(with_aqm(RED))
    shape = cell.links[0].forward
    assert (shape.queue_bytes, shape.queue_packets, cell.random) == (75_000, None, True)
    assert shape.aqm is not None
    assert (shape.aqm.settings["min_bytes"], shape.aqm.settings["max_bytes"]) == (7500, 22_500)
    assert from_json(to_json(cell), Cell) == cell
    root, bucket, red = compile_cell(cell, Clock(t0_realtime_ns=0)).installed[:3]
    assert isinstance(root.stage, Netem)
    assert root.stage.size_overhead_bytes == -14
    assert isinstance(bucket.stage, Tbf)
    assert isinstance(red.stage, AqmQdisc)
    assert (bucket.parent, red.parent, red.handle) == (1, 2, 0x8001)
    assert red.stage.values["max_p"] == round(0.1 * 2**32)


@pytest.mark.parametrize("kind", OTHERS)
def test_a_dump_shows_what_was_asked_in_the_kernels_steps(kind: str) -> None:
    cell = cell_of(with_aqm(OTHERS[kind], 'queue = "4 MiB"' if kind == "cake" else QUEUE))
    assert cell.random == (kind in ("pie", "cake", "dualpi2"))
    stage = aqm_stage(cell.links[0].forward, 1500)
    shown = AqmQdisc.decode(kind, attributes_of(stage.encode()))
    assert shown == stage
    for name, value in stage.as_shown().values.items():
        assert stage.values[name] - 2 <= value <= stage.values[name]
    commands = "\n".join(step.command for step in compile_cell(cell, Clock(t0_realtime_ns=0)).steps if step.command)
    assert f": {kind} " in commands


def test_red_is_asked_for_as_it_is_shown() -> None:
    stage = aqm_stage(cell_of(with_aqm(RED)).links[0].forward, 1500)
    assert AqmQdisc.decode("red", attributes_of(stage.encode())) == stage.as_shown()
    assert len(stage.idle_table) == 256


@pytest.mark.parametrize("rate_byte_s", [1200, 125_000, 10**9])
def test_an_idle_time_counts_as_the_packets_it_could_have_sent(rate_byte_s: int) -> None:
    """m packets of 1500 bytes at that rate take (1 - 2^-9)^m of the average: the table's shift, rounded down."""
    log, table = idle_table(9, 1500, rate_byte_s)
    for cell in (1, 10, 100, 254):
        packets = (cell << log) * rate_byte_s / 1e6 / 1500
        assert table[cell] == min(31, math.floor(-packets * math.log2(1 - 2**-9)))
    assert table[255] == 31


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (with_aqm('aqm = { kind = "red", min = "5 packets" }'), "max is missing"),
        (with_aqm('aqm = { kind = "red", min = "15 packets", max = "5 packets" }'), "must be above min"),
        (with_aqm('aqm = { kind = "codel", rtt = "5 ms" }'), "codel has no rtt; it has ecn, target, interval"),
        (with_aqm('aqm = { kind = "codel" }', 'queue = "64 KiB"'), "codel counts packets"),
        (with_aqm(OTHERS["cake"]), "cake counts the memory"),
        (with_aqm('aqm = { kind = "cake", ecn = false }', 'queue = "4 MiB"'), "cake marks every packet"),
        (with_aqm('aqm = { kind = "codel", target = "5.0005 ms" }'), "whole microseconds"),
        (with_aqm('aqm = { target = "5 ms" }'), "kind is missing"),
        (with_aqm('aqm = { kind = "blue" }'), '"blue" is none of red, codel'),
    ],
)
def test_errors(text: str, says: str) -> None:
    assert any(says in problem for problem in problems_of(text)), problems_of(text)


def test_an_aqm_needs_a_rate() -> None:
    assert 'rate = "1 Mbit/s"\n' in BASE
    text = replaced('rate = "1 Mbit/s"\n', "").replace(QUEUE, OTHERS["codel"])
    assert any("manages the queue of a rate" in problem for problem in problems_of(text))


@pytest.mark.parametrize(("asked_us", "shown_us", "the_same"), [
    (15_000, 15_000, True), (15_000, 16_000, True), (15_000, 20_000, True), (15_000, 16_666, True),
    (1_500, 2_000, True), (15_000, 12_000, False), (15_000, 30_000, False),
])  # fmt: skip
def test_pie_updates_in_whole_ticks_of_the_kernel(asked_us: int, shown_us: int, the_same: bool) -> None:
    """At 1000, 250, 100 and 300 Hz, rounded up; no other interval is taken for the one that was asked for."""
    stage = aqm_stage(cell_of(with_aqm(OTHERS["pie"])).links[0].forward, 1500)
    asked = AqmQdisc("pie", stage.values | {"update_us": asked_us})
    shown = AqmQdisc("pie", asked.values | {"update_us": shown_us})
    assert (asked.in_ticks_of(shown) == shown) is the_same


@pytest.mark.parametrize(("more", "the_same"), [(", adaptive = true", True), ("", False)])
def test_red_that_adapts_may_have_another_probability_at_the_end(more: str, the_same: bool) -> None:
    """sch_red.c: red_adaptative_algo moves max_p every half second, so the last dump has what it is by then."""
    red = f'aqm = {{ kind = "red", min = "5 packets", max = "15 packets"{more} }}'
    stage = aqm_stage(cell_of(with_aqm(red)).links[0].forward, 1500)
    asked = AqmQdisc("red", stage.values, stage.idle_table)
    shown = AqmQdisc("red", stage.values | {"max_p": stage.values["max_p"] // 2}, stage.idle_table)
    assert (asked.as_adapted(shown) == shown) is the_same
    other = AqmQdisc("red", shown.values | {"min_bytes": 1}, stage.idle_table)
    assert asked.as_adapted(other) != other


def test_counters_of_a_cut_link_are_no_part_of_a_sum() -> None:
    cell = cell_of(with_aqm(OTHERS["codel"]))
    link = cell.links[0]
    names = [name for name, shape in (("forward", link.forward), ("backward", link.backward)) if shape.aqm]
    counted = {(link.name, name): Qdisc(1, 1, None, "codel", None, 9, 900, 2, 0, marked_packets=3) for name in names}
    marked, dropped = aqm_metrics(cell, counted).values()
    assert (marked, dropped) == (3.0 * len(names), 2.0 * len(names))
    del counted[link.name, names[0]]
    assert aqm_metrics(cell, counted) == {"aqm_marked_packets": None, "aqm_dropped_packets": None}
    assert aqm_metrics(msgspec.structs.replace(cell, links=()), {}) == {}


def changes(aqm: str, *events: str) -> list[str]:
    """The commands that the events of a link with that AQM make."""
    body = "".join(f'[event.e{n}]\nlink = "p1"\n{event}\n' for n, event in enumerate(events))
    steps = compile_cell(cell_of(with_aqm(aqm) + body), Clock(t0_realtime_ns=0)).steps
    return [step.command for step in steps if step.at_ns and step.command and " qdisc " in step.command]


def test_fq_codel_is_changed_without_its_number_of_flows() -> None:
    """The kernel refuses a change that names it, even the same one."""
    change = 'action = "change"\nat = "2 s"\naqm = { kind = "fq_codel", flows = 64, target = "9 ms" }'
    (changed,) = {line.partition(" fq_codel ")[2] for line in changes(OTHERS["fq_codel"], change) if "fq_codel" in line}
    assert "target 9000us" in changed and "flows" not in changed
    whole = changes(OTHERS["fq_codel"], change, 'action = "cut"\nat = "4 s"\nfor = "1 s"')
    assert any("flows 64" in line and "replace" in line for line in whole)


def test_an_aqm_that_changed_and_changed_back_in_a_black_hole_is_there_again() -> None:
    hole = 'action = "blackhole"\nat = "1 s"\nfor = "4 s"'
    other = 'action = "change"\nat = "2 s"\nfor = "1 s"\naqm = { kind = "pie" }'
    assert any("codel" in line and "replace" in line for line in changes(OTHERS["codel"], hole, other))


def test_dualpi2_has_the_kernels_defaults_and_all_of_its_settings() -> None:
    stage = aqm_stage(cell_of(with_aqm('aqm = { kind = "dualpi2" }')).links[0].forward, 1500)
    assert stage.values == {
        "limit_packets": 50, "memory_bytes": 2 * 50 * 1514, "target_us": 15_000, "update_us": 16_000, "alpha": 41,
        "beta": 819, "step_us": 1000, "step_from_packets": 0, "coupling": 2, "overload": 1, "drop_early": 0,
        "protection_percent": 10, "low_latency": 1, "split_gso": 1,
    }  # fmt: skip
    assert "dualpi2 limit 50 memlimit 151400 target 15000us tupdate 16000us alpha 0.160156 beta 3.19922" in stage.text()
    for keys, words in (
        ("ecn = false", "dualpi2 marks every packet that can be marked"),
        ('interval = "100 ms"', "dualpi2 has no interval"),
        ('protection = "0.5 %"', "in whole percent"),
    ):
        assert words in "\n".join(problems_of(with_aqm(f'aqm = {{ kind = "dualpi2", {keys} }}')))
    assert "is at most 32" in "\n".join(problems_of(with_aqm('aqm = { kind = "pie", alpha = 41 }')))
