"""The frozen types that all stages share: plain data, without defaults that hide a decision and without callables.

Each quantity has one unit: time int nanoseconds (`_ns`), data int bytes (`_bytes`), rate int bit/s (`_bit_s`), ratio
0..1 (`_ratio`). Times of flows and events count from T0. A `Cell` is one fully resolved run. Equal cells have equal
JSON (`to_json`), and the cell's id is made from that JSON: a new or renamed field changes all ids.
"""

from __future__ import annotations

import enum
import hashlib
import re
from typing import Annotated, Literal

import msgspec

from .frozen import Frozen, to_json
from .link_types import SIDES, DirectionName, Link, LinkImpairment
from .messages import Messages
from .names import (
    LARGEST_FILE_BYTES,
    MOST_ARGUMENTS,
    MOST_FILES,
    Count,
    FileName,
    InnerName,
    Key,
    Name,
    NoneOrName,
    OptionText,
    Port,
    SysctlName,
    SysctlValue,
    Text,
)
from .outside_text import one_line

NodeKind = Literal["host", "router", "switch"]
Protocol = Literal["tcp", "sctp", "mptcp", "udp", "quic", "icmp"]
"""netwarp's own apps speak all but QUIC and ICMP, programs all but MPTCP."""
Action = Literal[
    "cut", "blackhole", "link", "repair", "change", "stop_reading", "restart", "address", "mtu", "forget"
]  # fmt: skip
LINK_FAULTS: tuple[Action, ...] = ("cut", "blackhole", "link")
HOST_FAULTS: tuple[Action, ...] = ("mtu", "forget", "address", "stop_reading", "restart")
"""Actions that begin a fault: of a link ("link": an end goes down), and of hosts, addresses and middle boxes."""
FAULTS = LINK_FAULTS + HOST_FAULTS
Killed = Literal["host", "process"]
AgentKind = Literal["snoop", "mtcp", "itcp-proxy"]
AgentTold = Literal["nothing", "return", "both"]
OptionValue = int | str | bool
Options = dict[Key, Count | OptionText | bool]
Arguments = Annotated[tuple[Text, ...], msgspec.Meta(max_length=MOST_ARGUMENTS)]
Files = Annotated[
    dict[FileName, Annotated[str, msgspec.Meta(max_length=LARGEST_FILE_BYTES)]], msgspec.Meta(max_length=MOST_FILES)
]
CELL_FORMAT: Literal[1] = 1


class Outcome(enum.StrEnum):
    """The end of a cell. Tables hold only COMPLETED cells, and say how many others there are."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    TIMED_OUT = "TIMED_OUT"
    UNSUPPORTED = "UNSUPPORTED"
    INVALID = "INVALID"


class Agent(Frozen, frozen=True):
    """A performance-enhancing proxy (RFC 3135) on a router: apps/agents, docs/agents.md.

    link: of the router, towards the mobile host. options: of the program (long names with `_`) -> value.
    dies_ns: when it is killed. told (mtcp): of which ends of a fault of that link it hears, as from the link layer.
    """

    kind: AgentKind
    link: InnerName
    options: Options = msgspec.field(default_factory=dict)
    dies_ns: Count | None = None
    told: AgentTold = "return"


class Node(Frozen, frozen=True):
    """One network namespace. Hosts run apps; routers forward packets; a switch joins its links into one Ethernet
    segment, with one subnet. `sysctls`: path below /proc/sys -> value.
    """

    name: InnerName
    kind: NodeKind
    sysctls: dict[SysctlName, SysctlValue] = msgspec.field(default_factory=dict)
    agent: Agent | None = None


class Path(Frozen, frozen=True):
    """One address pair of a flow: the link at the sender, the link at the receiver, and the properties of the route
    between them.

    bottleneck_bit_s: the lowest rate on the route from sender to receiver (None: unlimited). base_rtt_ns: sum of the
    one-way delays of both directions, without serialisation and queueing.
    """

    name: InnerName
    sender_link: InnerName
    receiver_link: InnerName
    bottleneck_bit_s: Count | None
    base_rtt_ns: Count
    back_link: InnerName | None = None
    """The receiver's link by which its own packets leave, where the spec says it. None: as routing has it."""


class PrimarySwitch(Frozen, frozen=True):
    """At `at_ns` the sender makes `path` the primary path of its association (SCTP_PRIMARY_ADDR)."""

    at_ns: Count
    path: InnerName


class Heartbeat(Frozen, frozen=True):
    """`at_ns` after the flow's start an end sends a HEARTBEAT on `path` (SPP_HB_DEMAND)."""

    at_ns: Count
    end: Literal["sender", "receiver"]
    path: InnerName


class Heartbeats(Frozen, frozen=True):
    """What both ends send in place of the kernels' own HEARTBEATs; from `until_ns` on the kernels send theirs again."""

    beats: tuple[Heartbeat, ...]
    until_ns: Count | None = None


class Program(Frozen, frozen=True):
    """A program of the user's own, or of QUIC, instead of netwarp's sender and receiver: argument lists, with `{to}`
    etc. not yet filled in.

    receiver: empty: nothing runs there. listens: the end that is started before T0; the other, which connects, is
    started at the flow's start. ready: the text that the first writes to its stdout once it listens ("": do not wait).
    interrupt: the other gets SIGINT at the flow's stop. files: name -> text, placeholders not filled in, of the files
    that both find in `{files}`.
    """

    sender: Arguments
    receiver: Arguments = ()
    ready: Text = ""
    interrupt: bool = False
    listens: Literal["sender", "receiver"] = "receiver"
    files: Files | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not self.sender:
            raise ValueError("a program's sender has no arguments")
        for own in filter(None, (self.sender, self.receiver)):
            word = own[0].removeprefix("{unpacked}")
            if not word or ("/" in word and not word.startswith("/")):
                raise ValueError(f"{own[0][:80]!r} is neither the name of a program nor an absolute path")

    def of(self, role: Literal["sender", "receiver"]) -> tuple[str, ...]:
        """The argument list of one end."""
        return self.sender if role == "sender" else self.receiver


class Reverse(Frozen, frozen=True):
    """What a flow's receiver sends to its sender over the same connection.

    options: of the messages (`interval_ns`, `burst_bytes`, `reverse_streams`). messages: where they are listed one by
    one. Without an interval and messages: as fast as the kernel accepts data.
    """

    message_bytes: Count
    total_bytes: Count | None = None
    options: Options = msgspec.field(default_factory=dict)
    messages: Messages | None = None


class Flow(Frozen, frozen=True):
    """A TCP connection, MPTCP connection or SCTP association; of a program, everything it sends. The first of the paths
    is the primary.

    `stop_ns` or `total_bytes` ends the flow (at least one is set). `sender_options`/`receiver_options`: option of the
    app (its long name with `_`, e.g. `rcvbuf_bytes`) -> value.
    """

    name: InnerName
    protocol: Protocol
    sender: InnerName
    receiver: InnerName
    paths: Annotated[tuple[Path, ...], msgspec.Meta(min_length=1)]
    port: Port
    start_ns: Count
    stop_ns: Count | None
    total_bytes: Count | None
    message_bytes: Count
    switches: tuple[PrimarySwitch, ...] = ()
    sender_options: Options = msgspec.field(default_factory=dict)
    receiver_options: Options = msgspec.field(default_factory=dict)
    program: Program | None = None
    """The user's own program, if the flow is one."""
    group: InnerName | msgspec.UnsetType = msgspec.UNSET
    """The flow of the spec of which this is one of many; unset it is no part of the JSON."""
    size_class: InnerName | msgspec.UnsetType = msgspec.UNSET
    """The class of sizes of its group that it belongs to."""
    messages: Messages | msgspec.UnsetType = msgspec.UNSET
    """What the sender sends, where the messages are listed one by one; unset it is no part of the JSON."""
    reverse: Reverse | msgspec.UnsetType = msgspec.UNSET
    """What the receiver sends, where both ends send."""
    late_ns: Count | msgspec.UnsetType = msgspec.UNSET
    """A message that is delivered later than this after it was due is late."""
    heartbeats: Heartbeats | msgspec.UnsetType = msgspec.UNSET
    """Unset the kernels send theirs."""

    @property
    def is_back(self) -> bool:
        """True of the other direction of a flow (reversed_flow), which no cell holds."""
        return self.name.endswith(BACK)

    @property
    def is_page(self) -> bool:
        """True if it is pages that its receiver asks for: the receiver connects, to the sender's port."""
        return "pages" in self.receiver_options

    @property
    def opener(self) -> Literal["sender", "receiver"]:
        """The end that connects."""
        if self.is_back and self.program is None:
            return "receiver"
        asked = self.program is not None and self.program.listens == "sender"
        return "receiver" if self.is_page or asked else "sender"

    @property
    def listener(self) -> Literal["sender", "receiver"]:
        """The end that listens."""
        return "sender" if self.opener == "receiver" else "receiver"

    @property
    def is_datagrams(self) -> bool:
        """True if its packets show no sequence numbers of a transport: of UDP, of QUIC (encrypted) and of ICMP."""
        return self.protocol in ("udp", "quic", "icmp")


BACK = ".back"
"""Ends the name of a flow's other direction, from its receiver to its sender, where that carries payload too."""


def reversed_flow(flow: Flow) -> Flow:
    """The other direction of a program's flow, or of one with `reverse`. How fast its paths are is not known: spec and
    plan say it of the flow's own direction.
    """
    ends = {"sender": flow.receiver, "receiver": flow.sender}
    paths = tuple(
        Path(path.name, path.receiver_link, path.sender_link, None, path.base_rtt_ns, path.sender_link)
        for path in flow.paths
    )
    name = f"{flow.name}{BACK}"
    if flow.program is None:
        assert flow.reverse is not msgspec.UNSET
        back = flow.reverse
        return msgspec.structs.replace(
            flow,
            name=name,
            paths=paths,
            **ends,
            message_bytes=back.message_bytes,
            total_bytes=back.total_bytes,
            switches=(),
            sender_options={**flow.receiver_options, **back.options},
            receiver_options=flow.sender_options,
            messages=msgspec.UNSET if back.messages is None else back.messages,
            reverse=msgspec.UNSET,
            heartbeats=msgspec.UNSET,
        )
    listens: Literal["sender", "receiver"] = "receiver" if flow.program.listens == "sender" else "sender"
    program = msgspec.structs.replace(flow.program, listens=listens)
    return msgspec.structs.replace(flow, name=name, paths=paths, program=program, **ends)


def closing(flow: Flow) -> OptionValue:
    """How netwarp's own sender closes: "abort" or "graceful"; unless the spec says it, a flow that ends by time
    aborts, and one that ends by bytes waits until they have arrived.
    """
    graceful = flow.total_bytes is not None and flow.protocol != "udp"
    return flow.sender_options.get("close", "graceful" if graceful else "abort")


OF_TRACE = ".trace"
"""Ends the name of an event that a link's trace makes."""


class Event(Frozen, frozen=True):
    """An event of the timeline. A fault (`cut`, `blackhole`, `link`) and its `repair` have the same `name`.

    An event that the link's profile makes, which is part of the path and not a fault under test, is called
    `<link>.<event>`. directions: the directions of the link that it affects (a `link` event takes the whole end down).
    end: for `link`, the node whose interface goes down; the hop's far interface is `<link>.hop:<node>`.
    forward/backward: for `change`, the new impairments (None: unchanged).
    """

    at_ns: Count
    name: InnerName
    action: Action
    link: NoneOrName
    directions: tuple[DirectionName, ...] = SIDES
    end: InnerName | None = None
    forward: LinkImpairment | None = None
    backward: LinkImpairment | None = None
    longer_than_bytes: Count | None = None
    """Of a `blackhole`: only IP packets longer than that vanish."""
    node: InnerName | msgspec.UnsetType = msgspec.UNSET
    """Of a `restart` and of an `address`: the host. Members that are unset are no part of the JSON."""
    flow: InnerName | msgspec.UnsetType = msgspec.UNSET
    """Of a `stop_reading`: the flow whose receiver stops."""
    killed: Killed | msgspec.UnsetType = msgspec.UNSET
    """Of a `restart`: the whole host, which then sends and answers nothing, or its processes alone."""
    mtu_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    """Of an `mtu`: the longest IP packet that is forwarded from then on."""

    def side(self, name: DirectionName) -> LinkImpairment | None:
        """The new impairments of one direction; None: unchanged."""
        return self.forward if name == "forward" else self.backward

    @property
    def of_the_link(self) -> bool:
        """True if the link's profile makes this event, repeatedly."""
        return "." in self.name


class CapturePoint(Frozen, frozen=True):
    """A capture of every packet, whole, on the interface of `node` for `link`."""

    node: InnerName
    link: InnerName


class Measure(Frozen, frozen=True):
    """What a spec asks to be measured beyond the metrics of every cell.

    window_ns: the length of the windows of time. links: directions of links ("p1.forward") whose queue is measured.
    fair_ratio, fair_hold_ns: a share is fair if it is that near to the equal one; it has to stay so for that long.
    span_ns: (from, to) of the time whose rates, losses and delays are measured by themselves, after a start, say.
    """

    window_ns: int
    links: tuple[str, ...]
    fair_ratio: float
    fair_hold_ns: int
    span_ns: tuple[int, int] | msgspec.UnsetType = msgspec.UNSET


class GuestKernel(Frozen, frozen=True):
    """A guest kernel that the spec names for a cell.

    release: of the build. sha256: of its executable; "": it is not built here, and release is what the spec says.
    """

    release: Text
    sha256: Annotated[str, msgspec.Meta(pattern=r"^(?:[0-9a-f]{64})?\Z")]

    @property
    def numbers(self) -> tuple[int, int]:
        """(6, 1) of "6.1.192"; (0, 0) where it does not begin with two numbers."""
        numbers = re.match(r"(\d+)\.(\d+)", self.release)
        return (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)


class Cell(Frozen, frozen=True, kw_only=True):
    """One fully resolved run. `factors`: factor -> level as the spec writes it ("-" where it does not apply)."""

    format: Literal[1] = CELL_FORMAT
    spec: Name
    experiment: Name
    factors: dict[Name, Text]
    repetition: Count
    seed: Count
    duration_ns: Count
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    flows: tuple[Flow, ...]
    timeline: tuple[Event, ...]
    captures: tuple[CapturePoint, ...]
    random: bool
    """True where the seed changes anything the cell measures (loss, jitter, a drawn phase)."""
    parameters: dict[str, str] = msgspec.field(default_factory=dict)
    metrics: dict[str, str] = msgspec.field(default_factory=dict)
    """The spec's own metrics: name -> arithmetic expression over this flow's metrics."""
    metric_units: dict[str, str] = msgspec.field(default_factory=dict)
    """Unit of each of the spec's own metrics."""
    kernel: GuestKernel | msgspec.UnsetType = msgspec.UNSET
    """The kernel that the spec names; unset it is no part of the JSON, and the cell runs on the back end's kernel."""
    measure: Measure | msgspec.UnsetType = msgspec.UNSET
    """Set where the spec has [measure]; unset it is no part of the JSON."""

    @property
    def id(self) -> str:
        """Readable factors and the first 10 hex digits of the SHA-256 of the cell's JSON."""
        words = [level for level in self.factors.values() if level != "-"]
        text = "_".join(re.sub(r"[^A-Za-z0-9.]+", "", word) for word in words) or self.experiment
        digest = hashlib.sha256(to_json(self)).hexdigest()[:10]
        return f"{text[:80]}_r{self.repetition}_{digest}"

    @property
    def shapes(self) -> dict[tuple[str, str], LinkImpairment]:
        """(Link, direction) -> what it does to packets, unless an event changes it."""
        return {(link.name, side): link.side(side) for link in self.links for side in SIDES}

    @property
    def corrupts(self) -> bool:
        """True if a link alters bits, at any time."""
        of_events = (event.side(side) for event in self.timeline for side in SIDES)
        return any(shape is not None and shape.corrupt_ratio for shape in (*self.shapes.values(), *of_events))


class Problem(Frozen, frozen=True):
    """A reason why a back end cannot run on this machine: what is missing, and the exact remedy."""

    what: str
    remedy: str


class Measurement(Frozen, frozen=True):
    """One measured number. `flow`: empty for the whole cell. `value`: None if there was nothing to measure."""

    cell_id: str
    flow: str
    metric: str
    value: float | None
    unit: str


class Check(Frozen, frozen=True):
    """One self-check of a cell. `detail`: the value that was seen, also when the check passed."""

    check: str
    ok: bool
    detail: str

    def __post_init__(self) -> None:
        """What a cell's files say becomes one line of text that acts on no terminal."""
        for name in ("check", "detail"):
            msgspec.structs.force_setattr(self, name, one_line(getattr(self, name)))


class CellOutcome(Frozen, frozen=True):
    """The end of a cell: outcome.json, which the back end writes once, plus the judgement of the analyser's checks.

    judged_by: `backend`: outcome.json only; `analysis`: the analyser's checks are included (judgement.json).
    """

    outcome: Outcome
    reason: str
    virtual_s: float | None
    wall_s: float
    console_tail: tuple[str, ...] = ()
    host_load_1min: float | None = None
    judged_by: Literal["backend", "analysis"] = "backend"

    def __post_init__(self) -> None:
        """A program's own words are in them: each becomes one line of text that acts on no terminal."""
        msgspec.structs.force_setattr(self, "reason", one_line(self.reason))
        tail = tuple(one_line(line.expandtabs()) for line in self.console_tail)
        msgspec.structs.force_setattr(self, "console_tail", tail)
