"""Run directories for tests of the report: real spec, plan, tables and formats; the numbers in them are made up.

`small_run`: three variants, four outages, with a paper's numbers and claims. `large_run`: as many cells as wanted,
random, with repetitions. `hostile_run`: names that try to get out of HTML, scripts, URLs and file names.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import msgspec
from netwarp.core.frozen import to_json
from netwarp.core.types import Cell, CellOutcome, Measurement, Outcome
from netwarp.experiment import parse_spec
from netwarp.plan import make_plan
from netwarp.plan.types import Plan
from netwarp.results import Results, write_tables, write_timelines
from netwarp.results.run_comparison import Side
from netwarp.store.conclusion import Conclusion, Part, Sentence, tables_digest
from netwarp.store.manifest import Manifest
from netwarp.store.plan_file import write_plan
from netwarp.store.run_dir import RunDir

SPEC = """\
format = 1
name = "made-up"
title = "Two paths through an outage"
description = "Does a second path help when the first one dies?"
duration = "100 s"
EXPECTED
[node.a]
[node.b]
[link.p1]
between = ["a", "b"]
rate = "500 kbit/s"
queue = "50 packets"
one_way_delay = "200 ms"
LOSS
[flow.ftp]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
[event.outage]
action = "cut"
link = "p1"
at = "50 s"
for = "{outage}"
[factor.outage]
title = "length of the outage"
levels = ["0 s", "5 s", "10 s", "20 s"]
[factor.variant]
levels = ["tcp", "multi"]
[factor.variant.level.tcp]
title = "TCP"
[factor.variant.level.multi]
title = "SCTP, two paths"
link.p2 = { like = "p1" }
flow.ftp = { protocol = "sctp", paths = ["p1", "p2"] }
[factor.failover]
only = { variant = ["multi"] }
levels = ["default", "rfc4960"]
MORE
[experiment.main]
title = "The outage is varied"
factors = ["outage", "variant", "failover"EXTRA]
[metric.share]
title = "share of the link"
unit = "ratio"
value = "goodput_bit_s / 500000"
[table.outages]
title = "Table 1: share of the link against the outage"
metric = "share"
rows = ["variant", "failover"]
columns = ["outage"]
WHERE
[figure.outage]
title = "Figure 1: goodput against the outage"
metric = "goodput_bit_s"
x = "outage"
lines = ["variant", "failover"]
WHERE
"""
KINDS = """\
[figure.map]
title = "Figure 2: failover time over outage and RTT"
kind = "heatmap"
metric = "first_new_data_other_path_s"
x = "outage"
y = "rtt"
panels = ["variant", "failover"]
[figure.spread]
title = "Figure 3: goodput over all repetitions and RTTs"
kind = "cdf"
metric = "goodput_bit_s"
lines = ["variant", "failover"]
over = ["rtt"]
where = { outage = "10 s" }
[answer.budget]
title = "Which setting moves new data to the other path in time?"
metric = "first_new_data_other_path_s"
settings = ["failover"]
given = ["rtt"]
budgets = ["5 s", "15 s"]
where = { variant = "multi", outage = "20 s" }
[figure.boxes]
title = "Figure 4: goodput at each outage"
kind = "box"
metric = "goodput_bit_s"
x = "outage"
lines = ["variant", "failover"]
where = { rtt = "200 ms" }
"""
OVER_TIME = """\
[figure.time]
title = "Figure 5: throughput through an outage"
series = ["throughput_bit_s"]
where = { rtt = "200 ms", outage = "10 s", variant = "multi", failover = "default" }
[figure.panels]
title = "Figure 6: the same, side by side"
series = ["throughput_bit_s"]
panels = ["outage"]
where = { rtt = "200 ms", variant = "multi" }
"""
PUBLISHED = """\
source,metric,variant,outage,value,printed
paper,share,tcp,0 s,0.97,Table 1
paper,share,tcp,5 s,0.9,Table 1
paper,share,tcp,10 s,0.81,Table 1
paper,share,tcp,20 s,0.6,Table 1
simulator,share,tcp,0 s,0.972,
simulator,share,tcp,10 s,0.8,
paper,goodput_bit_s,tcp,0 s,485000,
paper,goodput_bit_s,tcp,20 s,300000,
"""
EXPECTED = """\
[source.paper]
title = "A Paper 2009"
[source.simulator]
title = "A Simulator"
[[claim]]
id = "C1"
text = "Two paths beat one at every outage."
source = "section 4"
kind = "greater"
metric = "goodput_bit_s"
a = { variant = "multi", failover = "default" }
b = { variant = "tcp" }
over = { outage = ["5 s", "10 s", "20 s"] }
also = [{ failover = "rfc4960" }]
[[claim]]
id = "C2"
text = "TCP does not care about an outage."
source = "section 5"
kind = "constant"
metric = "goodput_bit_s"
a = { variant = "tcp" }
over = { outage = ["0 s", "20 s"] }
tolerance = 0.01
[[claim]]
id = "C3"
text = "The window at the fault decides."
source = "section 6"
kind = "later"
reason = "needs the start of the outage varied"
"""
RATE_BIT_S = 500_000
BIN_S, DURATION_S = 0.5, 100
FAILED_AT = 3
"""Number of the cell of `small_run` that failed."""
HOSTILE = '</script><img src=x onerror="netwarp.hacked=1">\'`${1}&amp; \u2500$x_1$'
SCRIPT = "<script>alert(1)</script> & \u2028"
HOSTILE_LEVEL = "<b>|a=b</b> ../.. %2e \"'$_\\"


def plan_of(
    text: str, folder: Path, expected: str | None = None, repetitions: int = 1, parts: tuple[str, ...] | None = None
) -> Plan:
    """Plan a spec text; `expected` becomes the claims.toml beside it. parts: as for `make_plan`."""
    folder.mkdir(parents=True, exist_ok=True)
    if expected is not None:
        (folder / "claims.toml").write_text(expected, encoding="utf-8")
        (folder / "published.csv").write_text(PUBLISHED, encoding="utf-8")
    line = 'expected = "claims.toml"\npublished = "published.csv"' if expected is not None else ""
    spec = parse_spec(text.replace("EXPECTED", line).encode(), folder / "spec.toml", sets={})
    return make_plan(spec, repetitions=repetitions, only=parts)


def spec_text(*, loss: str = "", more: str = "", extra: str = "", where: str = "") -> str:
    """The base spec with its holes filled."""
    text = SPEC.replace("LOSS", f'loss = "{loss}"' if loss else "").replace("MORE", more)
    return text.replace("EXTRA", extra).replace("WHERE", where)


def small_run(root: Path) -> RunDir:
    """12 cells with samples, claims and a calibration; the fourth failed, the last was never run."""
    plan = plan_of(spec_text(), root.parent / f"{root.name}-spec", EXPECTED)
    run = write_run(root, plan, failed={FAILED_AT}, missing={len(plan.cells) - 1})
    names = ("probe", "quantity", "configured", "measured", "bound", "unit", "ok")
    good = ("rate 0.5 Mbit/s", "RTT", 0.4, 0.400001, 1e-5, "s", True)
    bad = ("loss 1 %", "loss", 0.01, 0.02, 0.001, "ratio", False)
    rows = [dict(zip(names, row, strict=True)) for row in (good, bad)]
    put(run.calibration, {"key": "0", "kernel_release": "6.12.117", "kernel_sha256": "0" * 64, "backend": "virtual",
                          "date_utc": "2026-01-02T03:04:05Z", "rows": rows})  # fmt: skip
    return run


def mixed_run(root: Path) -> RunDir:
    """12 cells that ended in every way."""
    plan = plan_of(spec_text(), root.parent / f"{root.name}-spec", EXPECTED)
    ended = {1: Outcome.FAILED, 3: Outcome.INVALID, 5: Outcome.UNSUPPORTED, 7: Outcome.TIMED_OUT}
    return write_run(root, plan, missing={len(plan.cells) - 1}, ended=ended)


def one_cell_run(root: Path) -> RunDir:
    """A run of one cell."""
    plan = plan_of(spec_text(), root.parent / f"{root.name}-spec")
    return write_run(root, msgspec.structs.replace(plan, cells=plan.cells[:1]))


COUNTS = """\
[factor.flows]
title = "flows"
levels = ["2 and short ones", "50", "2", "10"]
[factor.flows.level]
2.title = "2 flows"
10.title = "10 flows"
50.title = "50 flows"
"""


def counted_run(root: Path) -> RunDir:
    """48 cells: the figure's x is a count with its word in the levels' titles, beside a level that is none."""
    text = spec_text(more=COUNTS, extra=', "flows"', where='where = { flows = "2" }')
    before, _, after = text.rpartition('where = { flows = "2" }')  # the figure's
    text = before.replace('x = "outage"', 'x = "flows"') + 'where = { outage = "10 s" }' + after
    return write_run(root, plan_of(text, root.parent / f"{root.name}-spec"))


def faults_run(root: Path) -> RunDir:
    """The cell without an outage lacks the factor that the others have."""
    more = '[factor.fault]\nonly = { outage = ["5 s", "10 s", "20 s"] }\nlevels = ["cut", "gone"]\n'
    text = spec_text(more=more, extra=', "fault"', where='where = { fault = ["-", "cut"] }')
    return write_run(root, plan_of(text, root.parent / f"{root.name}-spec"))


def concluded(run: RunDir) -> Conclusion:
    """A conclusion with a part of each kind."""
    cells = tuple(sorted(run.finished()))[:2]
    return Conclusion(
        command="sctp check",
        answer="2 things are wrong, found in 12 cells.",
        about=(Sentence("an end of its own: rto_min 1 s", "A"),),
        parts=(
            Part("What is wrong, worst first", (
                Sentence(f"A sends {SCRIPT} twice", remedy="set B's sack_delay to 40 ms", cells=cells),
                Sentence("an outage of 5 s ends the association"),
            ), numbered=True),
            Part("What is well", (Sentence("1 of 12 neighbours measured", "beside it"),)),
            Part("Side by side", rows=(("", "capture", "replay"), ("T3 of a", "1.250", "-"))),
        ),
        tables=tables_digest(run),
    )  # fmt: skip


def large_run(root: Path, cells: int) -> RunDir:
    """At least `cells` cells: an RTT factor as well, 1 % loss, repetitions, and a figure of every kind; one failed."""
    more = '[factor.rtt]\nlevels = ["10 ms", "50 ms", "100 ms", "200 ms", "1000 ms"]\n'
    text = spec_text(loss="1 %", more=more, extra=', "rtt"', where='where = { rtt = "200 ms" }') + KINDS
    folder = root.parent / f"{root.name}-spec"
    once = len(plan_of(text, folder).cells)
    plan = plan_of(text, folder, repetitions=math.ceil(cells / once))
    first = next(number for number, cell in enumerate(plan.cells) if cell.factors["rtt"] == "200 ms")
    return write_run(root, plan, failed={first})


def kinds_run(root: Path) -> RunDir:
    """A figure of every kind, over time too."""
    more = '[factor.rtt]\nlevels = ["10 ms", "200 ms"]\n'
    text = spec_text(loss="1 %", more=more, extra=', "rtt"', where='where = { rtt = "200 ms" }') + KINDS + OVER_TIME
    return write_run(root, plan_of(text, root.parent / f"{root.name}-spec", repetitions=2))


def hostile_run(root: Path) -> RunDir:
    """Every text a spec may hold is an attack."""
    quoted = HOSTILE.replace("\\", "\\\\").replace('"', '\\"')
    level = HOSTILE_LEVEL.replace("\\", "\\\\").replace('"', '\\"')
    more = f'[factor.odd]\ntitle = "{quoted}"\nlevels = ["{level}", "_b"]\n'
    text = spec_text(more=more, extra=', "odd"', where='where = { odd = "_b" }')
    titles = (
        "Two paths through an outage", "Does a second path help when the first one dies?", "The outage is varied",
        "share of the link", "Figure 1: goodput against the outage", "SCTP, two paths",
    )  # fmt: skip
    for plain in titles:
        text = text.replace(f'"{plain}', f'"{quoted}{plain}')
    lines, others = 'lines = ["odd", "variant"]', 'where = { failover = ["-", "default"], outage = ["5 s", "10 s"] }'
    text = text.replace('lines = ["variant", "failover"]\nwhere = { odd = "_b" }', f"{lines}\n{others}")
    kinds = KINDS.partition("[figure.boxes]")[0].replace('y = "rtt"', 'y = "odd"').replace('["rtt"]', '["odd"]')
    text += kinds.replace('title = "', f'title = "{quoted}')
    expected = EXPECTED.replace("A Paper 2009", quoted).replace("Two paths beat", quoted)
    for variant in ("multi", "tcp"):
        expected = expected.replace(f'{{ variant = "{variant}"', f'{{ odd = "_b", variant = "{variant}"')
    plan = plan_of(text, root.parent / f"{root.name}-spec", expected)
    return write_run(root, plan, failed={FAILED_AT}, reason=HOSTILE + "\u2028")


def put(path: Path, content: bytes | object) -> None:
    """Write a file; what is not bytes becomes JSON. No fsync: nothing here has to outlive a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else msgspec.json.encode(content))


def side_of(name: str, **more: Any) -> Side:
    """One of two runs that are compared, without files."""
    manifest = msgspec.convert(MANIFEST | {"spec": "made-up", "seed": 1, "repetitions": 1}, Manifest)
    return Side(name, Path(name), manifest, **more)


def write_run(
    root: Path,
    plan: Plan,
    *,
    failed: Collection[int] = (),
    missing: Collection[int] = (),
    reason: str = "the guest hung at T0 + 40 s",
    ended: Mapping[int, Outcome] | None = None,
) -> RunDir:
    """Write a run directory of a plan: cells with made-up series and measurements, tables by the real table writer."""
    run = RunDir(root)
    write_plan(run, plan)
    put(run.manifest, MANIFEST | {"spec": plan.name, "seed": plan.seed, "repetitions": plan.repetitions})
    outcomes: dict[str, CellOutcome] = {}
    measurements: list[Measurement] = []
    for number, cell in enumerate(plan.cells):
        if number in missing:
            continue
        how = (ended or {}).get(number, Outcome.FAILED if number in failed else Outcome.COMPLETED)
        bad = how is not Outcome.COMPLETED
        outcome = CellOutcome(
            outcome=how,
            reason=reason if bad else "",
            virtual_s=40.0 if bad else 100.5,
            wall_s=0.4,
            console_tail=("Kernel panic - not syncing: made up", reason) if bad else (),
        )
        outcomes[cell.id] = outcome
        write_cell(run, cell, outcome)
        if not bad:
            measurements += cell_measurements(cell)
            put(run.cell(cell.id).measurements, cell_measurements(cell))
    write_tables(Results(plan, outcomes, measurements), run.tables)
    write_timelines(plan, outcomes, run, run.tables)
    return run


MANIFEST: dict[str, Any] = {
    "format_version": 1, "netwarp_version": "0.1.0", "arguments": ["run", "made-up"], "backend": "virtual", "jobs": 2,
    "kernel_release": "6.12.117", "kernel_sha256": "0" * 64, "git_commit": "1" * 40, "git_dirty": False,
    "spec_path": "spec.toml", "spec_sha256": "2" * 64, "programs": {}, "tools": {}, "host_load_1min": 0.5,
    "host_cores": 2, "host_kernel": "6.1.0", "host_cpu": "A CPU",
    "started_utc": "2026-01-02T03:04:05Z", "ended_utc": "2026-01-02T03:05:05Z", "wall_s": 60.0,
}  # fmt: skip


def goodput(cell: Cell) -> float:
    """A made-up number: what an outage leaves, and some noise where the cell is random."""
    outage_s = float(cell.factors["outage"].split()[0])
    cost = {"-": 1.5, "default": 0.15, "rfc4960": 1.8}[cell.factors["failover"]]
    noise = random.Random(cell.seed).gauss(0, 4000) if cell.random else 0.0
    return RATE_BIT_S * (0.97 - cost * outage_s / 100) + noise


def cell_measurements(cell: Cell) -> list[Measurement]:
    """Some of the contract's metrics, and the spec's own."""
    name, value = cell.id, goodput(cell)
    outage_s = float(cell.factors["outage"].split()[0])
    numbers: list[tuple[str, float | None, str]] = [
        ("goodput_bit_s", value, "bit/s"),
        ("outage_s", outage_s * 1.2 if outage_s else None, "s"),
        ("first_new_data_other_path_s", failover_time(cell), "s"),
        ("retransmitted_packets", outage_s * 3, "packets"),
        ("share", value / RATE_BIT_S, "ratio"),
    ]
    return [Measurement(name, "ftp", metric, number, unit) for metric, number, unit in numbers]


def failover_time(cell: Cell) -> float | None:
    """None without an outage, without another path, and where the outage is over first."""
    outage_s = float(cell.factors["outage"].split()[0])
    base = {"-": None, "default": 1.1, "rfc4960": 12.5}[cell.factors["failover"]]
    if not outage_s or base is None or outage_s < base:
        return None
    return base + float(cell.factors.get("rtt", "200 ms").split()[0]) / 100


def write_cell(run: RunDir, cell: Cell, outcome: CellOutcome) -> None:
    """The files of one cell that a report reads, and a few it links to."""
    directory = run.cell(cell.id)
    put(directory.cell, to_json(cell))
    put(directory.outcome, to_json(outcome))
    put(directory.capture / "a-p1.pcap.zst", b"not a capture")
    put(directory.log, b"")
    good = outcome.outcome is Outcome.COMPLETED
    put(directory.environment, environment(good))
    if good:
        checks = [{"check": f"capture record {number}", "ok": True, "detail": "none dropped"} for number in range(12)]
        put(directory.checks, checks)
        put(directory.series, series(cell))


def environment(good: bool) -> dict[str, Any]:
    """environment.json as the virtual back end writes it."""
    netem = {"limit_packets": 51, "latency_ns": 0, "loss": 0, "rate_byte_s": 62500, "packet_overhead_bytes": -14}
    qdisc = {"ifindex": 11, "handle": 2, "parent": 1, "kind": "netem", "netem": netem,
             "sent_packets": 4000, "sent_bytes": 6_000_000, "dropped_packets": 2, "queued_packets": 0}  # fmt: skip
    link = {"ifname": "p1", "operstate": "UP", "mtu": 1500, "address": "02:00:00:00:00:0a", "index": 11, "state": "up"}
    address = {"address": "10.0.0.1", "index": 11, "prefixlen": 26}
    route = {"dst": "10.0.0.128", "gateway": "10.0.0.2", "oif": 11, "dst_len": 26}
    spaces = {
        name: {"sysctls": {"net/ipv4/ip_forward": "0"}, "link": [link], "address": [address], "route": [route]}
        for name in ("a", "b", "p1.hop")
    }
    return {
        "backend": "virtual",
        "kernel": {"kernel": "6.12.117", "kernel_version": "#1 2024-01-01", "machine": "x86_64"},
        "network": {"namespaces": spaces, "qdiscs": [{"step": 90, "namespace": "p1.hop", "qdiscs": [qdisc]}]},
        "checks": [{"check": f"sysctl {n}", "ok": good or n != 3, "detail": "1"} for n in range(40)],
    }


def series(cell: Cell) -> dict[str, Any]:
    """series.json: 0.5 s bins, and samples of every path."""
    outage_s = float(cell.factors["outage"].split()[0])
    bins = int(DURATION_S / BIN_S)
    paths = [path.name for path in cell.flows[0].paths]
    down = [outage_s > 0 and 50 <= number * BIN_S < 50 + outage_s for number in range(bins)]
    shares = {
        path: [0.0 if gone == (place == 0) and (gone or place) else 498_000.0 for gone in down]
        for place, path in enumerate(paths)
    }
    total = [max(values) * 0.97 for values in zip(*shares.values(), strict=True)]
    times = [number * BIN_S + 0.25 for number in range(bins)]
    samples = {
        path: {
            "t_s": times,
            "cwnd_bytes": [1500 * (4 + (number * 7 + 13 * place) % 60) for number in range(bins)],
            "srtt_s": [0.424 + 0.2 * math.sin(number / 9 + place) ** 2 for number in range(bins)],
        }
        for place, path in enumerate(paths)
    }
    events: list[dict[str, Any]] = [
        {"t_s": 0.9, "flow": "ftp", "kind": "notification", "text": "ASSOC_CHANGE, COMM_UP"}
    ]
    faults: list[dict[str, Any]] = []
    if outage_s:
        faults = [{"name": "outage", "action": "cut", "link": "p1", "from_s": 50.0, "to_s": 50.0 + outage_s}]
        events += [
            {"t_s": 50.0, "flow": "", "kind": "cut", "text": "cut p1 (outage, forward and backward)"},
            {"t_s": 51.1, "flow": "ftp", "kind": "first_retransmission_other_path", "text": "first retransmission"},
            {"t_s": 50.0 + outage_s, "flow": "", "kind": "repair", "text": "repair p1 (outage, forward and backward)"},
        ]
    return {
        "bin_s": BIN_S,
        "duration_s": DURATION_S,
        "flows": {
            "ftp": {
                "goodput_bit_s": total,
                "paths": {path: {"throughput_bit_s": values} for path, values in shares.items()},
                "samples": samples,
                "states": {path: [[1.0, "ACTIVE"]] for path in paths}
                | ({"p1": [[1.0, "ACTIVE"], [51.1, "PF"], [50.0 + outage_s, "ACTIVE"]]} if outage_s > 2 else {}),
            }
        },
        "faults": faults,
        "events": events,
    }
