"""The grammar of spec.toml as data: every section, every key with an example. docs/spec.md explains it; a new key is
added in both.
"""

from __future__ import annotations

from typing import get_args

from ..core.ip_families import FamilyName
from ..core.link_types import SIDES
from ..core.outputs import MOMENTS, MOST_PACKETS, Statistic
from .arrivals import ARRIVALS
from .arrivals import EXAMPLE as ARRIVALS_EXAMPLE
from .fields import Field, quantity
from .options import ALL_AGENTS, of_role
from .page_flows import PAGE
from .programs import PROGRAM
from .read_heartbeats import EXAMPLE as HEARTBEATS_EXAMPLE
from .read_heartbeats import HEARTBEATS
from .read_messages import EXAMPLE as MESSAGES_EXAMPLE
from .read_messages import MESSAGES, REVERSE

MS, S = 10**6, 10**9
LEVELS = Field("levels", '{ outage = ["0 s", "5 s"] }')
CONDITIONS = {"only": LEVELS, "unless": LEVELS}
RATIO = quantity("ratio", example='"1 %"')
NUMBER_OF_A_PACKET = Field("integer", "3", low=1, high=2**31 - 1)
PACKET_RANGE: dict[str, Field] = {
    "every": quantity("packets", example='"1000 packets"', low=1, high=2**31 - 1),
    "from": NUMBER_OF_A_PACKET,
    "to": NUMBER_OF_A_PACKET,
}
"""Of a rule for single packets: a range of their numbers."""
DELAY_OF_A_PACKET = quantity("time", example='"30 ms"', low=1, high=600 * S)
_MILLISECONDS = quantity("time", example='"5 ms"', low=1000, high=100 * S)
_THRESHOLD = quantity("data", "packets", example='"5 packets" or "15 KiB"', low=1)
AQM: dict[str, Field] = {
    "kind": Field("choice", '"codel"', choices=("red", "codel", "fq_codel", "pie", "cake", "dualpi2")),
    "ecn": Field("switch", "true"),
    "target": _MILLISECONDS,
    "interval": quantity("time", example='"100 ms"', low=1000, high=100 * S),
    "update": quantity("time", example='"15 ms"', low=MS, high=10 * S),
    "alpha": Field("integer", "2", low=0, high=(1 << 23) - 1),
    "beta": Field("integer", "20", low=0, high=(1 << 23) - 1),
    "flows": Field("integer", "1024", low=1, high=65536),
    "quantum": quantity("data", example='"1514 B"', low=256, high=1 << 20),
    "min": _THRESHOLD,
    "max": _THRESHOLD,
    "max_p": RATIO,
    "average": Field("integer", "9", low=1, high=31),
    "adaptive": Field("switch", "true"),
    "hard": Field("switch", "true"),
    "rtt": quantity("time", example='"100 ms"', low=MS, high=100 * S),
    "ack_filter": Field("switch", "true"),
    "step": quantity("time", "packets", example='"1 ms" or "5 packets"', low=0, high=4 * S),
    "step_from": quantity("packets", example='"2 packets"', low=0),
    "coupling": Field("integer", "2", low=1, high=255),
    "overload": Field("choice", '"drop"', choices=("drop", "overflow")),
    "drop_early": Field("switch", "true"),
    "protection": RATIO,
    "low_latency": Field("choice", '"ect1"', choices=("ect1", "ect0", "any")),
    "memory": quantity("data", example='"30 MB"', low=1, high=(1 << 32) - 1),
}
"""Of every kind; plan/impairments.py knows which has which."""
POLICER: dict[str, Field] = {
    "rate": quantity("rate", low=1000, high=10**12),
    "burst": quantity("data", example='"64 KiB"', low=68, high=1 << 30),
}
SLOTS: dict[str, Field] = {
    "after": quantity("time", example='"2 ms"', low=1000, high=10 * S),
    "to": quantity("time", example='"5 ms"', low=1000, high=10 * S),
    "packets": quantity("packets", example='"32 packets"', low=1, high=2**31 - 1),
    "bytes": quantity("data", example='"48 kB"', low=1, high=2**31 - 1),
}
ACK_THINNING: dict[str, Field] = {
    "every": quantity("packets", example='"4 packets"', low=2, high=1000),
    "hold": quantity("time", example='"10 ms"', low=1000, high=10 * S),
}
TRACE: dict[str, Field] = {
    "file": Field("text", '"lte.csv"'),
    "after": Field("choice", '"repeat"', choices=("repeat", "hold", "end")),
    "window": quantity("time", example='"100 ms"', low=MS, high=60 * S),
    "opportunity": quantity("data", example='"1504 B"', low=64, high=1 << 20),
    "overhead": quantity("data", example='"4 B"', high=1000),
}

DIRECTION: dict[str, Field] = {
    "rate": quantity("rate", low=1000, high=10**12),
    "queue": quantity("packets", "bdp", "data", example='"50 packets", "64 KiB" or "1 bdp"', low=1, high=10_000_000),
    "aqm": Field("table", '{ kind = "codel", target = "5 ms", ecn = true }', fields=AQM),
    "burst": quantity("data", example='"16 kB"', low=68, high=1 << 30),
    "slots": Field("table", '{ after = "2 ms", to = "5 ms", packets = "32 packets" }', fields=SLOTS),
    "ack_thinning": Field("table", '{ every = "4 packets", hold = "10 ms" }', fields=ACK_THINNING),
    "trace": Field("open", '"lte.csv" or { file = "lte.trace", after = "end" }', fields=TRACE),
    "policer": Field("table", '{ rate = "10 Mbit/s", burst = "64 KiB" }', fields=POLICER),
    "layer": Field("choice", '"ip"', choices=("ip", "ethernet")),
    "one_way_delay": quantity("time", example='"100 ms"', high=600 * S),
    "jitter": quantity("time", example='"5 ms"', high=600 * S),
    "jitter_correlation": RATIO,
    "distribution": Field("choice", '"normal"', choices=("uniform", "normal", "pareto", "paretonormal")),
    "in_order": Field("switch", "true"),
    "loss": RATIO,
    "loss_correlation": RATIO,
    "burst_loss": Field(
        "table",
        '{ p = "1 %", r = "20 %", bad_loss = "100 %", good_loss = "0 %" }',
        fields={"p": RATIO, "r": RATIO, "bad_loss": RATIO, "good_loss": RATIO},
    ),
    "bit_errors": RATIO,
    "byte_errors": RATIO,
    "drop": Field("open", '[3, 7] or { every = "1000 packets" }'),
    "duplicate": Field("open", '"1 %" or [5]'),
    "delay": Field("open", '{ 5 = "30 ms" }'),
    "corrupt": RATIO,
    "reorder": RATIO,
}
_ONE_WAY = Field("table", '{ one_way_delay = "100 ms" }', fields=DIRECTION)
BOTH_WAYS: dict[str, Field] = {
    **DIRECTION,
    "rtt": quantity("time", example='"200 ms"', high=1200 * S),
    "forward": _ONE_WAY,
    "backward": _ONE_WAY,
}
EXCLUSIVE = (
    frozenset({"one_way_delay", "rtt"}),
    frozenset({"loss", "burst_loss"}),
    frozenset({"bit_errors", "byte_errors"}),
)
"""Keys that say the same thing in two ways: one table holds one of them; a patch with one replaces the other."""

PHASE: dict[str, Field] = {"uniform": Field("open", '["0 s", "1 s"]')}
"""A time that is drawn from the seed, between two times."""
_PHASE = Field("table", '{ uniform = ["0 s", "1 s"] }', fields=PHASE)
END: dict[str, Field] = {"hop": Field("name", '"b"')}
"""The interface of a link's hop towards one of its nodes."""
LONGER_THAN = quantity("data", example='"1400 B"', low=20, high=65535)
REPEATED: dict[str, Field] = {
    "action": Field("choice", '"blackhole"', choices=("cut", "blackhole", "change")),
    "directions": Field("names", '["forward"]', choices=SIDES),
    "at": quantity("time", example='"15 s"'),
    "for": quantity("time", example='"50 ms"'),
    "every": quantity("time", example='"15 s"', low=MS),
    "longer_than": LONGER_THAN,
    **BOTH_WAYS,
}
"""Keys of what a link does periodically by itself, such as the handovers of a satellite."""
_OF_A_LINK = Field(
    "map", '[event.handover] with action = "blackhole", at = "15 s", for = "50 ms", every = "15 s"', fields=REPEATED
)
PROFILE: dict[str, Field] = {
    "title": Field("text", '"ADSL2+, 16/1 Mbit/s"'),
    "source": Field("text", '"RFC 2488, section 2"'),
    **BOTH_WAYS,
    "event": _OF_A_LINK,
}
NODE: dict[str, Field] = {
    "kind": Field("choice", '"host"', choices=("host", "router", "switch")),
    "sysctl": Field("open", '{ "net.ipv4.tcp_sack" = "1" }'),
    "stack": Field("text", '"linux-2.6.10-like"'),
    "agent": Field("open", '"snoop"', fields=ALL_AGENTS),
    "like": Field("name", '"a"'),
    **CONDITIONS,
}
FAMILY = Field(
    "choice",
    '"ipv6"',
    choices=get_args(FamilyName),
    answers={
        "dual": 'a link carries one family; for paths of both, link.p1.family = "ipv4", link.p2.family = "ipv6", and '
        'paths = ["p1", "p2"] on the flow'
    },
)
LINK: dict[str, Field] = {
    "between": Field("names", '["a", "b"]'),
    "profile": Field("name", '"adsl"'),
    "mtu": quantity("data", example='"1500 B"', low=68, high=65535),
    "family": FAMILY,
    "firewall": Field("choice", '"drop"', choices=("drop", "reject")),
    **BOTH_WAYS,
    "event": _OF_A_LINK,
    "like": Field("name", '"p1"'),
    **CONDITIONS,
}
PATH: dict[str, Field] = {key: Field("text", '"p1"') for key in ("sender", "receiver", "back")}
"""A path by its links: at the sender, at the receiver, and that by which the receiver's own packets leave."""
SWITCH: dict[str, Field] = {"at": quantity("time", example='"50 s"'), "path": Field("text", '"p2"'), **CONDITIONS}
FIRST_TIME = quantity("time", example='"0 s"')
STARTS: dict[str, Field] = {"first": FIRST_TIME, "every": quantity("time", example='"100 ms"')}
"""The starts of equal flows: of the first, and so long after each other."""
STOPS: dict[str, Field] = {**STARTS, "last": quantity("time", example='"50 s"')}
"""Their stops: `first`: of the first, the others after it; `last`: of the last, the others after it."""
MOST_FLOWS = 1000
FLOW: dict[str, Field] = {
    "from": Field("name", '"a"', pattern=True),
    "to": Field("name", '"b"', pattern=True),
    "count": Field("integer", "50", low=1, high=MOST_FLOWS),
    "classes": Field("open", '{ mice = "100 kB", elephants = "1 GB" }'),
    "arrivals": Field("table", ARRIVALS_EXAMPLE, fields=ARRIVALS),
    "protocol": Field("choice", '"sctp"', choices=("tcp", "sctp", "mptcp", "udp", "quic", "icmp")),
    "program": Field("open", '"iperf3"', fields=PROGRAM),
    "page": Field("table", '{ objects = { count = 5, size = "13.5 kB" } }', fields=PAGE),
    "paths": Field("names", '["p1", "p2"]', fields=PATH),
    "port": Field("integer", "5001", low=1, high=65535),
    "start": quantity("time", example='"0.5 s"', fields=STARTS),
    "phase": _PHASE,
    "stop": quantity("time", example='"100 s"', fields=STOPS),
    "bytes": quantity("data", example='"10 MB"', low=1),
    "message_size": quantity("data", example='"1452 B"', low=1, high=16 << 20),
    "messages": Field("table", MESSAGES_EXAMPLE, fields=MESSAGES),
    "reverse": Field("table", MESSAGES_EXAMPLE, fields=REVERSE),
    "late": quantity("time", example='"100 ms"', low=1000, high=3600 * S),
    "sender": Field("open", '{ congestion = "reno" }', fields=of_role("sender")),
    "receiver": Field("open", '{ rcvbuf = "64 KiB" }', fields=of_role("receiver")),
    "switch_primary": Field("tables", '[{ at = "50 s", path = "p2" }]', fields=SWITCH),
    "heartbeats": Field("table", HEARTBEATS_EXAMPLE, fields=HEARTBEATS),
    "like": Field("name", '"ftp"'),
    **CONDITIONS,
}
EVENT: dict[str, Field] = {
    "action": Field(
        "choice",
        '"cut"',
        choices=("cut", "blackhole", "link", "change", "mtu", "forget", "address", "stop_reading", "restart"),
    ),
    "link": Field("name", '"p1"'),
    "end": Field("open", '"b" or { hop = "b" }', fields=END),
    "directions": Field("names", '["forward"]', choices=SIDES),
    "at": quantity("time", example='"50 s"'),
    "for": quantity("time", example='"10 s"'),
    "every": quantity("time", example='"15 s"', low=MS),
    "phase": _PHASE,
    "for_phase": _PHASE,
    "longer_than": LONGER_THAN,
    "mtu": quantity("data", example='"1280 B"', low=68, high=65535),
    "node": Field("name", '"b"'),
    "killed": Field("choice", '"host"', choices=("host", "process")),
    "flow": Field("name", '"bulk"'),
    **BOTH_WAYS,
    "like": Field("name", '"outage"'),
    **CONDITIONS,
}
SECTIONS: dict[str, dict[str, Field]] = {"node": NODE, "link": LINK, "flow": FLOW, "event": EVENT}
_EXAMPLES = {
    "node": '[node.a] with kind = "host"',
    "link": '[link.p1] with between = ["a", "b"]',
    "flow": '[flow.ftp] with from = "a", to = "b"',
    "event": '[event.outage] with action = "cut", link = "p1"',
}
SHAPE: dict[str, Field] = {
    "kind": Field("choice", '"two-path"', choices=("two-path", "dumbbell", "chain")),
    "hops": Field("integer", "3", low=1, high=100),
    "pairs": Field("integer", "2", low=1, high=100),
}
FAIR: dict[str, Field] = {"within": RATIO, "for": quantity("time", example='"2 s"', low=MS)}
SPAN: dict[str, Field] = {"from": quantity("time", example='"20 s"'), "to": quantity("time", example='"60 s"')}
MEASURE: dict[str, Field] = {
    "windows": quantity("time", example='"1 s"', low=MS),
    "links": Field("names", '["bottleneck.forward"]'),
    "fair": Field("table", '{ within = "20 %", for = "2 s" }', fields=FAIR),
    "span": Field("table", '{ from = "20 s", to = "60 s" }', fields=SPAN),
}
"""The keys of numbers that are measured beyond the metrics of every cell."""
RESOLVED: dict[str, Field] = {
    "duration": quantity("time", example='"100 s"', low=MS, high=86400 * S),
    "captures": Field("open", '"hosts", "all", or ["a.p1", "b.p1"]'),
    "kernel": Field("text", '"6.1"'),
    "measure": Field("table", '{ windows = "1 s", links = ["bottleneck.forward"] }', fields=MEASURE),
    "shape": Field("table", '{ kind = "chain", hops = 3 }', fields=SHAPE),
    "parameter": Field("open", '{ rate = "1 Mbit/s" }'),
    "default": Field(
        "table",
        '[default.link] with mtu = "1500 B"',
        fields={name: Field("table", _EXAMPLES[name], fields=fields) for name, fields in SECTIONS.items()},
    ),
    **{name: Field("map", _EXAMPLES[name], fields=fields) for name, fields in SECTIONS.items()},
}
"""Keys of the document that become part of a cell: those that a level of a factor may change."""

LEVEL: dict[str, Field] = {"title": Field("text", '"SCTP, two paths"'), **RESOLVED}
SCHEDULE: dict[str, Field] = {
    "of": Field("texts", '["p1.forward", "p1.backward"]'),
    "first": Field("integer", "20", low=1, high=1000),
    "together": Field("integer", "2", low=1, high=4),
    "from": quantity("time", example='"5 s"', high=86400 * S),
}
SCHEDULES: dict[str, Field] = {
    key: Field("table", '{ of = ["p1.forward", "p1.backward"], first = 20, together = 2 }', fields=SCHEDULE)
    for key in ("drops", "duplicates", "reorders")
}
"""Keys that a factor may have in place of levels: its levels are packets of the undisturbed cell."""
FACTOR_KEYS: dict[str, Field] = {
    "title": Field("text", '"length of the outage"'),
    **SCHEDULES,
    "levels": Field("names", '["0 s", "5 s"]'),
    "level": Field("open", '[factor.variant.level.tcp] with flow.bulk = { protocol = "tcp" }'),
    "every": Field("open", '[factor.variant.every] with link.p1.queue = "9 packets"', fields=RESOLVED),
    "sets": Field("texts", '"parameter.delay"'),
    "usual": Field("text", '"today"'),
    "unstated": Field("text", '"the paper does not say how far the server is"'),
    "only": LEVELS,
}
EXPERIMENT: dict[str, Field] = {
    "title": Field("text", '"Table 5"'),
    "factors": Field("names", '["outage", "variant"]'),
    "fixed": LEVELS,
    "levels": LEVELS,
    "zip": Field("open", '[["rate", "queue"]]'),
    "repetitions": Field("integer", "3", low=1, high=100_000),
    "repeat": Field("choice", '"random"', choices=("all", "random")),
    "optional": Field("switch", "true"),
}
METRIC: dict[str, Field] = {
    "title": Field("text", '"throughput as the paper counts it"'),
    "unit": Field("text", '"byte/s"'),
    "value": Field("text", '"payload_bytes / duration_s"'),
    "published": Field("text", '"paper"'),
}
OF_EXPERIMENT = Field("texts", '"outages"')
TABLE: dict[str, Field] = {
    "title": Field("text", '"Table 5"'),
    "experiment": OF_EXPERIMENT,
    "metric": Field("text", '"goodput_bit_s"'),
    "flow": Field("texts", '"ftp" or ["ftp", "voice"]'),
    "rows": Field("texts", '["variant", "failover"]'),
    "columns": Field("texts", '"outage"'),
    "beside": Field("names", '["mathis_bit_s"]'),
    "statistic": Field("choice", '"max"', choices=get_args(Statistic)),
    "where": LEVELS,
    "around": Field("names", '["fault", "repair"]', choices=MOMENTS),
    "packets": Field("integer", "4", low=1, high=MOST_PACKETS),
}
FIGURE: dict[str, Field] = {
    "title": TABLE["title"],
    "experiment": OF_EXPERIMENT,
    "metric": TABLE["metric"],
    "flow": TABLE["flow"],
    "flows": TABLE["flow"],
    "kind": Field("choice", '"heatmap"', choices=("line", "heatmap", "cdf", "box")),
    "x": Field("name", '"outage"'),
    "y": Field("name", '"rtt"'),
    "lines": Field("texts", '["variant"]'),
    "panels": Field("texts", '"load"'),
    "over": Field("texts", '"phase"'),
    "log": Field("switch", "true"),
    "beside": TABLE["beside"],
    "where": LEVELS,
    "series": Field("names", '["cwnd_bytes"]'),
    "window": Field("names", '["45 s", "75 s"]'),
    "windows": Field("switch", "true"),
}
REASON: dict[str, Field] = {
    "metric": TABLE["metric"],
    "above": Field("open", "1"),
    "text": Field("text", '"it takes {theory_timeouts} timeouts in a row"'),
}
COST: dict[str, Field] = {"metric": TABLE["metric"], "where": LEVELS, "text": REASON["text"]}
ANSWER: dict[str, Field] = {
    "title": Field("text", '"Which settings keep the outage within the budget?"'),
    "experiment": OF_EXPERIMENT,
    "metric": TABLE["metric"],
    "flow": TABLE["flow"],
    "settings": Field("names", '["preset"]'),
    "given": Field("names", '["rtt"]'),
    "budgets": Field("names", '["500 ms", "1 s"]'),
    "where": LEVELS,
    "tempting": TABLE["metric"],
    "because": Field("tables", '[{ metric = "theory_timeouts", above = 1, text = "..." }]', fields=REASON),
    "cost": Field("table", '{ metric = "spurious_retransmissions", where = { fault = "none" } }', fields=COST),
}
TOP: dict[str, Field] = {
    "format": Field("integer", "1", low=1, high=1),
    "name": Field("name", '"choi2009"'),
    "title": Field("text", '"SCTP through a link failure"'),
    "description": Field("text", '"What is asked and how."'),
    "expected": Field("text", '"claims.toml"'),
    "published": Field("text", '"published.csv"'),
    "key_figure": Field("name", '"figure5"'),
    "seed": Field("integer", "1", low=0, high=2**53),
    "repetitions": Field("integer", "1", low=1, high=100_000),
    **RESOLVED,
    "factor": Field("open", '[factor.outage] with levels = ["0 s", "5 s"]'),
    "experiment": Field("map", '[experiment.outages] with factors = ["outage"]', fields=EXPERIMENT),
    "metric": Field("map", '[metric.mine] with unit = "byte/s"', fields=METRIC),
    "table": Field("map", '[table.table5] with metric = "goodput_bit_s"', fields=TABLE),
    "figure": Field("map", '[figure.figure5] with x = "outage"', fields=FIGURE),
    "answer": Field("map", '[answer.budget] with metric = "outage_s"', fields=ANSWER),
}
