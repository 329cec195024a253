"""A plan that a stranger wrote is refused when it is read: every name and number in it is held to the rules of a spec.

The text of each plan is that of a real one with one value changed. Which values are free text is listed here (FREE);
all others are names, words of a list or numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from netwarp.core.errors import StoreError
from netwarp.core.frozen import from_json, to_json
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.store.plan_file import read_plan, write_plan
from netwarp.store.run_dir import RunDir
from support.checkout import ROOT

RICH = """\
format = 1
name = "rich"
duration = "10 s"
[node.a]
sysctl = { "net.ipv4.tcp_sack" = "1" }
[node.r]
kind = "router"
agent = { kind = "snoop", link = "p2" }
[node.b]
[link.p1]
between = ["a", "r"]
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[link.p2]
between = ["r", "b"]
[default.flow]
paths = [{ sender = "p1", receiver = "p2" }]
[flow.f]
from = "a"
to = "b"
protocol = "tcp"
sender = { congestion = "reno" }
receiver = { rcvbuf = "64 KiB" }
[flow.web]
from = "a"
to = "b"
protocol = "tcp"
count = 2
[flow.own]
from = "a"
to = "b"
protocol = "tcp"
program = { sender = ["sh", "-c", "cat {files}/own.cfg"], receiver = ["sleep", "9"], files = ["own.cfg"] }
[event.outage]
action = "link"
link = "p1"
end = { hop = "a" }
at = "2 s"
for = "1 s"
[factor.size]
levels = ["1 s", "2 s"]
sets = "event.outage.for"
[table.t]
title = "t"
metric = "goodput_bit_s"
flow = "f"
rows = ["size"]
[figure.g]
title = "g"
metric = "goodput_bit_s"
flow = "f"
x = "size"
"""
EXPERIMENTS = ("daemons", "dual-stack", "roots", "schedules", "signalling-faults", "usrsctp", "watch")
"""Of all kinds of events, and with programs."""
FREE = re.compile(
    r"description|title|filters\..*|parameters\..*|key_figure|"
    r"factors\.\d+\.(title|levels\.\d+\.(name|title|sets\.\d+)|usual|unstated)|"
    r"experiments\.\d+\.(title|factors\.\d+|shared\..*)|metrics\.\d+\.(title|unit|expression|source)|"
    r"(tables|figures)\.\d+\.(title|metric|x|y|(rows|columns|flows|lines)\.\d+)|"
    r"cells\.\d+\.(parameters|metrics|metric_units)\..*|cells\.\d+\.factors\.\w+|"
    r"cells\.\d+\.flows\.\d+\.program\.(sender\.\d+|receiver\.\d+|ready|files\.own\.cfg)"
)
"""Text that is shown, compared, or handed to a program as it is: it never becomes a name of a file or an interface."""
WORDS = re.compile(r"cells\.\d+\.(nodes\.\d+\.sysctls\..*\w|(flows|nodes)\..*options\.\w+|timeline\.\d+\.link)")
"""What a kernel or a program of netwarp's own takes as a value, without slashes: some of NAMES are such, or none."""
HARMLESS = ("", ".", "..", "a b", "x" * 500)
NAMES = ("../../../x", "/etc/x", "a/b", "..", ".", "", "a\nb", "a\0b", "\x1b[31m", "a b", "-x\n", "x" * 500)


def _leaves(value: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(position, value) of every text, number and key (the position then ends in "#key")."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield from _leaves(child, (*at, key))
            yield (*at, key, "#key"), key
    elif isinstance(value, list):
        for number, child in enumerate(value):
            yield from _leaves(child, (*at, str(number)))
    else:
        yield at, value


def _changed(value: Any, at: tuple[str, ...], new: Any) -> Any:
    if len(at) == 2 and at[1] == "#key":
        return {new if key == at[0] else key: child for key, child in value.items()}
    if not at:
        return new
    if isinstance(value, list):
        return [_changed(child, at[1:], new) if str(i) == at[0] else child for i, child in enumerate(value)]
    return {key: _changed(child, at[1:], new) if key == at[0] else child for key, child in value.items()}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("rich")
    (folder / "own.cfg").write_text("to = {to}\n")
    (folder / "spec.toml").write_text(RICH)
    return make_plan(load_spec(folder / "spec.toml"))


def _accepted(text: bytes) -> bool:
    try:
        from_json(text, Plan)
    except msgspec.DecodeError:  # Infinity and NaN are no JSON
        return False
    return True


def test_a_real_plan_is_read(plan: Plan) -> None:
    assert from_json(to_json(plan), Plan) == plan


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_the_plans_of_the_experiments_are_read(name: str) -> None:
    plan = make_plan(load_spec(ROOT / "experiments" / name))
    assert from_json(to_json(plan), Plan).cells == plan.cells


@pytest.mark.parametrize("name", NAMES, ids=ascii)
def test_no_name_leads_elsewhere(plan: Plan, name: str) -> None:
    whole = json.loads(to_json(plan))
    texts = [at for at, value in _leaves(whole) if isinstance(value, str) and not FREE.fullmatch(".".join(at))]
    assert len(texts) > 300, "the plan has all kinds of names"
    accepted = [".".join(at) for at in texts if _accepted(json.dumps(_changed(whole, at, name)).encode())]
    assert [at for at in accepted if not (name in HARMLESS and WORDS.fullmatch(at))] == []


@pytest.mark.parametrize("number", [-1, 2**63, 2**70, 1e400, float("nan")], ids=str)
def test_no_number_is_beyond_what_fits(plan: Plan, number: float) -> None:
    whole = json.loads(to_json(plan))
    whole["cells"] = whole["cells"][:1]
    numbers = [at for at, value in _leaves(whole) if type(value) is int]
    assert len(numbers) > 40
    assert [at for at in numbers if _accepted(json.dumps(_changed(whole, at, number)).encode())] == []


def test_a_program_is_a_name_or_an_absolute_path(plan: Plan) -> None:
    """As in a spec: a relative one would be looked for in a directory of the cell."""
    whole = json.loads(to_json(plan))
    for word in ("", "./x", "a/b", "../x"):
        for end in ("sender", "receiver"):
            for cell in whole["cells"]:
                for flow in cell["flows"]:
                    if flow["program"]:
                        flow["program"][end] = [word]
            assert not _accepted(json.dumps(whole).encode()), (word, end)


def test_the_reason_names_the_file_and_the_position(plan: Plan, tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    write_plan(run, plan)
    text = run.plan.read_text()
    assert '"own.cfg"' in text
    run.plan.write_text(text.replace('"own.cfg"', '"../../../x"'))
    with pytest.raises(StoreError, match=r"plan\.json: cannot be read: .*files") as caught:
        read_plan(run)
    assert str(caught.value).isprintable()


def test_cells_and_arguments_are_counted(plan: Plan) -> None:
    cell = json.loads(to_json(plan.cells[0]))
    own = next(number for number, flow in enumerate(cell["flows"]) if flow["program"])
    too_many = {
        "files": {f"a{number}.cfg": "" for number in range(17)},
        "sender": ["sh"] * 65,
    }
    for key, value in too_many.items():
        changed = _changed(cell, ("flows", str(own), "program", key), value)
        with pytest.raises(msgspec.ValidationError):
            from_json(json.dumps(changed).encode(), Cell)
    large = _changed(cell, ("flows", str(own), "program", "files", "own.cfg"), "x" * (64 * 1024 + 1))
    with pytest.raises(msgspec.ValidationError):
        from_json(json.dumps(large).encode(), Cell)
