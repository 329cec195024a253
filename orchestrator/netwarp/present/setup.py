"""The set-up of a run: a drawing of each topology, its links, flows, faults and machines; and what each level sets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from markupsafe import Markup

from ..core.ip_families import IPV4
from ..core.link_types import DirectionName, GilbertElliott, LinkImpairment, PacketRange, PacketRule
from ..core.numbers import fixed, given, readable, with_unit
from ..core.types import OF_TRACE, Cell, Event
from ..core.units import Kind, Quantity, counted, format_quantity, listed
from ..store.environment import Environment
from ..store.run_dir import read_json
from .run_data import RunData

MOST_NETWORKS = 4
MOST_VALUES = 4
BEND, LABEL = 25.5, 6
"""The distance at which links between the same two nodes are drawn apart; the height of a label above its line."""
COLUMN, ROW, RADIUS = 120, 56, 15
"""Of the drawing: px from node to node, from row to row, and of a node."""


Shape = tuple[tuple[str, ...], tuple[tuple[str, str, str], ...]]
"""Nodes, and links with their ends."""


def networks(data: RunData) -> list[dict[str, Any]]:
    """The topologies of the run's cells, the commonest first: title, drawing, and rows of (what, between, how)."""
    groups: dict[Shape, list[Cell]] = {}
    for result in data.cells:
        cell = result.cell
        shape = (tuple(node.name for node in cell.nodes), tuple((link.name, link.a, link.b) for link in cell.links))
        groups.setdefault(shape, []).append(cell)
    shown = sorted(groups.items(), key=lambda group: -len(group[1]))[:MOST_NETWORKS]
    return [_network(cells, len(groups) > 1) for _, cells in shown]


def level_settings(data: RunData) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    """(factor, (level, what it sets) of each level)."""
    return tuple(
        (
            data.plan.factor_title(factor.name),
            tuple((level.title or level.name, ", ".join(level.sets)) for level in factor.levels),
        )
        for factor in data.plan.factors
    )


def _network(cells: Sequence[Cell], several: bool) -> dict[str, Any]:
    first = cells[0]
    rows = [
        (f"link {link.name}", f"{link.a} \u2013 {link.b}", _link(cells, number))
        for number, link in enumerate(first.links)
    ]
    flows = {flow.name: (flow.sender, flow.receiver) for cell in cells for flow in cell.flows}
    alike: dict[tuple[str, str], list[str]] = {}
    for name, (sender, receiver) in flows.items():
        there = [flow for cell in cells for flow in cell.flows if flow.name == name]
        protocols = _values(flow.protocol.upper() for flow in there)
        paths = _values(" and ".join(path.name for path in flow.paths) for flow in there)
        amount = _values(
            with_unit(flow.total_bytes, "bytes") if flow.total_bytes else "until it is stopped" for flow in there
        )
        how = f"{protocols}; over {paths}; {amount}"
        alike.setdefault((f"{sender} \u2192 {receiver}", how), []).append(name)
    for (between, how), names in alike.items():
        rows.append((f"flow{'s' if len(names) > 1 else ''} {listed(names)}", between, how))
    faults = [event for cell in cells for event in cell.timeline if not event.of_the_link]
    for name in dict.fromkeys(event.name for event in faults):
        where = _values(_place(each) for each in faults if each.name == name)
        rows.append((f"fault {name}", where, _fault(cells, name)))
    title = f"{len(first.nodes)} nodes, {len(first.links)} link" + ("s" if len(first.links) > 1 else "")
    title = f"{title} ({len(cells)} cells)" if several else title
    return {"title": title, "drawing": _drawing(first), "rows": rows}


def _place(event: Event) -> str:
    words = (("link", event.link), ("host", event.node), ("flow", event.flow))
    return ", ".join(f"{word} {name}" for word, name in words if name)


def _fault(cells: Sequence[Cell], name: str) -> str:
    """ "cut at 50 s, repaired after 5 s or 10 s"; a fault that is drawn has as many times as draws."""
    starts, lengths = [], []
    for cell in cells:
        own = sorted((event for event in cell.timeline if event.name == name), key=lambda event: event.at_ns)
        begin = next((event for event in own if event.action != "repair"), None)
        if begin is not None:
            starts.append((begin.action, begin.at_ns))
            repair = next((event for event in own if event.action == "repair"), None)
            lengths.append(None if repair is None else repair.at_ns - begin.at_ns)
    actions = _values(action for action, _ in starts)
    text = f"{actions} at {_seconds([at for _, at in starts])}"
    repaired = [length for length in lengths if length is not None]
    return f"{text}, repaired after {_seconds(repaired)}" if repaired else text


def _seconds(times_ns: Sequence[int]) -> str:
    """ "5 s or 10 s"; of more than a few the smallest and the largest."""
    distinct = sorted(set(times_ns))
    if len(distinct) > MOST_VALUES:
        return f"{readable(distinct[0] / 1e9)} to {readable(distinct[-1] / 1e9)} s ({len(distinct)} times)"
    return " or ".join(f"{readable(at / 1e9)} s" for at in distinct)


def _link(cells: Sequence[Cell], number: int) -> str:
    """Family (but IPv4), rate, delay, queue and loss of a link, in the other direction only if they differ."""
    families = sorted({cell.links[number].ip_family.title for cell in cells})
    family = "" if families == [IPV4.title] else f"{' or '.join(families)}: "
    there = _values(_impairment(cell.links[number].forward) + _traced(cell, number, "forward") for cell in cells)
    back = _values(_impairment(cell.links[number].backward) + _traced(cell, number, "backward") for cell in cells)
    return f"{family}{there}" if there == back else f"{family}there: {there}; back: {back}"


def _traced(cell: Cell, number: int, side: DirectionName) -> str:
    """How often the trace of a direction changes it; "" if it has none whose values are events."""
    name = f"{cell.links[number].name}{OF_TRACE}"
    changes = sum(event.name == name and side in event.directions for event in cell.timeline)
    return f" at the beginning, {counted(changes, 'change')} by its trace" if changes else ""


def _impairment(shape: LinkImpairment) -> str:
    """Rate and delay also where there are none; then all that is configured besides."""
    words = in_words(shape)
    rate, delay = words.pop("rate_bit_s", "no rate"), f"{readable(shape.one_way_delay_ns / 1e6)} ms one way"
    queue = [words.pop(name) for name in ("queue_packets", "queue_bytes") if name in words]
    words.pop("one_way_delay_ns", None)
    return ", ".join([rate.removeprefix("rate "), delay, *queue, *words.values()])


def _values(texts: Iterable[str]) -> str:
    """Distinct texts, the first few of them."""
    distinct = list(dict.fromkeys(texts))
    more = f" or {len(distinct) - MOST_VALUES} more" if len(distinct) > MOST_VALUES else ""
    return " or ".join(distinct[:MOST_VALUES]) + more


def _drawing(cell: Cell) -> Markup:
    """Nodes from the senders on the left, a column a hop; links between them."""
    places = _places(cell)
    width = (max(x for x, _ in places.values()) + 1) * COLUMN
    height = (max(y for _, y in places.values()) + 1) * ROW + 20
    lines, nodes = Markup(), Markup()
    seen: dict[tuple[str, str], int] = {}
    for link in cell.links:
        (x1, y1), (x2, y2) = _at(places[link.a]), _at(places[link.b])
        pair = (min(link.a, link.b), max(link.a, link.b))
        bend = seen[pair] = seen.get(pair, -1) + 1
        middle, apart = (y1 + y2) / 2, BEND * bend  # a quadratic curve comes half as far as its control point
        lines += Markup('<path class="topology-link" d="M{},{} Q{},{} {},{}"/><text x="{}" y="{}">{}</text>').format(
            x1, y1, (x1 + x2) / 2, middle + 2 * apart, x2, y2, (x1 + x2) / 2, middle + apart - LABEL, link.name
        )
    for node in cell.nodes:
        x, y = _at(places[node.name])
        shape = Markup('<circle cx="{}" cy="{}" r="{}"/>').format(x, y, RADIUS)
        if node.kind == "switch":
            box = (x - 1.3 * RADIUS, y - RADIUS, 2.6 * RADIUS, 2 * RADIUS)
            shape = Markup('<rect x="{}" y="{}" width="{}" height="{}"/>').format(*box)
        nodes += Markup('<g class="topology-{}">{}<text x="{}" y="{}">{}</text></g>').format(
            node.kind, shape, x, y + 4, node.name[:6]
        )
    words = "; ".join(f"{link.name} from {link.a} to {link.b}" for link in cell.links)
    return Markup(
        '<svg class="topology" role="img" aria-label="Topology: {}" viewBox="0 0 {} {}" width="{}">{}{}</svg>'
    ).format(words, width, height, width, lines, nodes)


def _at(place: tuple[int, int]) -> tuple[float, float]:
    x, y = place
    return (x + 0.5) * COLUMN, (y + 0.5) * ROW


def _places(cell: Cell) -> dict[str, tuple[int, int]]:
    """Node -> column (hops from a sender) and row."""
    start = [node.name for node in cell.nodes if any(flow.sender == node.name for flow in cell.flows)]
    columns = dict.fromkeys(start or [cell.nodes[0].name], 0)
    ends = [(link.a, link.b) for link in cell.links]
    front = list(columns)
    while front:
        front = [
            other
            for name in front
            for a, b in ends
            for other in ((b,) if a == name else (a,) if b == name else ())
            if columns.setdefault(other, columns[name] + 1) == columns[name] + 1 and other not in start
        ]
        front = list(dict.fromkeys(front))
    rows: dict[int, int] = {}
    places: dict[str, tuple[int, int]] = {}
    for node in cell.nodes:
        column = columns.get(node.name, 0)
        places[node.name] = (column, rows.setdefault(column, 0))
        rows[column] += 1
    return places


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
