"""Notes on a plan: limits of its cells that no error shows, with the remedy of each.

The socket buffers of a flow may hold less than its path and its queue do. Flows that share a queue without anything
random meet in one phase only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..core.metrics.catalogue import METRICS
from ..core.numbers import in_short
from ..core.outputs import SAMPLED, Figure, Table, TimeSeries
from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import Cell, Flow, Path
from ..core.units import counted_of, listed
from .kinds import FLOW_KINDS
from .types import Plan, Selection

IN_GUESTS = ("auto", "virtual", "guest")
"""Back ends whose cells run in guests; auto: one of them, wherever a guest kernel is there."""
PACED = ("interval_ns", "pacing_rate_bit_s")
"""Options of a sender that is not saturated."""
LONG = 10
"""A transfer that took this many times as long as rate and round trip need is over (nothing random, no fault)."""
SAMPLE_REMEDY = 'sample_interval; for example sender = { sample_interval = "10 ms" }'
PHASE_REMEDY = 'phase = { uniform = ["0 s", "1 s"] } on the flows but one, and --repetitions 5 or more'


def notes(plan: Plan, backend: str) -> tuple[str, ...]:
    """Sentences about the cells of a plan."""
    return (*buffer_notes(plan.cells, backend), *_one_phase(plan), *_unsampled(plan))


def _unsampled(plan: Plan) -> Iterator[str]:
    """Tables and figures of what the kernel alone knows, of flows whose sender does not ask it: they stay empty."""
    selection = Selection(plan)
    outputs: tuple[TimeSeries | Figure | Table, ...] = (*plan.time_series, *plan.figures, *plan.tables)
    for output in outputs:
        names = output.series if isinstance(output, TimeSeries) else (output.metric, *output.beside)
        of_samples = [
            name for name in names if name in SAMPLED or (name in METRICS and METRICS[name].clock == "sample")
        ]
        without = {
            f'"{flow.name}"'
            for cell in (plan.cells if of_samples else ())
            if selection.has(cell, output.where)
            for flow in cell.flows
            if flow.name in (output.flows or (flow.name,)) and not flow.sender_options.get("sample_interval_ns")
            if of_samples != ["ssthresh_bytes"] or not flow.sender_options.get("tracepoints")
        }
        if without:
            kind = "table" if isinstance(output, Table) else "figure"
            flows = f"{'flow' if len(without) == 1 else 'flows'} {', '.join(sorted(without))}"
            yield (
                f"{kind} {output.name} has no {', '.join(of_samples)} of {flows}: the kernel is asked for it only where"
                f" netwarp's own sender has a {SAMPLE_REMEDY}"
            )


def buffer_notes(cells: Iterable[Cell], backend: str) -> Iterator[str]:
    """Flows whose default buffers hold less than path and queue: a sentence for all of a protocol that are alike, with
    the worst cell.
    """
    worst: dict[tuple[str, str], list[tuple[float, str]]] = {}
    total: dict[str, int] = {}
    for cell in cells:
        for flow in cell.flows:
            total[flow.name] = total.get(flow.name, 0) + 1
            window = FLOW_KINDS[flow.protocol].window
            known = window is not None and (backend in IN_GUESTS or not window.guests_only)
            if known and (held := _held(cell, flow)) is not None:
                worst.setdefault((flow.name, flow.protocol), []).append(held)
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, _), said in worst.items():
        alike.setdefault((counted_of(len(said), total[name], "cell"), min(said)[1]), []).append(f'"{name}"')
    for (share, why), names in alike.items():
        yield f"{'flow' if len(names) == 1 else 'flows'} {listed(names)} of {share} cannot fill {why}"


def _held(cell: Cell, flow: Flow) -> tuple[float, str] | None:
    """The window by its buffers, as a share of what path and queue hold, and the sentence; None where the window is no
    limit.
    """
    rates = [path.bottleneck_bit_s for path in flow.paths if path.bottleneck_bit_s is not None]
    rtt_s = max(path.base_rtt_ns for path in flow.paths) / 1e9
    kind = FLOW_KINDS[flow.protocol]
    of_kind, window = kind.window, _window_bytes(cell, flow)
    if (
        of_kind is None
        or window is None
        or len(rates) < len(flow.paths)
        or (flow.total_bytes is not None and flow.total_bytes <= window)
    ):
        return None
    together = sum if kind.paths_add_up else max
    rate = together(rates)
    path_bytes, queue_bytes = rate * rtt_s / 8, together(_queue_bytes(cell, flow, path) for path in flow.paths)
    size = path_bytes + queue_bytes
    if window >= size:
        return None
    held = f"{in_short(rate, 'bit/s')} x RTT {in_short(rtt_s, 's')} = {in_short(path_bytes, 'bytes')}"
    if window < path_bytes:
        what, why = "its path", f"at most {in_short(window * 8 / rtt_s, 'bit/s')}"
    else:
        what, why = "the queue of its path", "alone it never loses a packet there, and its share with others ends there"
        held += f", with a queue of {in_short(queue_bytes, 'bytes')} {in_short(size, 'bytes')}"
    return (
        window / size,
        f"{what}: {held}, and {of_kind.words} {in_short(window, 'bytes')}{of_kind.unit}: {why};"
        f" larger ones: {of_kind.larger(size)} (docs/limitations.md)",
    )


def _queue_bytes(cell: Cell, flow: Flow, path: Path) -> int:
    """The most that waits at the slowest link of a path. AQMs count as empty, except RED: they keep the queue short."""
    links = {link.name: link for link in cell.links}
    for crossed in _route(cell, flow, path):
        link = links[crossed.link]
        shape = link.side(crossed.direction)
        if shape.rate_bit_s == path.bottleneck_bit_s:
            short = shape.aqm is not None and shape.aqm.kind != "red"
            return 0 if short else shape.queue_bytes or (shape.queue_packets or 0) * link.mtu_bytes
    return 0


def _window_bytes(cell: Cell, flow: Flow) -> float | None:
    """The most data in flight that buffers allow which neither the spec nor a stack set; None: it set them, the
    flow paces its messages, or a program of the user's chooses for itself.
    """
    window = FLOW_KINDS[flow.protocol].window
    if window is None or flow.program is not None or flow.is_page or any(name in flow.sender_options for name in PACED):
        return None
    return window.bytes_of(flow, {node.name: node.sysctls for node in cell.nodes})


def _one_phase(plan: Plan) -> Iterator[str]:
    """Cells without anything random in which flows share a queue, and which start always at the same instants."""
    starts: dict[tuple[str, ...], set[tuple[int, ...]]] = {}
    shared: dict[tuple[str, ...], int] = {}
    known: dict[tuple[object, ...], frozenset[str]] = {}
    for cell in plan.cells:
        if cell.random or len(cell.flows) < 2:
            continue
        together = _sharing(cell, known)
        if together:
            names = tuple(flow.name for flow in cell.flows if flow.name in together)
            first = min(flow.start_ns for flow in cell.flows)
            starts.setdefault(names, set()).add(tuple(flow.start_ns - first for flow in cell.flows))
            shared[names] = shared.get(names, 0) + 1
    for names, count in shared.items():
        if len(starts[names]) == 1:  # else the starts are what the plan varies
            yield (
                f"nothing is random in {counted_of(count, len(plan.cells), 'cell')}, but the flows {listed(names)}"
                " share a queue: their numbers, and the verdicts on them, are those of one phase, and a start some"
                f" milliseconds later may turn them. To draw phases from the seed: {PHASE_REMEDY}"
            )


def _sharing(cell: Cell, known: dict[tuple[object, ...], frozenset[str]]) -> frozenset[str]:
    """The flows of a cell that send at the same time into one queue."""
    key = (
        tuple((link.name, link.a, link.b, link.forward.rate_bit_s, link.backward.rate_bit_s) for link in cell.links),
        tuple((flow.name, flow.paths, flow.start_ns, _end_ns(cell, flow)) for flow in cell.flows),
    )
    if key not in known:
        ahead = {DirectedLink(link.name, "forward") for link in cell.links if link.forward.rate_bit_s is not None}
        back = {DirectedLink(link.name, "backward") for link in cell.links if link.backward.rate_bit_s is not None}
        queues = ahead | back
        crossed = {
            flow.name: {one for path in flow.paths for one in _route(cell, flow, path)} & queues for flow in cell.flows
        }
        known[key] = frozenset(
            name
            for a in cell.flows
            for b in cell.flows
            if a.name != b.name and crossed[a.name] & crossed[b.name] and _overlap(cell, a, b)
            for name in (a.name, b.name)
        )
    return known[key]


def _overlap(cell: Cell, a: Flow, b: Flow) -> bool:
    return a.start_ns < _end_ns(cell, b) and b.start_ns < _end_ns(cell, a)


def _end_ns(cell: Cell, flow: Flow) -> int:
    """A time at which it certainly sends no more: its stop, or, of a short transfer, when its bytes are long there."""
    stop_ns = cell.duration_ns if flow.stop_ns is None else flow.stop_ns
    rates = [path.bottleneck_bit_s for path in flow.paths if path.bottleneck_bit_s is not None]
    paced = any(name in flow.sender_options for name in PACED)
    if flow.total_bytes is None or paced or cell.timeline or not rates or len(rates) < len(flow.paths):
        return stop_ns
    rtt_ns = max(path.base_rtt_ns for path in flow.paths)
    return min(stop_ns, flow.start_ns + int(LONG * (flow.total_bytes * 8e9 / min(rates) + rtt_ns)))


def _route(cell: Cell, flow: Flow, path: Path) -> tuple[DirectedLink, ...]:
    """The directions of links that its data may cross; none where a rule planned them that this graph does not show."""
    hosts = frozenset(node.name for node in cell.nodes if node.kind == "host")
    try:
        return find_route(hosts, cell.links, flow.sender, flow.receiver, path.receiver_link)
    except NoRoute:
        return ()
