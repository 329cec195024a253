"""The set-up of a run: a drawing of each topology, its links, flows, faults and machines; and what each level sets."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from ..core.ip_families import IPV4
from ..core.link_types import SIDES, DirectionName, GilbertElliott, LinkImpairment, PacketRange, PacketRule
from ..core.numbers import fixed, given, readable, with_unit
from ..core.types import OF_TRACE, Cell, Event, Flow
from ..core.units import Kind, Quantity, counted, counted_of, format_quantity, listed
from ..plan.types import Outputs
from ..store.environment import Environment
from ..store.run_dir import read_json
from ..testbed.layout import make_layout
from .run_data import RunData
from .testbed_picture import DrawnFlow, DrawnLink, DrawnNode, draw, draw_tall, svg
from .varied import NONE, few, property_words

MOST_NETWORKS = 4
ROOM = 520
"""For the labels of links in a row, on a screen that is wider than a phone's, in px."""
HOP = ".hop"
"""The end of the name of a router hop."""
QUEUES = ("queue_packets", "queue_bytes")
WHAT = {"rate_bit_s": "rate", "one_way_delay_ns": "one-way delay", "queue_packets": "queue", "queue_bytes": "queue",
        "aqm": "AQM", "opportunities": "trace", "packet_rules": "what happens to single packets"}  # fmt: skip
"""A field of a direction in words, where it follows a factor."""


Shape = tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""Nodes, and links with their ends."""


def networks(data: RunData) -> list[dict[str, Any]]:
    """The topologies of the run's cells, the commonest first: title, drawing, and rows of (what, between, how)."""
    about = data.conclusion.about if data.conclusion is not None else ()
    called = {each.name.casefold(): each.name for each in about}
    pictures = drawn_testbeds(data.plan, [result.cell for result in data.cells], called)
    result = []
    for title, testbed in pictures[:MOST_NETWORKS]:
        parts = testbed.nodes, testbed.links, testbed.flows
        tall = draw_tall(*parts)
        wide = draw(*parts, ROOM if tall is not None else 0)
        drawing, narrow = svg(wide), None if tall is None else svg(tall)
        result.append({"title": title, "drawing": drawing, "narrow": narrow, "rows": testbed.rows})
    return result


def drawn_testbeds(
    plan: Outputs, cells: Sequence[Cell], called: Mapping[str, str] | None = None
) -> list[tuple[str, DrawnTestbed]]:
    """Each topology of these cells with its title, the commonest first. called: node -> what the report calls it."""
    groups: dict[Shape, list[Cell]] = {}
    for cell in cells:
        shape = (tuple(node.name for node in cell.nodes), tuple((link.name, link.a, link.b) for link in cell.links))
        groups.setdefault(shape, []).append(cell)
    result = []
    for (nodes, links), mine in sorted(groups.items(), key=lambda group: -len(group[1])):
        title = f"{counted(len(nodes), 'node')}, {counted(len(links), 'link')}"
        title = f"{title} ({counted(len(mine), 'cell')})" if len(groups) > 1 else title
        result.append((title, _testbed(plan, mine, called or {})))
    return result


@dataclass(frozen=True, slots=True)
class Varied:
    """What differs between the cells of a run. factors: (title, its levels here in a row); fixed: the same of those
    that have one level in all cells; settings: (factor, level, what it sets) of the levels here.
    """

    factors: tuple[tuple[str, str], ...]
    fixed: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str, str], ...]


def varied(data: RunData) -> Varied:
    """The factors of a run's cells; levels that no cell has are not of this run."""
    factors: list[tuple[str, str]] = []
    fixed: list[tuple[str, str]] = []
    settings: list[tuple[str, str, str]] = []
    for factor in data.plan.factors:
        used = {result.cell.factors.get(factor.name, NONE) for result in data.cells}
        levels = [level for level in factor.levels if level.name in used]
        title = data.plan.factor_title(factor.name)
        if not levels:
            continue
        (fixed if len(used) == 1 else factors).append(
            (title, few([level.title or level.name for level in levels], len(levels)))
        )
        if len(used) > 1:
            settings += [(title, level.title or level.name, ", ".join(level.sets)) for level in levels if level.sets]
    return Varied(tuple(factors), tuple(fixed), tuple(settings))


@dataclass(frozen=True, slots=True)
class DrawnTestbed:
    """The parts of a drawing, and the same as rows of (what, between, how)."""

    nodes: tuple[DrawnNode, ...]
    links: tuple[DrawnLink, ...]
    flows: tuple[DrawnFlow, ...]
    rows: tuple[tuple[str, str, str], ...]


MOST_LETTERS = 34
"""Of what a drawing says in brackets behind a property; the table and "What is varied" have all of it."""


def brief(text: str) -> str:
    """A property without the values in brackets that are too long to be read in a drawing: "queue by sender"."""
    short = re.sub(rf" \([^()]{{{MOST_LETTERS},}}\)", "", text)
    return short if short == text or " by " in short else f"{short} varies"


def _testbed(plan: Outputs, cells: Sequence[Cell], called: Mapping[str, str]) -> DrawnTestbed:
    first = cells[0]
    kinds = {node.name: node.kind for node in first.nodes}

    def name_of(node: str) -> str:
        return called.get(node, node)

    events = {event.name: event for cell in cells for event in cell.timeline if not event.of_the_link}
    faults = {name: _fault(plan, cells, name) for name in events}
    hops = {name for name in make_layout(first).namespaces if name.endswith(HOP)}
    links = []
    rows: list[tuple[str, str, str]] = []
    for number, link in enumerate(first.links):
        there, back = (_properties(plan, cells, number, side) for side in SIDES)
        family = _family(plan, [(cell, cell.links[number].ip_family.title) for cell in cells])
        notes = tuple(_directed(faults[name], event) for name, event in events.items() if event.link == link.name)
        hop = f"{link.name}{HOP}" in hops
        ends = name_of(link.a), name_of(link.b)
        shaping = () if hop else tuple(name_of(end) for end in (link.a, link.b) if kinds[end] != "host")
        forth, over, faulty = (tuple(map(brief, texts)) for texts in ((*family, *there), (*family, *back), notes))
        links.append(DrawnLink(link.name, *ends, forth, over, faulty, hop, shaping))
        how = ", ".join(there) if there == back else f"there: {', '.join(there)}; back: {', '.join(back)}"
        rows.append((f"link {link.name}", " \u2013 ".join(ends), "; ".join((*family, how))))
    flows = []
    for (sender, receiver, how, notes), names in _flows(plan, cells, events, faults).items():
        word = f"flow{'s' if len(names) > 1 else ''} {listed(names)}"
        way = f"{name_of(sender)} \u2192 {name_of(receiver)}"
        rows.append((word, way, how))
        ways = dict.fromkeys(
            (path.sender_link, path.receiver_link)
            for cell in cells
            for flow in cell.flows
            if flow.name in names
            for path in flow.paths
        )
        text = f"{word}, {way}: {brief(how)}"
        flows.append(DrawnFlow(name_of(sender), name_of(receiver), text, tuple(map(brief, notes)), tuple(ways)))
    for name, event in events.items():
        words = (("link", event.link), ("host", event.node), ("flow", event.flow))
        where = ", ".join(f"{word} {place}" for word, place in words if place)
        rows.append((f"fault {name}", where, _directed(faults[name], event)))
    nodes = tuple(
        DrawnNode(
            name_of(node.name),
            node.kind,
            tuple(brief(faults[name]) for name, event in events.items() if event.node == node.name),
        )
        for node in first.nodes
    )
    return DrawnTestbed(nodes, tuple(links), tuple(flows), tuple(rows))


def _family(plan: Outputs, families: Sequence[tuple[Cell, str]]) -> tuple[str, ...]:
    """The family of addresses, where it is not IPv4 alone."""
    text = property_words(plan, "IP", families)
    return () if text == IPV4.title else (text,)


def _flows(
    plan: Outputs, cells: Sequence[Cell], events: Mapping[str, Event], faults: Mapping[str, str]
) -> dict[tuple[str, str, str, tuple[str, ...]], list[str]]:
    """(sender, receiver, how, faults) -> the names of flows that are alike in them, but for their amounts."""
    every: dict[str, list[tuple[Cell, Flow]]] = {}
    for cell in cells:
        for flow in cell.flows:
            every.setdefault(flow.name, []).append((cell, flow))
    alike: dict[tuple[str, str, str, tuple[str, ...], str, bool], list[str]] = {}
    for name, mine in every.items():
        how = ", ".join(
            property_words(plan, what, [(cell, text_of(flow)) for cell, flow in mine])
            for what, text_of in (("protocol", _protocol), ("paths", _paths))
        )
        notes = tuple(faults[fault] for fault, event in events.items() if event.flow == name)
        flow = mine[0][1]
        key = (flow.sender, flow.receiver, how, notes, flow.group or name, bool(flow.total_bytes))
        alike.setdefault(key, []).append(name)
    result: dict[tuple[str, str, str, tuple[str, ...]], list[str]] = {}
    for (sender, receiver, how, notes, _, _), names in alike.items():
        amount = _amounts(plan, [pair for name in names for pair in every[name]], len(names))
        result.setdefault((sender, receiver, f"{how}, {amount}", notes), []).extend(names)
    return result


def _amounts(plan: Outputs, flows: Sequence[tuple[Cell, Flow]], names: int) -> str:
    """When flows end: "10 MB", "until 30 s", "end by T (5, 100 s)", "until 15 to 19 s"."""
    sizes = sorted(flow.total_bytes for _, flow in flows if flow.total_bytes)
    stops = sorted(flow.stop_ns / 1e9 for _, flow in flows if not flow.total_bytes and flow.stop_ns is not None)
    spans = []
    if sizes:
        low, high = (with_unit(size, "bytes") for size in (sizes[0], sizes[-1]))
        spans.append(low if low == high else f"{low} to {high}")
    if stops:
        low, high = (given(stop) for stop in (stops[0], stops[-1]))
        spans.append(f"until {low} s" if low == high else f"until {low} to {high} s")
    if len(sizes) + len(stops) < len(flows):
        spans.append("until it is stopped")
    span = " or ".join(spans)
    if names > 1:
        return span
    return property_words(plan, "size" if sizes else "end", [(cell, _amount(flow)) for cell, flow in flows], span)


def _protocol(flow: Flow) -> str:
    control = flow.sender_options.get("congestion")
    return f"{flow.protocol.upper()} {control}" if control else flow.protocol.upper()


def _paths(flow: Flow) -> str:
    return f"over {' and '.join(path.name for path in flow.paths)}"


def _amount(flow: Flow) -> str:
    if flow.total_bytes:
        return with_unit(flow.total_bytes, "bytes")
    return "until it is stopped" if flow.stop_ns is None else f"until {given(flow.stop_ns / 1e9)} s"


def _directed(fault: str, event: Event) -> str:
    """With the direction, of a fault of one alone."""
    if not event.link or len(event.directions) == len(SIDES) or event.action in ("link", "change"):
        return fault
    return f"{fault}, {'there' if event.directions == SIDES[:1] else 'back'} only"


def _fault(plan: Outputs, cells: Sequence[Cell], name: str) -> str:
    """ "cut at 50 s for 5 s"; "cut at 50 s, length by outage (5, 10 s)"; "cut, time 1 to 2 s, drawn from the seed"."""
    actions, starts, lengths = [], [], []
    for cell in cells:
        own = sorted((event for event in cell.timeline if event.name == name), key=lambda event: event.at_ns)
        begin = next((event for event in own if event.action != "repair"), None)
        if begin is not None:
            actions.append((cell, _action(begin)))
            starts.append((cell, begin.at_ns))
            repair = next((event for event in own if event.action == "repair"), None)
            lengths.append((cell, None if repair is None else repair.at_ns - begin.at_ns))
    text = property_words(plan, "fault", actions)
    text += _time(plan, "at", "time", starts)
    if any(length is not None for _, length in lengths):
        text += _time(plan, "for", "length", lengths)
    some = len(actions) < len(cells)
    return f"{text} (in {counted_of(len(actions), len(cells), 'cell')})" if some else text


def _action(event: Event) -> str:
    if event.action == "change":
        new = next((shape for side in SIDES if (shape := event.side(side)) is not None), None)
        return "change" if new is None else f"change to {', '.join(_impairments(new).values())}"
    ends = {"link": f"link down at {event.end}", "mtu": f"MTU {event.mtu_bytes} B"}
    return ends.get(event.action, event.action.replace("_", " "))


def _time(plan: Outputs, word: str, what: str, times: Sequence[tuple[Cell, int | None]]) -> str:
    """ " at 5 s", or ", time by onset (5, 10 s)"."""
    known = sorted(at for _, at in times if at is not None)
    span = f"{given(known[0] / 1e9, 4)} to {given(known[-1] / 1e9, 4)} s, drawn from the seed"
    texts = [(cell, "none" if at is None else f"{given(at / 1e9)} s") for cell, at in times]
    text = property_words(plan, what, texts, span)
    return f" {word} {text}" if text == texts[0][1] else f", {text}"


def _properties(plan: Outputs, cells: Sequence[Cell], number: int, side: DirectionName) -> tuple[str, ...]:
    """What a direction of a link does: a text each property, its value or the factor that it follows."""
    found = [(cell, _impairments(cell.links[number].side(side))) for cell in cells]
    names = dict.fromkeys(name for _, words in found for name in words)
    texts = []
    for name in names:
        what = WHAT.get(name, name.rpartition("_")[0].replace("_", " ") or name)
        bare = [(cell, words.get(name, "none").removeprefix(f"{what} ")) for cell, words in found]
        text = property_words(plan, what, bare)
        texts.append(found[0][1][name] if text == bare[0][1] and name in found[0][1] else text)
    traced = property_words(plan, "changes by its trace", [(cell, _traced(cell, number, side)) for cell in cells])
    return (*texts, traced) if traced else tuple(texts)


def _traced(cell: Cell, number: int, side: DirectionName) -> str:
    """How often the trace of a direction changes it; "" if it has none whose values are events."""
    name = f"{cell.links[number].name}{OF_TRACE}"
    changes = sum(event.name == name and side in event.directions for event in cell.timeline)
    return f"{counted(changes, 'change')} by its trace" if changes else ""


def _impairments(shape: LinkImpairment) -> dict[str, str]:
    """Rate and delay also where there are none; then all that is configured besides, queue first."""
    words = in_words(shape)
    rate = words.pop("rate_bit_s", "no rate").removeprefix("rate ")
    words.pop("one_way_delay_ns", None)
    queue = {name: words.pop(name) for name in QUEUES if name in words}
    delay = f"{readable(shape.one_way_delay_ns / 1e6)} ms one way"
    return {"rate_bit_s": rate, "one_way_delay_ns": delay, **queue, **words}


def _impairment(shape: LinkImpairment) -> str:
    """All of it in a row."""
    return ", ".join(_impairments(shape).values())


LOSSES = ("loss_ratio", "loss_correlation_ratio", "burst_loss", "bit_error_ratio", "byte_error_ratio", "packet_rules",
          "policer")  # fmt: skip
"""The fields by which packets are lost."""
_UNITS: Mapping[str, Kind] = {
    "_ns": "time", "_ratio": "ratio", "_bit_s": "rate", "_bytes": "data", "_packets": "packets",
}  # fmt: skip
_ERRORS = ("bit_error_ratio", "byte_error_ratio")


def in_words(shape: LinkImpairment) -> dict[str, str]:
    """Field -> words, of all that are not at their default: {"jitter_ns": "jitter 5 ms"}."""
    return {
        field.name: _words(field.name, value)
        for field in msgspec.structs.fields(LinkImpairment)
        if (value := getattr(shape, field.name)) != field.default
    }


def losses(words: Mapping[str, str]) -> str:
    """Those of them that lose packets; "none" if there are none."""
    return ", ".join(words[name] for name in LOSSES if name in words) or "none"


def others(words: Mapping[str, str], said: Iterable[str]) -> str:
    """The rest, without the fields that are said elsewhere."""
    return ", ".join(text for name, text in words.items() if name not in (*LOSSES, *said))


def _words(name: str, value: object) -> str:
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "")
    what = name.removesuffix(unit).replace("_", " ")
    if isinstance(value, bool):
        return what
    if isinstance(value, GilbertElliott):
        bad, good = given(value.bad_loss_ratio), given(value.good_loss_ratio)
        return f"{what} p={given(value.p_ratio)} r={given(value.r_ratio)} bad={bad} good={good}"
    if name == "packet_rules" and isinstance(value, tuple):
        return "; ".join(map(_rule, value))
    if unit and isinstance(value, (int, float)):
        plain = name in _ERRORS  # 1e-5, as everybody says it
        return f"{what} {given(value) if plain else format_quantity(Quantity(_UNITS[unit], value))}"
    text = getattr(value, "text", None)
    return text() if text is not None else f"{what} {value}"


def _rule(rule: PacketRule) -> str:
    kind = f"{rule.kind} " if rule.kind else ""
    by = f" by {format_quantity(Quantity('time', rule.delay_ns))}" if rule.action == "delay" else ""
    which = ", ".join([*map(str, rule.numbers), *map(_range, rule.spans)])
    return f"{rule.action} {kind}packets {which}{by}"


def _range(each: PacketRange) -> str:
    every = "" if each.step == 1 else f" every {each.step}"
    return f"{each.first} to {each.last}{every}" if each.last is not None else f"from {each.first} on{every}"


def machines_view(machines: Mapping[str, Any]) -> dict[str, Any]:
    """rows: a machine each, for a table. notes: sentences about the placement and the clocks."""
    clocks: Mapping[str, Mapping[str, int]] = machines.get("clocks", {})
    places: Mapping[str, str] = machines.get("namespaces", {})
    rows = []
    for name, machine in machines.get("machines", {}).items():
        clock = clocks.get(name)
        rows.append(
            {
                "machine": name,
                "kernel": machine.get("kernel", ""),
                "nodes and hops": ", ".join(node for node, where in places.items() if where == name) or "none",
                "interfaces": ", ".join(
                    f"{interface} ({facts.get('driver') or 'unknown driver'})"
                    for interface, facts in machine.get("interfaces", {}).items()
                ),
                "clock, against the controller's": "" if clock is None else _milliseconds(clock["offset_ns"]),
                "wrong by at most": "" if clock is None else _milliseconds(clock["bound_ns"]),
                "drift in the cell": "" if clock is None else _milliseconds(clock["drift_ns"]),
            }
        )
    return {"rows": rows, "notes": machine_notes(machines)}


def run_notes(data: RunData) -> Sequence[str]:
    """The same for a whole run, each note with the number of cells that it is true of; the clocks at their worst."""
    if data.manifest.backend != "hosts":
        return ()
    cells: Counter[str] = Counter()
    worst_ns = 0
    for result in data.cells:
        path = data.run.cell(result.id).environment
        machines = (read_json(path, Environment).machines if path.exists() else None) or {}
        worst_ns = max(worst_ns, machines.get("clock_error_ns", 0))
        cells.update(machine_notes({"notes": machines.get("notes", ())}))
    notes = [f"{counted(count, 'cell')}: {note}" for note, count in cells.most_common()]
    if worst_ns:
        notes.append(
            f"Times of two machines may be wrong against each other by at most {_milliseconds(worst_ns)}: "
            "a metric that needs more has no value."
        )
    return notes


def machine_notes(machines: Mapping[str, Any]) -> Sequence[str]:
    """Notes on the machines that a cell ran on, for a reader of its numbers."""
    notes = [f"{note[:1].upper()}{note[1:]}." for note in machines.get("notes", ())]
    if "clock_error_ns" in machines:
        error = _milliseconds(machines["clock_error_ns"])
        notes.append(
            f"Times of two machines may be wrong against each other by {error}: a metric that needs more has no value."
        )
    for command in machines.get("commands", ()):
        took = _milliseconds(command["ended_ns"] - command["began_ns"])
        notes.append(f"Link {command['link']} went {command['action']} by a command, which took {took}.")
    return notes


def _milliseconds(ns: int) -> str:
    return f"{fixed(ns / 1e6, 3)} ms"
