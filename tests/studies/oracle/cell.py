"""What a cell was to be, and what its kernel and programs said: cell.json, init.ndjson, apps/*.ndjson as plain JSON."""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import Any

import zstandard

from .packets import Packet, read_packets

Json = dict[str, Any]


def text_of(path: Path) -> str | None:
    """A file's text, also of one that is compressed; None if it is not there."""
    if path.exists():
        return path.read_text(errors="replace")
    packed = path.with_name(path.name + ".zst")
    if not packed.exists():
        return None
    return zstandard.ZstdDecompressor().stream_reader(packed.read_bytes()).read().decode(errors="replace")


class CellFiles:
    """The files of a cell's directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.cell: Json = json.loads((directory / "cell.json").read_text())
        self.links: dict[str, Json] = {link["name"]: link for link in self.cell["links"]}
        self.corrupting = any(
            self.links[name][side].get("corrupt_ratio") for name in self.links for side in ("forward", "backward")
        ) or any((event.get(side) or {}).get("corrupt_ratio") for event in self.cell["timeline"]
                 for side in ("forward", "backward"))  # fmt: skip
        self._captures: dict[str, list[Packet] | None] = {}

    @cached_property
    def init(self) -> list[Json]:
        """What cell-init recorded."""
        text = text_of(self.directory / "init.ndjson") or ""
        return [json.loads(line) for line in text.splitlines()]

    @cached_property
    def t0(self) -> int:
        """T0 in ns since 1970."""
        return int(next(each for each in self.init if each["record"] == "ready")["t0_realtime_ns"])

    @cached_property
    def t0_monotonic(self) -> int:
        """T0 on the clock of the programs' records."""
        return int(next(each for each in self.init if each["record"] == "ready")["t0_monotonic_ns"])

    def app(self, flow: str, role: str) -> list[Json]:
        """The records of a program of netwarp's own; none if it left none."""
        text = text_of(self.directory / "apps" / f"{flow}.{role}.ndjson") or ""
        return [json.loads(line) for line in text.splitlines()]

    def summary(self, flow: str, role: str) -> Json | None:
        """The last record."""
        records = [each for each in self.app(flow, role) if each.get("record") == "summary"]
        return records[-1] if records else None

    def capture(self, node: str, link: str) -> list[Packet] | None:
        """The packets of an interface, times from T0; None where it was not captured."""
        name = f"{node}-{link}"
        if name not in self._captures:
            path = self.directory / "capture" / f"{name}.pcap"
            path = path if path.exists() else path.with_name(path.name + ".zst")
            found = read_packets(path, checksums=self.corrupting) if path.exists() else None
            for packet in found or ():
                packet.t -= self.t0
            self._captures[name] = found
        return self._captures[name]

    def at(self, node: str) -> list[Packet]:
        """Every packet at a node, in the order of time."""
        every: list[Packet] = []
        for point in self.cell["captures"]:
            if point["node"] == node:
                every += self.capture(node, point["link"]) or []
        return sorted(every, key=lambda packet: packet.t)

    def address(self, node: str, link: str) -> str:
        """The address of a node on a link: docs/spec.md, IPv6; on a switch: of the segment."""
        names = list(self.links)
        number = names.index(link)
        six = self.links[link].get("family") == "ipv6"
        ends = (self.links[link]["a"], self.links[link]["b"])
        kinds = {each["name"]: each["kind"] for each in self.cell["nodes"]}
        segment = next((end for end in ends if kinds[end] == "switch"), None)
        if segment is not None:
            on = [name for name in names if segment in (self.links[name]["a"], self.links[name]["b"])]
            number, host = names.index(on[0]), on.index(link) + 1
            return f"fd00:{number // 250:x}:{number % 250:x}:192:0:0:0:{host:x}" if six else (
                f"10.{number // 250}.{number % 250}.{192 + host}"
            )  # fmt: skip
        first = node == ends[0]
        if six:
            return f"fd00:{number // 250:x}:{number % 250}:{0 if first else 128}:0:0:0:1"
        return f"10.{number // 250}.{number % 250}.{1 if first else 129}"

    def route(self, origin: str, target: str, last: str) -> list[tuple[str, str]]:
        """The links from a node to another's address on the link `last`, each with its direction: the shortest way by
        number of links, of equally short ones the link listed first; hosts never forward; one family.
        """
        kinds = {each["name"]: each["kind"] for each in self.cell["nodes"]}
        family = self.links[last].get("family")
        ways: list[tuple[str, list[tuple[str, str]]]] = [(origin, [])]
        visited = {origin}
        while ways:
            following: list[tuple[str, list[tuple[str, str]]]] = []
            for node, way in ways:
                for name, link in self.links.items():
                    if node not in (link["a"], link["b"]) or link.get("family") != family:
                        continue
                    far = link["b"] if node == link["a"] else link["a"]
                    step = [*way, (name, "forward" if node == link["a"] else "backward")]
                    if far == target and name == last:
                        return step
                    if far not in visited and kinds[far] != "host":
                        visited.add(far)
                        following.append((far, step))
            ways = following
        return []

    def routes(self, flow: Json) -> list[list[tuple[str, str]]]:
        """The way of a flow's data over each of its paths."""
        return [self.route(flow["sender"], flow["receiver"], path["receiver_link"]) for path in flow["paths"]]

    def ways(self, flow: Json) -> set[str]:
        """Every link that a flow's packets cross, both ways."""
        there = [link for route in self.routes(flow) for link, _ in route]
        back = [link for path in flow["paths"]
                for link, _ in self.route(flow["receiver"], flow["sender"], path["sender_link"])]  # fmt: skip
        return {*there, *back}

    def shapes(self, link: str, side: str) -> list[tuple[int, Json]]:
        """What a direction of a link does over time: (from when, what)."""
        over: list[tuple[int, Json]] = [(0, self.links[link][side])]
        for event in self.cell["timeline"]:
            if event["link"] == link and side in event["directions"] and event.get(side) is not None:
                over.append((event["at_ns"], event[side]))
        return over
