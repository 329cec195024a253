# The keys of an experiment written in Python, for editors and type checkers: made from the grammar by
# tests/support/study_keys.py. docs/spec.md explains them.
# ruff: noqa: PYI051  (an editor offers the literals, and a text may hold a placeholder)

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from .study import Handle, Key

Name: TypeAlias = str | Handle
Names: TypeAlias = Sequence[str | Handle]
Levels: TypeAlias = Mapping[str, str | Sequence[str]]
Texts: TypeAlias = str | Key | Sequence[str | Key]

class AqmKeys(TypedDict, total=False):
    kind: Literal["red", "codel", "fq_codel", "pie", "cake", "dualpi2"] | str  # "codel"
    ecn: bool  # true
    target: str  # "5 ms"
    interval: str  # "100 ms"
    update: str  # "15 ms"
    alpha: int  # 2
    beta: int  # 20
    flows: int  # 1024
    quantum: str  # "1514 B"
    min: str  # "5 packets" or "15 KiB"
    max: str  # "5 packets" or "15 KiB"
    max_p: str  # "1 %"
    average: int  # 9
    adaptive: bool  # true
    hard: bool  # true
    rtt: str  # "100 ms"
    ack_filter: bool  # true
    step: str  # "1 ms" or "5 packets"
    step_from: str  # "2 packets"
    coupling: int  # 2
    overload: Literal["drop", "overflow"] | str  # "drop"
    drop_early: bool  # true
    protection: str  # "1 %"
    low_latency: Literal["ect1", "ect0", "any"] | str  # "ect1"
    memory: str  # "30 MB"

class BurstLossKeys(TypedDict, total=False):
    p: str  # "1 %"
    r: str  # "1 %"
    bad_loss: str  # "1 %"
    good_loss: str  # "1 %"

class PolicerKeys(TypedDict, total=False):
    rate: str  # "500 kbit/s"
    burst: str  # "64 KiB"

class SlotsKeys(TypedDict, total=False):
    after: str  # "2 ms"
    to: str  # "5 ms"
    packets: str  # "32 packets"
    bytes: str  # "48 kB"

class TraceKeys(TypedDict, total=False):
    file: str  # "lte.csv"
    after: Literal["repeat", "hold", "end"] | str  # "repeat"
    window: str  # "100 ms"
    opportunity: str  # "1504 B"
    overhead: str  # "4 B"

class AckThinningKeys(TypedDict, total=False):
    every: str  # "4 packets"
    hold: str  # "10 ms"

class DirectionKeys(TypedDict, total=False):
    rate: str  # "500 kbit/s"
    queue: str  # "50 packets", "64 KiB" or "1 bdp"
    aqm: AqmKeys  # { kind = "codel", target = "5 ms", ecn = true }
    burst: str  # "16 kB"
    slots: SlotsKeys  # { after = "2 ms", to = "5 ms", packets = "32 packets" }
    ack_thinning: AckThinningKeys  # { every = "4 packets", hold = "10 ms" }
    trace: TraceKeys | str | Sequence[object]  # "lte.csv" or { file = "lte.trace", after = "end" }
    policer: PolicerKeys  # { rate = "10 Mbit/s", burst = "64 KiB" }
    layer: Literal["ip", "ethernet"] | str  # "ip"
    one_way_delay: str  # "100 ms"
    jitter: str  # "5 ms"
    jitter_correlation: str  # "1 %"
    distribution: Literal["uniform", "normal", "pareto", "paretonormal"] | str  # "normal"
    in_order: bool  # true
    loss: str  # "1 %"
    loss_correlation: str  # "1 %"
    burst_loss: BurstLossKeys  # { p = "1 %", r = "20 %", bad_loss = "100 %", good_loss = "0 %" }
    bit_errors: str  # "1 %"
    byte_errors: str  # "1 %"
    drop: object  # [3, 7] or { every = "1000 packets" }
    duplicate: object  # "1 %" or [5]
    delay: object  # { 5 = "30 ms" }
    corrupt: str  # "1 %"
    reorder: str  # "1 %"

class BothWaysKeys(DirectionKeys, total=False):
    rtt: str  # "200 ms"
    forward: DirectionKeys  # { one_way_delay = "100 ms" }
    backward: DirectionKeys  # { one_way_delay = "100 ms" }

class RepeatedKeys(BothWaysKeys, total=False):
    action: Literal["cut", "blackhole", "change"] | str  # "blackhole"
    directions: Names  # ["forward"]
    at: str  # "15 s"
    for_: str  # "50 ms"
    every: str  # "15 s"
    longer_than: str  # "1400 B"

class AgentKeys(TypedDict, total=False):
    kind: Literal["snoop", "mtcp", "itcp-proxy", "none"] | str  # "snoop"
    link: Name  # "air"
    dies_at: str  # "10 s"
    told: Literal["nothing", "return", "both"] | str  # "return"
    cache: str  # "100 packets"
    timeout_min: str  # "100 ms"
    retransmissions: int  # 10
    away_after: str  # "100 ms"
    hold: str  # "100 ms"
    buffer: str  # "64 KiB"
    congestion: Name  # "reno"
    sack: Literal["hide", "pass"] | str  # "pass"

class NodeKeys(TypedDict, total=False):
    kind: Literal["host", "router", "switch"] | str  # "host"
    sysctl: object  # { "net.ipv4.tcp_sack" = "1" }
    stack: str  # "linux-2.6.10-like"
    agent: AgentKeys | str | Sequence[object]  # "snoop"
    like: Name  # "a"
    only: Levels  # { outage = ["0 s", "5 s"] }
    unless: Levels  # { outage = ["0 s", "5 s"] }

class LinkKeys(BothWaysKeys, total=False):
    between: Names  # ["a", "b"]
    profile: Name  # "adsl"
    mtu: str  # "1500 B"
    family: Literal["ipv4", "ipv6"] | str  # "ipv6"
    firewall: Literal["drop", "reject"] | str  # "drop"
    event: Mapping[str, RepeatedKeys]
    like: Name  # "p1"
    only: Levels  # { outage = ["0 s", "5 s"] }
    unless: Levels  # { outage = ["0 s", "5 s"] }

class SwitchKeys(TypedDict, total=False):
    at: str  # "50 s"
    path: str  # "p2"
    only: Levels  # { outage = ["0 s", "5 s"] }
    unless: Levels  # { outage = ["0 s", "5 s"] }

class PathKeys(TypedDict, total=False):
    sender: str  # "p1"
    receiver: str  # "p1"
    back: str  # "p1"

class PhaseKeys(TypedDict, total=False):
    uniform: object  # ["0 s", "1 s"]

class EndKeys(TypedDict, total=False):
    hop: Name  # "b"

class ObjectsKeys(TypedDict, total=False):
    count: int  # 5
    size: str  # "13.5 kB"
    median: str  # "13.5 kB"
    sigma: str  # "1.2"

class PageKeys(TypedDict, total=False):
    html: str  # "13.5 kB"
    objects: ObjectsKeys | str | Sequence[object]
    har: object  # "today.har"
    request: str  # "300 B"
    pages: int  # 10
    think: str  # "1 s"
    keep: bool  # true
    connections: int  # 6
    pipelined: bool  # true
    multiplexed: bool  # true
    frame: str  # "16 KiB"
    streams: int  # 6
    order: Literal["fcfs", "rr", "prio"] | str  # "rr"
    message: str  # "488 B"
    interleave: bool  # true
    nodelay: bool  # true

class ProgramKeys(TypedDict, total=False):
    sender: object  # ["ping", "-n", "{to}"]
    receiver: object  # ["iperf3", "-s", "-1"]
    ready: str  # "Server listening"
    interrupt: bool  # true
    listens: Literal["sender", "receiver"] | str  # "sender"
    files: object  # ["stp.cfg"]

class BurstKeys(TypedDict, total=False):
    messages: int  # 3
    sizes: object  # ["120 B", "80 B"]
    every: str  # "1 s"

class SenderKeys(TypedDict, total=False):
    rcvbuf: str  # "65536 B" or "1 bdp"
    sndbuf: str  # "65536 B" or "1 bdp"
    congestion: Name  # "reno"
    mss: str  # "1460 B"
    nodelay: bool  # true
    initial_window: str  # "4 packets"
    separate_sends: bool  # true
    streams: int  # 4
    rto_initial: str  # "1 s"
    rto_min: str  # "1 s"
    rto_max: str  # "1 s"
    path_max_retrans: int  # 5
    association_max_retrans: int  # 10
    pf_retrans: int  # 0
    ps_retrans: int  # 2
    heartbeat_interval: str  # "5 s"
    sack_delay: str  # "200 ms"
    sack_frequency: int  # 2
    max_burst: int  # 4
    path_mtu: str  # "1280 B"
    init_attempts: int  # 4
    init_max_timeout: str  # "8 s"
    no_fragments: bool  # true
    scheduler: Literal["fcfs", "prio", "rr", "fc", "wfq"] | str  # "rr"
    stream_values: object  # [0, 1]
    unordered: bool  # true
    ppid: int  # 60
    lifetime: str  # "500 ms"
    max_retransmissions: int  # 3
    any_address: bool  # true
    connect: Literal["connect", "connectx"] | str  # "connectx"
    pacing_rate: str  # "2 Mbit/s"
    interval: str  # "1 s"
    message_rate: str  # "64 kbit/s"
    burst: BurstKeys  # { messages = 3, every = "1 s" }
    sample_interval: str  # "10 ms"
    tracepoints: bool  # true
    arch: Literal["arm64"] | str  # "arm64"
    bare: bool  # true
    connect_deadline: str  # "30 s"
    reconnect: str  # "1 s"
    ecn: Literal["not-ect", "ect0", "ect1", "ce"] | str  # "ect1"
    local_port: int  # 2905
    stall_deadline: str  # "30 s"
    close: Literal["abort", "graceful"] | str  # "abort"

class ReceiverKeys(TypedDict, total=False):
    rcvbuf: str  # "65536 B" or "1 bdp"
    sndbuf: str  # "65536 B" or "1 bdp"
    window_clamp: str  # "65700 B" or "1 bdp"
    congestion: Name  # "reno"
    mss: str  # "1460 B"
    nodelay: bool  # true
    quick_ack: bool  # true
    streams: int  # 4
    rto_initial: str  # "1 s"
    rto_min: str  # "1 s"
    rto_max: str  # "1 s"
    path_max_retrans: int  # 5
    association_max_retrans: int  # 10
    pf_retrans: int  # 0
    ps_retrans: int  # 2
    heartbeat_interval: str  # "5 s"
    sack_delay: str  # "200 ms"
    sack_frequency: int  # 2
    max_burst: int  # 4
    path_mtu: str  # "1280 B"
    unordered: bool  # true
    ppid: int  # 60
    any_address: bool  # true
    connect_deadline: str  # "30 s"
    stall_deadline: str  # "30 s"

class StartsKeys(TypedDict, total=False):
    first: str  # "0 s"
    every: str  # "100 ms"

class SizesKeys(TypedDict, total=False):
    uniform: object  # ["20 ms", "80 ms"]
    exponential: object  # "50 ms"
    lognormal: object  # { median = "50 ms", sigma = "0.5" }
    pareto: object  # { least = "1 kB", shape = "1.3" }
    published: Literal["web-search"] | str  # "web-search"
    file: object  # "sizes.csv"
    most: str  # "10 MB"

class ArrivalsKeys(TypedDict, total=False):
    process: Literal["poisson", "regular"] | str  # "poisson"
    rate: str  # "5 /s"
    size: SizesKeys | str | Sequence[object]
    stop: str  # "50 s"

class StopsKeys(TypedDict, total=False):
    first: str  # "0 s"
    every: str  # "100 ms"
    last: str  # "50 s"

class LawKeys(TypedDict, total=False):
    uniform: object  # ["20 ms", "80 ms"]
    exponential: object  # "50 ms"
    lognormal: object  # { median = "50 ms", sigma = "0.5" }
    pareto: object  # { least = "1 kB", shape = "1.3" }

class HeartbeatsKeys(TypedDict, total=False):
    file: object  # "beats.csv"
    until: str  # "50 s"

class MessagesKeys(TypedDict, total=False):
    gaps: LawKeys | str | Sequence[object]  # "50 ms", { exponential = "50 ms" } or { uniform = ["20 ms", "80 ms"] }
    think: LawKeys | str | Sequence[object]  # { exponential = "1 s" }
    file: object  # "voice.csv"
    sizes: LawKeys | str | Sequence[object]
    burst: int  # 3
    on: LawKeys | str | Sequence[object]  # { exponential = "1 s" }
    off: LawKeys | str | Sequence[object]  # { exponential = "1.35 s" }

class ReverseKeys(MessagesKeys, total=False):
    bytes: str  # "1 MB"
    streams: int  # 2

class FlowKeys(TypedDict, total=False):
    from_: Name  # "a"
    to: Name  # "b"
    count: int  # 50
    classes: object  # { mice = "100 kB", elephants = "1 GB" }
    arrivals: ArrivalsKeys  # { process = "poisson", rate = "5 /s", size = "30 kB" }
    protocol: Literal["tcp", "sctp", "mptcp", "udp", "quic", "icmp"] | str  # "sctp"
    program: ProgramKeys | str | Sequence[object]  # "iperf3"
    page: PageKeys  # { objects = { count = 5, size = "13.5 kB" } }
    paths: Sequence[str | Handle | PathKeys]  # ["p1", "p2"]
    port: int  # 5001
    start: str | StartsKeys  # "0.5 s"
    phase: PhaseKeys  # { uniform = ["0 s", "1 s"] }
    stop: str | StopsKeys  # "100 s"
    bytes: str  # "10 MB"
    message_size: str  # "1452 B"
    messages: MessagesKeys  # { gaps = { exponential = "50 ms" }, sizes = "120 B" }
    reverse: ReverseKeys  # { gaps = { exponential = "50 ms" }, sizes = "120 B" }
    late: str  # "100 ms"
    sender: SenderKeys | str | Sequence[object]  # { congestion = "reno" }
    receiver: ReceiverKeys | str | Sequence[object]  # { rcvbuf = "64 KiB" }
    switch_primary: Sequence[SwitchKeys]  # [{ at = "50 s", path = "p2" }]
    heartbeats: HeartbeatsKeys  # { file = "beats.csv" }
    like: Name  # "ftp"
    only: Levels  # { outage = ["0 s", "5 s"] }
    unless: Levels  # { outage = ["0 s", "5 s"] }

class EventKeys(BothWaysKeys, total=False):
    action: Literal["cut", "blackhole", "link", "change", "mtu", "forget", "address", "stop_reading", "restart"] | str
    link: Name  # "p1"
    end: EndKeys | str | Sequence[object]  # "b" or { hop = "b" }
    directions: Names  # ["forward"]
    at: str  # "50 s"
    for_: str  # "10 s"
    every: str  # "15 s"
    phase: PhaseKeys  # { uniform = ["0 s", "1 s"] }
    for_phase: PhaseKeys  # { uniform = ["0 s", "1 s"] }
    longer_than: str  # "1400 B"
    mtu: str  # "1280 B"
    node: Name  # "b"
    killed: Literal["host", "process"] | str  # "host"
    flow: Name  # "bulk"
    like: Name  # "outage"
    only: Levels  # { outage = ["0 s", "5 s"] }
    unless: Levels  # { outage = ["0 s", "5 s"] }

class ShapeKeys(TypedDict, total=False):
    kind: Literal["two-path", "dumbbell", "chain"] | str  # "two-path"
    hops: int  # 3
    pairs: int  # 2

class FairKeys(TypedDict, total=False):
    within: str  # "1 %"
    for_: str  # "2 s"

class SpanKeys(TypedDict, total=False):
    from_: str  # "20 s"
    to: str  # "60 s"

class MeasureKeys(TypedDict, total=False):
    windows: str  # "1 s"
    links: Names  # ["bottleneck.forward"]
    fair: FairKeys  # { within = "20 %", for = "2 s" }
    span: SpanKeys  # { from = "20 s", to = "60 s" }

class DefaultKeys(TypedDict, total=False):
    node: NodeKeys  # [node.a] with kind = "host"
    link: LinkKeys  # [link.p1] with between = ["a", "b"]
    flow: FlowKeys  # [flow.ftp] with from = "a", to = "b"
    event: EventKeys  # [event.outage] with action = "cut", link = "p1"
    experiment: object
    metric: object
    table: object
    figure: object

class ResolvedKeys(TypedDict, total=False):
    duration: str  # "100 s"
    captures: object  # "hosts", "all", or ["a.p1", "b.p1"]
    kernel: str  # "6.1"
    measure: MeasureKeys  # { windows = "1 s", links = ["bottleneck.forward"] }
    shape: ShapeKeys  # { kind = "chain", hops = 3 }
    parameter: object  # { rate = "1 Mbit/s" }
    default: DefaultKeys  # [default.link] with mtu = "1500 B"
    node: Mapping[str, NodeKeys]  # [node.a] with kind = "host"
    link: Mapping[str, LinkKeys]  # [link.p1] with between = ["a", "b"]
    flow: Mapping[str, FlowKeys]  # [flow.ftp] with from = "a", to = "b"
    event: Mapping[str, EventKeys]  # [event.outage] with action = "cut", link = "p1"

class LevelKeys(ResolvedKeys, total=False):
    title: str  # "SCTP, two paths"

class ScheduleKeys(TypedDict, total=False):
    of: Texts  # ["p1.forward", "p1.backward"]
    first: int  # 20
    together: int  # 2
    from_: str  # "5 s"

class FactorKeys(TypedDict, total=False):
    title: str  # "length of the outage"
    drops: ScheduleKeys  # { of = ["p1.forward", "p1.backward"], first = 20, together = 2 }
    duplicates: ScheduleKeys  # { of = ["p1.forward", "p1.backward"], first = 20, together = 2 }
    reorders: ScheduleKeys  # { of = ["p1.forward", "p1.backward"], first = 20, together = 2 }
    every: ResolvedKeys | str | Sequence[object]  # [factor.variant.every] with link.p1.queue = "9 packets"
    sets: Texts  # "parameter.delay"
    usual: str  # "today"
    unstated: str  # "the paper does not say how far the server is"
    only: Levels  # { outage = ["0 s", "5 s"] }

class ExperimentKeys(TypedDict, total=False):
    title: str  # "Table 5"
    factors: Names  # ["outage", "variant"]
    fixed: Levels  # { outage = ["0 s", "5 s"] }
    levels: Levels  # { outage = ["0 s", "5 s"] }
    zip: object  # [["rate", "queue"]]
    repetitions: int  # 3
    repeat: Literal["all", "random"]  # "random"
    optional: bool  # true
    each: object  # { outage = ["5 s", "10 s"] }, or [{ id = "C1", expected = 1 }, { id = "C2", expected = 2 }]

class MetricKeys(TypedDict, total=False):
    title: str  # "throughput as the paper counts it"
    unit: str  # "byte/s"
    value: str  # "payload_bytes / duration_s"
    published: str  # "paper"

class TableKeys(TypedDict, total=False):
    title: str  # "Table 5"
    experiment: Texts  # "outages"
    metric: str  # "goodput_bit_s"
    flow: Texts  # "ftp" or ["ftp", "voice"]
    rows: Texts  # ["variant", "failover"]
    columns: Texts  # "outage"
    beside: Names  # ["mathis_bit_s"]
    statistic: Literal["mean", "min", "median", "p95", "p99", "max"]  # "max"
    where: Levels  # { outage = ["0 s", "5 s"] }
    around: Names  # ["fault", "repair"]
    packets: int  # 4
    each: object  # { outage = ["5 s", "10 s"] }, or [{ id = "C1", expected = 1 }, { id = "C2", expected = 2 }]

class FigureKeys(TypedDict, total=False):
    title: str  # "Table 5"
    experiment: Texts  # "outages"
    metric: str  # "goodput_bit_s"
    flow: Texts  # "ftp" or ["ftp", "voice"]
    flows: Texts  # "ftp" or ["ftp", "voice"]
    kind: Literal["line", "heatmap", "cdf", "box"]  # "heatmap"
    x: Name  # "outage"
    y: Name  # "rtt"
    lines: Texts  # ["variant"]
    panels: Texts  # "load"
    over: Texts  # "phase"
    log: bool  # true
    beside: Names  # ["mathis_bit_s"]
    where: Levels  # { outage = ["0 s", "5 s"] }
    series: Names  # ["cwnd_bytes"]
    window: Names  # ["45 s", "75 s"]
    windows: bool  # true
    each: object  # { outage = ["5 s", "10 s"] }, or [{ id = "C1", expected = 1 }, { id = "C2", expected = 2 }]

class ReasonKeys(TypedDict, total=False):
    metric: str  # "goodput_bit_s"
    above: object  # 1
    text: str  # "it takes {theory_timeouts} timeouts in a row"

class CostKeys(TypedDict, total=False):
    metric: str  # "goodput_bit_s"
    where: Levels  # { outage = ["0 s", "5 s"] }
    text: str  # "it takes {theory_timeouts} timeouts in a row"

class AnswerKeys(TypedDict, total=False):
    title: str  # "Which settings keep the outage within the budget?"
    experiment: Texts  # "outages"
    metric: str  # "goodput_bit_s"
    flow: Texts  # "ftp" or ["ftp", "voice"]
    settings: Names  # ["preset"]
    given: Names  # ["rtt"]
    budgets: Names  # ["500 ms", "1 s"]
    where: Levels  # { outage = ["0 s", "5 s"] }
    tempting: str  # "goodput_bit_s"
    because: Sequence[ReasonKeys]  # [{ metric = "theory_timeouts", above = 1, text = "..." }]
    cost: CostKeys  # { metric = "spurious_retransmissions", where = { fault = "none" } }

class SourceKeys(TypedDict, total=False):
    title: str  # "Choi, Lee 2009"
    kind: Literal["paper", "simulator", "other"]  # "simulator"

class WordKeys(TypedDict, total=False):
    tolerance: object  # 0.143
    source: str  # "Table 6: 0.080 against 0.070"
    overlaps: Name  # "better"
    amended: object  # ["scale"]

class ColumnKeys(TypedDict, total=False):
    title: str  # "Linux, as in 2005"
    where: object  # { stack = "linux-2.6.10-like" }

class AmendmentKeys(TypedDict, total=False):
    date: str  # "2026-11-22"
    reason: str  # "the paper says depends on"
    was: object  # 0.05, or "C2e"

class SummaryKeys(TypedDict, total=False):
    text: str  # "Mostly: SCTP beats TCP in every outage, by {C6.measured} or more."
    presumes: object  # { C6 = "holds", C21 = "does not hold" }

class ClaimKeys(TypedDict, total=False):
    text: str  # "SCTP with two paths beats TCP at every outage."
    source: str  # "Table 5"
    kind: Literal[
        "greater",
        "less",
        "equal",
        "mean_greater",
        "difference",
        "gain",
        "mean_gain",
        "pooled_gain",
        "mean",
        "value",
        "every",
        "constant",
        "varies",
        "elasticity",
        "increasing",
        "decreasing",
        "later",
        "untestable",
    ]
    metric: str  # "goodput_bit_s"
    metric_b: str  # "cwnd_initial_bytes"
    flow: str  # "ftp"
    experiment: Texts  # "outages"
    where: object  # { variant = "tcp" }
    a: object  # { variant = "tcp" }
    b: object  # { variant = "tcp" }
    over: Levels  # { outage = ["5 s", "10 s"] }
    also: object  # { run_length = ["2 s", "5 s"] }
    of: Names  # ["C17", "C23"]
    expected: object  # { variant = "tcp" }
    tolerance: object  # { variant = "tcp" }
    reason: str  # "Table 5"
    clock: Literal["wall"]  # "wall"
    class_: Literal["conclusion", "number", "cause", "own"]  # "conclusion"
    paper: object  # { ko = "TCP가 가장 우수하다.", en = "TCP performs best." }
    readings: Names  # ["C34b", "C34c"]
    amended: object  # ["words"] or [{ date = "2026-11-22", reason = "the paper says: depends on" }]
    each: object  # { outage = ["5 s", "10 s"] }, or [{ id = "C1", expected = 1 }, { id = "C2", expected = 2 }]

class TopKeys(ResolvedKeys, total=False):
    title: str  # "SCTP through a link failure"
    description: str  # "What is asked and how."
    published: str  # "published.csv"
    key_figure: Name  # "figure5"
    seed: int  # 1
    repetitions: int  # 1
    headline: Names  # ["C6", "C21"]
    summary: SummaryKeys  # { text = "Yes, by {C6.measured}.", presumes = { C6 = "holds" } }
    loop: object

class Aqm(Key):
    kind: Key
    ecn: Key
    target: Key
    interval: Key
    update: Key
    alpha: Key
    beta: Key
    flows: Key
    quantum: Key
    min: Key
    max: Key
    max_p: Key
    average: Key
    adaptive: Key
    hard: Key
    rtt: Key
    ack_filter: Key
    step: Key
    step_from: Key
    coupling: Key
    overload: Key
    drop_early: Key
    protection: Key
    low_latency: Key
    memory: Key

class BurstLoss(Key):
    p: Key
    r: Key
    bad_loss: Key
    good_loss: Key

class Policer(Key):
    rate: Key
    burst: Key

class Slots(Key):
    after: Key
    to: Key
    packets: Key
    bytes: Key

class Trace(Key):
    file: Key
    after: Key
    window: Key
    opportunity: Key
    overhead: Key

class AckThinning(Key):
    every: Key
    hold: Key

class Direction(Key):
    rate: Key
    queue: Key
    aqm: Aqm
    burst: Key
    slots: Slots
    ack_thinning: AckThinning
    trace: Trace
    policer: Policer
    layer: Key
    one_way_delay: Key
    jitter: Key
    jitter_correlation: Key
    distribution: Key
    in_order: Key
    loss: Key
    loss_correlation: Key
    burst_loss: BurstLoss
    bit_errors: Key
    byte_errors: Key
    drop: Key
    duplicate: Key
    delay: Key
    corrupt: Key
    reorder: Key

class BothWays(Direction):
    rtt: Key
    forward: Direction
    backward: Direction

class Agent(Key):
    kind: Key
    link: Key
    dies_at: Key
    told: Key
    cache: Key
    timeout_min: Key
    retransmissions: Key
    away_after: Key
    hold: Key
    buffer: Key
    congestion: Key
    sack: Key

class Phase(Key):
    uniform: Key

class End(Key):
    hop: Key

class Objects(Key):
    count: Key
    size: Key
    median: Key
    sigma: Key

class Page(Key):
    html: Key
    objects: Objects
    har: Key
    request: Key
    pages: Key
    think: Key
    keep: Key
    connections: Key
    pipelined: Key
    multiplexed: Key
    frame: Key
    streams: Key
    order: Key
    message: Key
    interleave: Key
    nodelay: Key

class Sizes(Key):
    uniform: Key
    exponential: Key
    lognormal: Key
    pareto: Key
    published: Key
    file: Key
    most: Key

class Arrivals(Key):
    process: Key
    rate: Key
    size: Sizes
    stop: Key

class Program(Key):
    sender: Key
    receiver: Key
    ready: Key
    interrupt: Key
    listens: Key
    files: Key

class Burst(Key):
    messages: Key
    sizes: Key
    every: Key

class Sender(Key):
    rcvbuf: Key
    sndbuf: Key
    congestion: Key
    mss: Key
    nodelay: Key
    initial_window: Key
    separate_sends: Key
    streams: Key
    rto_initial: Key
    rto_min: Key
    rto_max: Key
    path_max_retrans: Key
    association_max_retrans: Key
    pf_retrans: Key
    ps_retrans: Key
    heartbeat_interval: Key
    sack_delay: Key
    sack_frequency: Key
    max_burst: Key
    path_mtu: Key
    init_attempts: Key
    init_max_timeout: Key
    no_fragments: Key
    scheduler: Key
    stream_values: Key
    unordered: Key
    ppid: Key
    lifetime: Key
    max_retransmissions: Key
    any_address: Key
    connect: Key
    pacing_rate: Key
    interval: Key
    message_rate: Key
    burst: Burst
    sample_interval: Key
    tracepoints: Key
    arch: Key
    bare: Key
    connect_deadline: Key
    reconnect: Key
    ecn: Key
    local_port: Key
    stall_deadline: Key
    close: Key

class Receiver(Key):
    rcvbuf: Key
    sndbuf: Key
    window_clamp: Key
    congestion: Key
    mss: Key
    nodelay: Key
    quick_ack: Key
    streams: Key
    rto_initial: Key
    rto_min: Key
    rto_max: Key
    path_max_retrans: Key
    association_max_retrans: Key
    pf_retrans: Key
    ps_retrans: Key
    heartbeat_interval: Key
    sack_delay: Key
    sack_frequency: Key
    max_burst: Key
    path_mtu: Key
    unordered: Key
    ppid: Key
    any_address: Key
    connect_deadline: Key
    stall_deadline: Key

class Law(Key):
    uniform: Key
    exponential: Key
    lognormal: Key
    pareto: Key

class Messages(Key):
    gaps: Law
    think: Law
    file: Key
    sizes: Law
    burst: Key
    on: Law
    off: Law

class Heartbeats(Key):
    file: Key
    until: Key

class Reverse(Messages):
    bytes: Key
    streams: Key

class Node(Handle):
    kind: Key
    sysctl: Key
    stack: Key
    agent: Agent
    like: Key
    only: Key
    unless: Key

class Link(BothWays, Handle):
    between: Key
    profile: Key
    mtu: Key
    family: Key
    firewall: Key
    event: Key
    like: Key
    only: Key
    unless: Key

class Flow(Handle):
    from_: Key
    to: Key
    count: Key
    classes: Key
    arrivals: Arrivals
    protocol: Key
    program: Program
    page: Page
    paths: Key
    port: Key
    start: Key
    phase: Phase
    stop: Key
    bytes: Key
    message_size: Key
    messages: Messages
    reverse: Reverse
    late: Key
    sender: Sender
    receiver: Receiver
    switch_primary: Key
    heartbeats: Heartbeats
    like: Key
    only: Key
    unless: Key

class Event(BothWays, Handle):
    action: Key
    link: Key
    end: End
    directions: Key
    at: Key
    for_: Key
    every: Key
    phase: Phase
    for_phase: Phase
    longer_than: Key
    mtu: Key
    node: Key
    killed: Key
    flow: Key
    like: Key
    only: Key
    unless: Key
