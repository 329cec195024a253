"""Notes on a plan: limits of its cells that no error shows, with the remedy of each.

A guest's socket buffers may keep a flow below its path's rate. Flows that share a queue without anything random meet
in one phase only.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..core.numbers import in_short
from ..core.topology import DirectedLink, NoRoute, find_route
from ..core.types import Cell, Flow
from ..core.units import counted_of
from .types import Plan

IN_GUESTS = ("auto", "virtual", "guest")
"""Back ends whose cells run in guests; auto: one of them, wherever a guest kernel is there."""
GUEST_TCP_BUFFER_BYTES = 1_958_560
"""The last number of a guest's tcp_rmem and tcp_wmem. The kernel computes it from the memory there is (net/ipv4/tcp.c:
tcp_init), 256 MiB. Measured: 6.12.117.
"""
PAYLOAD_SHARE = 0.62
"""Of a TCP buffer, with full packets; the rest is the kernel's own records. Measured: a window of 1,222,688 B."""
SCTP_WINDOW_BYTES = 106_496
"""Half of net.core.rmem_default (net/sctp/associola.c): the a_rwnd of any Linux that is not told otherwise."""
TCP_REMEDY = (
    '[default.node] sysctl = { "net.ipv4.tcp_rmem" = "4096 131072 16777216",'
    ' "net.ipv4.tcp_wmem" = "4096 16384 16777216" }'
)
SCTP_REMEDY = 'receiver = { rcvbuf = "4 MB" }, sender = { sndbuf = "4 MB" }'
PACED = ("interval_ns", "pacing_rate_bit_s")
"""Options of a sender that is not saturated."""
LONG = 10
"""A transfer that took this many times as long as rate and round trip need is over (nothing random, no fault)."""
PHASE_REMEDY = 'phase = "uniform(0 s, 1 s)" on the flows but one, and --repetitions 5 or more'


def notes(plan: Plan, backend: str) -> tuple[str, ...]:
    """Sentences about the cells of a plan. The buffers are known of guests alone."""
    return (*(_buffers(plan) if backend in IN_GUESTS else ()), *_one_phase(plan))


def _buffers(plan: Plan) -> Iterator[str]:
    """Flows whose path holds more than the default buffers allow: one sentence a flow, with its worst cell."""
    worst: dict[str, list[tuple[float, str]]] = {}
    cells: dict[str, int] = {}
    for cell in plan.cells:
        for flow in cell.flows:
            cells[flow.name] = cells.get(flow.name, 0) + 1
            if (held := _held(cell, flow)) is not None:
                worst.setdefault(flow.name, []).append(held)
    for name, said in worst.items():
        share = counted_of(len(said), cells[name], "cell")
        yield f'flow "{name}" of {share} cannot fill its path: {min(said)[1]}'


def _held(cell: Cell, flow: Flow) -> tuple[float, str] | None:
    """The window by its buffers, as a share of rate x RTT, and the sentence; None where the window is no limit."""
    rates = [path.bottleneck_bit_s for path in flow.paths if path.bottleneck_bit_s is not None]
    rtt_s = max(path.base_rtt_ns for path in flow.paths) / 1e9
    window = _window_bytes(cell, flow)
    if window is None or len(rates) < len(flow.paths) or not rtt_s:
        return None
    rate = sum(rates) if flow.protocol == "mptcp" else max(rates)
    size = rate * rtt_s / 8
    if window >= size or (flow.total_bytes is not None and flow.total_bytes <= window):
        return None
    sctp = flow.protocol == "sctp"
    return (
        window / size,
        f"{in_short(rate, 'bit/s')} x RTT {in_short(rtt_s, 's')} = {in_short(size, 'bytes')}, and"
        f" {'SCTP announces a window of' if sctp else 'the buffers of a socket in a guest hold'}"
        f" {in_short(window, 'bytes')}{'' if sctp else ' of data'}: at most {in_short(window * 8 / rtt_s, 'bit/s')};"
        f" larger ones: {SCTP_REMEDY if sctp else TCP_REMEDY} (docs/limitations.md)",
    )


def _window_bytes(cell: Cell, flow: Flow) -> float | None:
    """The most data in flight that buffers allow which neither the spec nor a stack set; None: it set them, the
    flow paces its messages, or a program of the user's chooses for itself.
    """
    if (
        flow.program is not None
        or flow.is_datagrams
        or flow.is_page
        or any(name in flow.sender_options for name in PACED)
    ):
        return None
    sender, receiver = (
        next(node.sysctls for node in cell.nodes if node.name == name) for name in (flow.sender, flow.receiver)
    )
    chosen = {"rcvbuf_bytes", "window_clamp_bytes"} & flow.receiver_options.keys()
    if flow.protocol == "sctp":
        return None if chosen or "net.core.rmem_default" in receiver else SCTP_WINDOW_BYTES
    received = chosen or "net.ipv4.tcp_rmem" in receiver
    sent = "sndbuf_bytes" in flow.sender_options or "net.ipv4.tcp_wmem" in sender
    return None if received and sent else GUEST_TCP_BUFFER_BYTES * PAYLOAD_SHARE


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
                f"nothing is random in {counted_of(count, len(plan.cells), 'cell')}, but the flows {', '.join(names)}"
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
        crossed = {flow.name: _route(cell, flow) & queues for flow in cell.flows}
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


def _route(cell: Cell, flow: Flow) -> set[DirectedLink]:
    """The directions of links that its data may cross."""
    hosts = frozenset(node.name for node in cell.nodes if node.kind == "host")
    crossed: set[DirectedLink] = set()
    for path in flow.paths:
        try:
            crossed |= set(find_route(hosts, cell.links, flow.sender, flow.receiver, path.receiver_link))
        except NoRoute:
            continue  # it was planned by a rule that this graph does not show
    return crossed
