"""A flow between hosts a and b over shaped paths in a guest: the apps' records and the packets on the wire."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from netwarp.core.link_types import Link, LinkImpairment
from netwarp.core.types import CapturePoint, Cell, Event, Flow, Node, PrimarySwitch
from netwarp.core.types import Path as FlowPath
from netwarp.testbed.compile import Clock, compile_cell
from netwarp.testbed.steps import Step

from support import cell_init_kit as kit
from support.checkout import make_apps

MS, S = kit.MS, kit.S
FLOW = "f"
Record = dict[str, Any]
Options = dict[str, int | str | bool]


@functools.cache
def apps(kind: str = "") -> Path:
    """sender and receiver, made up to date: as shipped, or with UBSan, or dynamically linked (for valgrind)."""
    build = kit.built()
    more = {
        "": [],
        "ubsan": ["CFLAGS=-O1 -g -fsanitize=undefined -fno-sanitize-recover=all"],
        "dynamic": ["sender_LDFLAGS=", "receiver_LDFLAGS="],
    }[kind]
    out = build / "test" / f"apps-{kind}" if kind else build
    out.mkdir(parents=True, exist_ok=True)
    programs = (f"{out}/bin/{name}" for name in ("sender", "receiver"))
    make_apps(f"BUILD={out}", f"KERNEL_HEADERS={build}/kernel-headers", *more, *programs)
    return out / "bin"


def make_cell(
    protocol: str,
    *,
    shape: LinkImpairment,
    paths: int = 1,
    duration_ns: int = 10 * S,
    start_ns: int = S // 2,
    stop_ns: int | None = None,
    total_bytes: int | None = None,
    message_bytes: int = 1452,
    sender: Options | None = None,
    receiver: Options | None = None,
    sysctls: dict[str, str] | None = None,
    switches: Sequence[tuple[int, str]] = (),
    timeline: Iterable[Event] = (),
) -> Cell:
    """A cell with links p1, p2, ... of one shape in both directions, everything captured on the hosts."""
    links = tuple(Link(f"p{n}", "a", "b", shape, shape) for n in range(1, paths + 1))
    ways = tuple(FlowPath(li.name, li.name, li.name, shape.rate_bit_s, 2 * shape.one_way_delay_ns) for li in links)
    flow = Flow(
        name=FLOW,
        protocol=protocol,  # type: ignore[arg-type]
        sender="a",
        receiver="b",
        paths=ways,
        port=5001,
        start_ns=start_ns,
        stop_ns=stop_ns,
        total_bytes=total_bytes,
        message_bytes=message_bytes,
        switches=tuple(PrimarySwitch(at_ns, path) for at_ns, path in switches),
        sender_options=dict(sender or {}),
        receiver_options=dict(receiver or {}),
    )
    return Cell(
        spec="apps",
        experiment="x",
        factors={},
        repetition=0,
        seed=1,
        duration_ns=duration_ns,
        nodes=tuple(Node(name, "host", dict(sysctls or {})) for name in "ab"),
        links=links,
        flows=(flow,),
        timeline=tuple(timeline),
        captures=tuple(CapturePoint(node, link.name) for node in "ab" for link in links),
        random=False,
    )


@dataclass
class Run:
    """What one flow left behind. Times of its records are moved to T0."""

    result: kit.Result
    sender: list[Record]
    receiver: list[Record]

    def of(self, role: str, kind: str) -> list[Record]:
        """The records of one kind."""
        found: list[Record] = getattr(self, role)
        return [record for record in found if record["record"] == kind]

    def one(self, role: str, kind: str) -> Record:
        """The only record of that kind."""
        (record,) = self.of(role, kind)
        return record

    @property
    def sent(self) -> Record:
        """The sender's summary."""
        assert self.sender[-1]["record"] == "summary"
        return self.sender[-1]

    @property
    def got(self) -> Record:
        """The receiver's summary."""
        assert self.receiver[-1]["record"] == "summary"
        return self.receiver[-1]

    def exits(self) -> dict[str, Record]:
        """How the processes ended."""
        return {record["id"].removeprefix(f"{FLOW}."): record for record in self.result.records("exit")}

    def well(self) -> Run:
        """Asserts that both apps ended with 0, by themselves, and said nothing on stderr."""
        for role, record in self.exits().items():
            assert (record["status"], record["signal"], record["killed"]) == (0, None, False), (
                role,
                record,
                self.errors(),
            )
        assert self.errors() == {"sender": "", "receiver": ""}
        return self

    def errors(self) -> dict[str, str]:
        """What they wrote to stderr."""
        folder = self.result.directory / "apps"
        return {role: (folder / f"{FLOW}.{role}.stderr").read_text() for role in ("sender", "receiver")}

    def tshark(self, capture: str, show: str, *names: str, options: Sequence[str] = ()) -> list[list[str]]:
        """Fields of the packets that match a display filter; tshark is the oracle for what was on the wire."""
        file = self.result.directory / "capture" / f"{capture}.pcap"
        command = ["tshark", "-n", "-r", str(file), "-Y", show, "-T", "fields", "-E", "separator=/t", *options]
        for name in names:
            command += ["-e", name]
        env = {**os.environ, "HOME": str(self.result.directory)}
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300, env=env)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def times(self, capture: str, show: str) -> list[int]:
        """When the packets that match were captured, in nanoseconds from T0."""
        rows = self.tshark(capture, show, "frame.time_epoch")
        return [int(row[0].replace(".", "")) - kit.T0 for row in rows]


def read_records(path: Path, t0_ns: int) -> list[Record]:
    """An app's output, with t_ns moved to T0; empty for an app that was never started."""
    if not path.exists():
        return []
    found = [json.loads(line) for line in path.read_text().splitlines()]
    for record in found:
        for key in ("t_ns", "first_t_ns", "last_t_ns"):
            if record.get(key) is not None:
                record[key] -= t0_ns
    return found


def run(
    kernel: Path, directory: Path, cell: Cell, *, kind: str = "", change: Callable[[Step], Step] = lambda step: step
) -> Run:
    """Play a cell; `change` may alter its steps (another argument, another program). Asserts that it completed."""
    bin_dir = directory / "bin"
    bin_dir.mkdir(parents=True)
    for name in ("sender", "receiver"):
        shutil.copy(apps(kind) / name, bin_dir / name)
    compiled = compile_cell(cell, Clock(t0_realtime_ns=kit.T0))
    for name in ("capture", "apps"):
        (directory / name).mkdir()
    result = kit.run_guest(kernel, directory, [change(item) for item in compiled.steps])
    result.completed()
    ready = result.records("ready")[0]["t0_monotonic_ns"]
    logs = [read_records(directory / "apps" / f"{FLOW}.{role}.ndjson", ready) for role in ("sender", "receiver")]
    return Run(result, *logs)


def with_arguments(role: str, edit: Callable[[list[str]], list[str]]) -> Callable[[Step], Step]:
    """A change of one app's argument list."""

    def change(item: Step) -> Step:
        if item.verb != "spawn" or ("id", f"{FLOW}.{role}") not in item.fields:
            return item
        words = edit([value for key, value in item.fields if key == "arg"])
        fields = [(key, value) for key, value in item.fields if key != "arg"]
        return replace(item, fields=(*fields, *(("arg", word) for word in words)))

    return change


def without(words: Sequence[str], option: str) -> list[str]:
    """The arguments less an option and its value, wherever it stands."""
    kept: list[str] = []
    skip = False
    for word in words:
        if not skip and word != option:
            kept.append(word)
        skip = not skip and word == option
    return kept
