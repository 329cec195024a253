"""The cost of planning, as function calls: twice the cells cost twice, and a file is read once whatever it is for."""

from __future__ import annotations

import sys
from collections import Counter
from types import FrameType

from netwarp.experiment.profiles import read_stack
from netwarp.plan.types import Plan
from support.specs import plan_of

SPEC = """\
format = 1
name = "cost"
duration = "5 s"
[factor.rate]
levels = [{rates}]
[factor.delay]
levels = ["10 ms", "20 ms"]
[parameter]
size = "100 kB"
[node.a]
stack = "linux-2.6.10-like"
[node.b]
[link.l]
between = ["a", "b"]
rate = "{{rate}}"
queue = "50 packets"
one_way_delay = "{{delay}}"
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
paths = ["l"]
bytes = "{{size}}"
[experiment.all]
factors = ["rate", "delay"]
[table.rates]
metric = "goodput_bit_s"
rows = "rate"
columns = "delay"
[[claim]]
id = "C1"
text = "A longer delay is slower."
source = "here"
kind = "greater"
metric = "goodput_bit_s"
a = {{ delay = "10 ms" }}
b = {{ delay = "20 ms" }}
over = {{ rate = [{rates}] }}
"""


def calls_of(rates: int) -> tuple[Plan, Counter[object]]:
    """The plan of so many levels, and how often each function was called for it."""
    text = SPEC.format(rates=", ".join(f'"{rate} kbit/s"' for rate in range(100, 100 + rates)))
    calls: Counter[object] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        calls[frame.f_code if event == "call" else None] += event == "call"

    sys.setprofile(count)
    try:
        plan = plan_of(text)
    finally:
        sys.setprofile(None)
    return plan, calls


def test_twice_the_cells_cost_twice() -> None:
    """Less what a spec costs without cells; a stack is read once."""
    (small, few), (large, many) = calls_of(40), calls_of(80)
    assert (len(small.cells), len(large.cells)) == (80, 160)
    assert many.total() < 2.05 * few.total()
    assert (few[read_stack.__code__], many[read_stack.__code__]) == (1, 1)
