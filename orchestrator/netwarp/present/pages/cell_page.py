"""The view of a cell: a script file per cell, which the page loads when the reader opens the cell."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ...core.link_types import Link
from ...core.numbers import DASH, SCALED, with_unit
from ...core.types import Cell, Check, Measurement, Outcome
from ...core.units import Kind, Quantity, format_quantity
from ...store import compressed
from ...store.derived import CellSeries, Pages
from ...store.environment import Environment
from ...store.packs import PackedPath
from ...store.run_dir import CellDir, read_json
from ..html import url
from ..run_data import GROUP_ORDER, CellResult, RunData, metric_names, unit_beside
from ..series import compact_series
from ..setup import in_words, losses, machines_view, others

CellView = dict[str, Any]
MOST_PAGES = 25
"""Of a flow, in the view of a cell; pages.json has all."""


def cell_view(data: RunData, result: CellResult) -> CellView:
    """Everything about one cell. Raises StoreError where a file of it cannot be read."""
    cell, directory = result.cell, data.run.cell(result.id)
    series: CellSeries | None = _optional(directory.series, CellSeries)
    environment: Environment | None = _optional(directory.environment, Environment)
    sources = (
        ("set-up", environment.checks if environment else ()),
        ("analysis", _optional(directory.checks, list[Check])),
    )
    checks = [{"from": origin, **msgspec.structs.asdict(check)} for origin, made in sources for check in made or ()]
    return {
        "id": result.id,
        "experiment": cell.experiment,
        "factors": [
            {"factor": data.plan.factor_title(factor), "level": data.plan.level_title(factor, level)}
            for factor, level in cell.factors.items()
            if level != "-"
        ],
        "repetition": cell.repetition,
        "seed": cell.seed,
        "random": cell.random,
        "outcome": result.outcome,
        "reason": result.reason,
        "virtual_s": result.virtual_s,
        "wall_s": result.wall_s,
        "console_tail": result.console_tail,
        "links": [row for link in cell.links for row in _link_rows(link)],
        "flows": [_flow(cell, number) for number in range(len(cell.flows))],
        "measurements": _measurements(data, result),
        "series": compact_series(series) if series else None,
        "pages": _pages(directory),
        "checks": checks,
        "environment": environment_view(environment),
        "files": _files(directory),
    }


def _pages(directory: CellDir) -> dict[str, list[dict[str, Any]]]:
    """The objects of each flow's first pages, for their waterfall."""
    pages: Pages | None = _optional(directory.pages, Pages)
    return {
        flow: [msgspec.structs.asdict(each) for each in objects if each.page < MOST_PAGES]
        for flow, objects in (pages or {}).items()
    }


def _optional(path: Path, kind: Any) -> Any:
    """A file that exists only for cells that ran far enough."""
    return read_json(path, kind) if compressed.exists(path) else None


def quantity(kind: Kind, value: float | None, nothing: str = DASH) -> str:
    """A base-unit value as text with its unit."""
    return nothing if value is None else format_quantity(Quantity(kind, value))


def _link_rows(link: Link) -> list[dict[str, str]]:
    """A link's two directions, as configured."""
    rows = []
    for sender, receiver, shape in ((link.a, link.b, link.forward), (link.b, link.a, link.backward)):
        words = in_words(shape)
        said = ("rate_bit_s", "layer", "one_way_delay_ns", "queue_packets", "queue_bytes")
        rows.append(
            {
                "link": link.name,
                "direction": f"{sender} \u2192 {receiver}",
                "rate": quantity("rate", shape.rate_bit_s, "unlimited")
                + (" (Ethernet)" if shape.layer == "ethernet" else ""),
                "one-way delay": quantity("time", shape.one_way_delay_ns),
                "queue": quantity("packets", shape.queue_packets)
                if shape.queue_bytes is None
                else quantity("data", shape.queue_bytes),
                "loss": losses(words),
                "other": others(words, said),
                "MTU": f"{link.mtu_bytes} B",
            }
        )
    return rows


def _flow(cell: Cell, number: int) -> dict[str, Any]:
    flow = cell.flows[number]
    options = {
        **{f"sender {key}": str(value) for key, value in flow.sender_options.items()},
        **{f"receiver {key}": str(value) for key, value in flow.receiver_options.items()},
    }
    return {
        "name": flow.name,
        "protocol": flow.protocol,
        "way": f"{flow.sender} \u2192 {flow.receiver}",
        "paths": [
            f"{path.name} ({quantity('rate', path.bottleneck_bit_s, 'no bottleneck')},"
            f" base RTT {quantity('time', path.base_rtt_ns)})"
            for path in flow.paths
        ],
        "start": quantity("time", flow.start_ns),
        "end": quantity("time", flow.stop_ns) if flow.stop_ns is not None else quantity("data", flow.total_bytes),
        "message": quantity("data", flow.message_bytes),
        "switches": [f"primary := {switch.path} at {quantity('time', switch.at_ns)}" for switch in flow.switches],
        "options": options,
    }


def _measurements(data: RunData, result: CellResult) -> list[dict[str, Any]]:
    """Every metric of the cell, as the tables have it; of an INVALID one, which no table has, as it was measured.
    value: shown; exact: all digits.
    """
    rows = []
    measured, metrics = data.measured.get(result.id, ()), data.metrics
    if result.outcome == Outcome.INVALID:
        there: list[Measurement] = _optional(data.run.cell(result.id).measurements, list[Measurement]) or []
        measured = [(one.flow, one.metric, one.value) for one in there]
        metrics = metric_names(data.plan, {one.metric: one.unit for one in there})
    for flow, name, value in measured:
        metric = metrics[name]
        rows.append(
            {
                "flow": flow,
                "metric": name,
                "title": metric.title,
                "group": metric.group,
                "value": with_unit(
                    value, metric.unit if metric.unit in SCALED else unit_beside(metric.title, metric.unit)
                ),
                "number": value,
                "exact": "" if value is None else f"{value!r} {metric.unit}",
            }
        )
    return sorted(rows, key=lambda row: GROUP_ORDER.index(row["group"]))


def environment_view(environment: Environment | None) -> dict[str, Any]:
    """The kernel, and of every namespace its sysctls, interfaces, addresses, routes and qdiscs as read back."""
    network = environment.network if environment else {}
    namespaces: dict[str, Any] = {}
    for name, dump in (network.get("namespaces") or {}).items():
        links = {entry.get("index"): entry.get("ifname", "") for entry in dump.get("link", ())}
        addresses = {entry.get("index"): entry.get("address", "") for entry in dump.get("address", ())}
        namespaces[name] = {
            "sysctls": dump.get("sysctls", {}),
            "interfaces": [
                {
                    "interface": entry.get("ifname", ""),
                    "address": addresses.get(entry.get("index"), ""),
                    "MTU": entry.get("mtu", ""),
                    "MAC": entry.get("address", ""),
                    "state": entry.get("operstate", ""),
                }
                for entry in dump.get("link", ())
                if entry.get("ifname") != "lo"
            ],
            "routes": [
                f"{entry['dst']}/{entry.get('dst_len', 32)} via {entry['gateway']} dev {links.get(entry.get('oif'))}"
                for entry in dump.get("route", ())
                if "dst" in entry and "gateway" in entry
            ],
            "qdiscs": [],
            "_links": links,
        }
    for dump in network.get("qdiscs") or ():
        namespace = namespaces.get(dump.get("namespace"))
        if namespace is not None:
            rows = [_qdisc(entry, namespace["_links"]) for entry in dump["qdiscs"] if entry.get("netem") is not None]
            # a fault replaces qdiscs under new handles: the last word on each handle has the final counters
            kept = {(row["interface"], row["handle"]): row for row in [*namespace["qdiscs"], *rows]}
            namespace["qdiscs"] = list(kept.values())
    for namespace in namespaces.values():
        del namespace["_links"]
    return {
        "backend": environment.backend if environment else None,
        "kernel": msgspec.structs.asdict(environment.kernel) if environment else None,
        "namespaces": namespaces,
        "machines": None
        if environment is None or environment.machines is None
        else machines_view(environment.machines),
    }


def _qdisc(entry: Mapping[str, Any], links: Mapping[Any, str]) -> dict[str, Any]:
    netem = entry["netem"]
    settings = [f"{key} {value}" for key, value in netem.items() if value not in (None, 0, 0.0, False, "", [])]
    parent = entry.get("parent")
    return {
        "interface": links.get(entry.get("ifindex"), str(entry.get("ifindex"))),
        "handle": f"{entry['handle']:x}:",
        "parent": "root" if parent is None else f"{parent:x}:",
        "netem": ", ".join(settings),
        "sent packets": entry.get("sent_packets"),
        "dropped": entry.get("dropped_packets"),
        "queued": entry.get("queued_packets"),
    }


def _files(directory: CellDir) -> list[dict[str, Any]]:
    """Every file of the cell, with the way to it from report/index.html."""
    if isinstance(directory.root, PackedPath):
        archive = url("..", "cells", directory.root.parent.name)
        return [{"name": name, "href": archive, "bytes": size} for name, size in directory.root.files().items()]
    files = []
    for path in directory.root.rglob("*"):
        status = path.lstat()
        if stat.S_ISREG(status.st_mode):
            parts = path.relative_to(directory.root).parts
            href = url("..", "cells", directory.root.name, *parts)
            files.append({"name": "/".join(parts), "href": href, "bytes": status.st_size})
    return files
