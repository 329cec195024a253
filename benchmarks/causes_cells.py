"""Captures of cells for benchmarks/causes.py, with the counters of the guest's kernel beside them: causes.toml."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import netwarp
from netwarp.core.types import Cell
from netwarp.measure.cell_records import kernel_counters, read_cell_records
from netwarp.store import compressed
from netwarp.store.run_dir import CellDir
from netwarp.testbed.layout import make_layout

SPEC = Path(__file__).with_name("causes.toml")
POINTS = {"sender": "a-h1", "middle": "r-h2", "receiver": "b-h2"}


def conditions() -> list[str]:
    """The names of the cells."""
    return [cell.factors["condition"] for cell in netwarp.plan_experiment(SPEC).cells]


def make(names: list[str], folder: Path, scratch: Path, *, jobs: int | None = None) -> list[str]:
    """Run these cells, and write `folder`/v-<name>/ for each: captures, counters.json, about.json. Those that did not
    complete, with the reason.
    """
    failed = []
    where = [("condition", name) for name in names]
    run = netwarp.run(SPEC, where=where, backend="virtual", out=scratch, jobs=jobs, report=False)
    for cell in run.plan.cells:
        name, place = cell.factors["condition"], run.path / "cells" / cell.id
        outcome = CellDir(place).read_outcome()
        if outcome.outcome != "COMPLETED":
            failed.append(f"v-{name}: {outcome.outcome}: {outcome.reason}")
            continue
        out = folder / f"v-{name}"
        out.mkdir(parents=True)
        for point, interface in POINTS.items():
            shutil.copy(place / "capture" / f"{interface}.pcap.zst", out / f"{point}.pcap.zst")
        counts = kernel_counters(read_cell_records(CellDir(place).init_log).proc, make_layout(cell).namespaces)
        sums = [_last(place / "apps" / f"{flow.name}.sender.ndjson") for flow in cell.flows]
        counters = {
            "sender": {key.partition(".")[2]: value for key, value in counts["a"].items() if value},
            "receiver": {key.partition(".")[2]: value for key, value in counts["b"].items() if value},
            "tcp_info": [one["tcp_info"] for one in sums if "tcp_info" in one],
            "sctp_stats": [one["sctp_stats"] for one in sums if "sctp_stats" in one],
        }
        (out / "counters.json").write_text(json.dumps(counters, indent=1))
        (out / "about.json").write_text(json.dumps({"cell": cell.id, "dimensions": dimensions(cell)}, indent=1))
    return failed


def _last(path: Path) -> dict[str, Any]:
    kernel: dict[str, Any] = json.loads(compressed.read(path).splitlines()[-1])["kernel"]
    return kernel


def dimensions(cell: Cell) -> dict[str, str]:
    """The levels by which the table is summed up."""
    flow, ways = cell.flows[0], [way for link in cell.links for way in (link.forward, link.backward)]
    kinds = {
        "random": any(link.forward.loss_ratio for link in cell.links),
        "of ACKs": any(link.backward.loss_ratio for link in cell.links),
        "burst": any(way.burst_loss for way in ways),
        "chosen": any(rule.action == "drop" for way in ways for rule in way.packet_rules),
        "reordering": any(way.jitter_ns or way.reorder_ratio or way.packet_rules for way in ways),
        "doubled": any(way.duplicate_ratio for way in ways),
        "outage": bool(cell.timeline),
    }
    settings = {key: value for key, value in cell.nodes[0].sysctls.items() if "ipv6" not in key}
    congestion = settings.pop("net.ipv4.tcp_congestion_control", "")
    return {
        "made": "virtual",
        "protocol": flow.protocol,
        "qdisc at the sender": "none",
        "offloads": "off",
        "round trip": f"{flow.paths[0].base_rtt_ns / 1e6:g} ms",
        "congestion": str(flow.sender_options.get("congestion", congestion)) if flow.protocol == "tcp" else "sctp",
        "losses": ", ".join(name for name, has in kinds.items() if has) or "queue alone",
        "application": "pauses" if "burst_messages" in flow.sender_options else "bulk",
        "settings": " ".join(f"{key.rpartition('.')[2]}={value}" for key, value in settings.items()) or "default",
        "snaplen": "whole",
    }
