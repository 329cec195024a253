"""A finished cell made of recorded captures, and the files that the analysis derives from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import zstandard
from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import CapturePoint, Cell, Event, Flow, Node
from netwarp.core.types import Path as FlowPath
from netwarp.measure.cell import CellDir, analyze_cell
from netwarp.store.app_records import Summary
from netwarp.store.init_records import Capture as CaptureRecord
from netwarp.store.init_records import Ready, Start
from netwarp.store.ndjson import Record
from netwarp.store.run_dir import read_json

from support.captures import DATA, READ_BYTES

S = 1_000_000_000
T0 = 1_699_999_995 * S
MONOTONIC = 5 * S
FAULT, REPAIR, STOP = 6.0, 9.0, 11.0
START = Start(1, "6.12.0", "#1", "x86_64", T0, MONOTONIC)
SHAPE = LinkImpairment(one_way_delay_ns=20_000_000, rate_bit_s=10_000_000, queue_packets=1000)
"""Faster than the network that was recorded; that one's rate is in the flows' paths."""


def make_cell(name: str, **changes: Any) -> Cell:
    links = ("p1",) if name in ("tcp", "bundle") else ("p1", "p2")
    flow = Flow(
        name="ftp",
        protocol={"bundle": "sctp"}.get(name, name),  # type: ignore[arg-type]
        sender="a",
        receiver="b",
        paths=tuple(FlowPath(link, link, link, 1_000_000, 40_000_000) for link in links),
        port=5001,
        start_ns=0,
        stop_ns=int(STOP * S),
        total_bytes=None,
        message_bytes=1400,
    )
    flow = msgspec.structs.replace(flow, **changes.pop("flow", {}))
    cell = Cell(
        spec="test",
        experiment="x",
        factors={},
        repetition=0,
        seed=1,
        duration_ns=12 * S,
        nodes=(Node("a", "host"), Node("b", "host")),
        links=tuple(Link(link, "a", "b", SHAPE, SHAPE) for link in links),
        flows=(flow,),
        timeline=(Event(int(FAULT * S), "outage", "blackhole", "p1"), Event(int(REPAIR * S), "outage", "repair", "p1")),
        captures=tuple(CapturePoint(node, link) for node in "ab" for link in links),
        random=True,
        metrics={
            "mine": "unique_data_packets * 1500 / (duration_s - 1.5)",
            "again": "min(mine, -(-mine)) / rate_bit_s ** 1",
            "absent": "response_time_s + 1",
        },
    )
    return msgspec.structs.replace(cell, **changes)


def make_directory(cell: Cell, name: str, root: Path, **summary: Any) -> Path:
    """A finished cell's raw files; records made from the captures themselves, which every check compares."""
    (root / "capture").mkdir(parents=True)
    (root / "apps").mkdir()
    records: list[Record] = [START, Ready(T0, MONOTONIC, 0)]
    for capture in cell.captures:
        source = DATA / f"{name}-{capture.node}-{capture.link}.pcap.zst"
        shutil.copy(source, root / "capture" / f"{capture.node}-{capture.link}.pcap.zst")
        plain = zstandard.ZstdDecompressor().stream_reader(source.read_bytes()).read()
        offset = packets = 0
        offset = 24
        while offset < len(plain):
            offset += 16 + int.from_bytes(plain[offset + 8 : offset + 12], "little")
            packets += 1
        file = f"capture/{capture.node}-{capture.link}.pcap"
        records.append(CaptureRecord(file, capture.link, packets, len(plain), 0, 0, None, None, 0, 0))
    write(root / "init.ndjson", records)
    write(root / "apps" / "ftp.receiver.ndjson", [Summary(**{"t_ns": 0, "unique_bytes": READ_BYTES[name]} | summary)])
    return root


def write(path: Path, records: Sequence[Record]) -> None:
    path.write_bytes(msgspec.json.Encoder().encode_lines(records))


@dataclass
class Derived:
    metrics: dict[str, float | None]
    units: dict[str, str]
    series: dict[str, Any]
    checks: dict[str, Any]
    cell_metrics: dict[str, float | None]

    def failed(self) -> list[str]:
        return [name for name, check in self.checks.items() if not check["ok"]]


def derive(cell: Cell, root: Path) -> Derived:
    analyze_cell(cell, root)
    directory = CellDir(root)
    rows = json.loads(directory.measurements.read_bytes())
    assert {row["cell_id"] for row in rows} == {cell.id}
    return Derived(
        metrics={row["metric"]: row["value"] for row in rows if row["flow"] == "ftp"},
        units={row["metric"]: row["unit"] for row in rows},
        series=read_json(directory.series, dict[str, Any]),
        checks={check["check"]: check for check in json.loads(directory.checks.read_bytes())},
        cell_metrics={row["metric"]: row["value"] for row in rows if not row["flow"]},
    )
