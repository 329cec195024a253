"""The events that happen to hosts, addresses and middle boxes: what a spec says of them, and what they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import msgspec

from ..core.link_types import DirectionName
from ..core.types import Action, Event, Flow, Killed, Node
from ..experiment.fields import Reader
from ..experiment.problems import nearest
from .kinds import FLOW_KINDS
from .network import UnresolvedLink

OF_A_LINK: tuple[Action, ...] = ("mtu", "forget", "address")
OWN_KEYS = {"mtu": "mtu", "node": "restart", "killed": "restart", "flow": "stop_reading"}
"""Key that only some of these have -> one of them."""
KEYS: dict[Action, frozenset[str]] = {
    "mtu": frozenset({"link", "mtu", "directions"}),
    "forget": frozenset({"link"}),
    "address": frozenset({"link", "node"}),
    "stop_reading": frozenset({"flow"}),
    "restart": frozenset({"node", "killed"}),
}
"""What each has besides its times."""
NEEDED: dict[Action, tuple[str, ...]] = {
    "mtu": ("mtu",),
    "forget": (),
    "address": ("node",),
    "stop_reading": ("flow",),
    "restart": ("node", "for"),
}


@dataclass(frozen=True, slots=True)
class HostFaults:
    """Reads such events of one cell."""

    nodes: Mapping[str, Node]
    links: Mapping[str, UnresolvedLink]
    flows: Sequence[Flow]

    def event(
        self, action: Action, name: str, at_ns: int, link: str, directions: tuple[DirectionName, ...], reader: Reader
    ) -> Event | None:
        """The event; None if it is wrong, after collecting the problems. link: "" if the event has none."""
        before = len(reader.problems)
        for key in ("link", "end", "directions", "longer_than", *OWN_KEYS):
            if reader.has(key) and key not in KEYS[action]:
                reader.problem(key, f'is no key of action = "{action}"; leave it out')
        missing = [key for key in NEEDED[action] if not reader.need(key)]
        if missing:
            return None
        event = Event(at_ns=at_ns, name=name, action=action, link=link, directions=())
        match action:
            case "mtu":
                event = self._mtu(event, directions, reader)
            case "forget":
                self._forget(link, reader)
            case "address":
                event = self._address(event, reader)
            case "stop_reading":
                event = self._stop_reading(event, reader)
            case "restart":
                event = self._restart(event, reader)
        return event if len(reader.problems) == before else None

    def _mtu(self, event: Event, directions: tuple[DirectionName, ...], reader: Reader) -> Event:
        draft, mtu = self.links[event.link], reader.whole("mtu") or 0
        if mtu >= draft.mtu_bytes:
            reader.wrong("mtu", f'is not below the link\'s own of {draft.mtu_bytes} B; for example mtu = "1280 B"')
        least = draft.ip_family.least_mtu_bytes
        if mtu < least:
            reader.wrong("mtu", f'IPv6 needs an MTU of {least} B (RFC 8200, 5); for example "1280 B"')
        self._routed(event.link, reader)
        return msgspec.structs.replace(event, mtu_bytes=mtu, directions=directions)

    def _forget(self, link: str, reader: Reader) -> None:
        if self.links[link].item.get("firewall") is None:
            said = f'link "{link}" has no firewall that could forget; for example firewall = "drop" on the link'
            reader.problem("link", said)
        if reader.has("for"):
            reader.problem("for", "what is forgotten does not come back; leave this out")

    def _routed(self, link: str, reader: Reader) -> None:
        draft = self.links[link]
        if any(self.nodes[node].kind == "switch" for node in (draft.a, draft.b)):
            said = "leads to a switch, and so it is told to nobody: a switch sends no ICMP"
            reader.problem("link", f"{said}; name a link between hosts and routers")

    def _address(self, event: Event, reader: Reader) -> Event:
        node, draft = reader.text("node") or "", self.links[event.link]
        hosts = [end for end in (draft.a, draft.b) if self.nodes[end].kind == "host"]
        if node not in hosts:
            have = " and ".join(f'"{host}"' for host in hosts) or "no host"
            reader.wrong("node", f'"{node}" is no host of link "{event.link}", which has {have}')
        return msgspec.structs.replace(event, node=node)

    def _stop_reading(self, event: Event, reader: Reader) -> Event:
        name = reader.text("flow") or ""
        flow = next((flow for flow in self.flows if flow.name == name), None)
        if flow is None:
            reader.wrong("flow", f'there is no flow "{name}"{nearest(name, [each.name for each in self.flows])}')
        elif not FLOW_KINDS[flow.protocol].connected and flow.program is None:
            reader.wrong(
                "flow",
                "is UDP: nothing holds its sender back, and a full buffer loses datagrams; name a flow of TCP or SCTP",
            )
        elif flow.program is not None and not flow.program.receiver:
            reader.wrong("flow", "is a program without a receiver that could stop; name another flow")
        return msgspec.structs.replace(event, flow=name)

    def _restart(self, event: Event, reader: Reader) -> Event:
        node = reader.text("node") or ""
        if node not in self.nodes or self.nodes[node].kind != "host":
            hosts = [name for name, each in self.nodes.items() if each.kind == "host"]
            reader.wrong("node", f'there is no host "{node}"{nearest(node, hosts)}')
        for flow in self.flows:
            if node in (flow.sender, flow.receiver) and flow.is_page:
                said = f'flow "{flow.name}" is one of pages, whose programs are not started again; name another host'
                reader.problem("node", said)
            elif node in (flow.sender, flow.receiver) and flow.program is not None:
                others = [
                    each.name for each in self.flows if each.program is None and node in (each.sender, each.receiver)
                ]
                if others:
                    said = f'flow "{flow.name}" is a program, flow "{others[0]}" is not'
                    reader.problem("node", f"{said}: they do not restart together; give them hosts of their own")
            elif node in (flow.sender, flow.receiver) and not FLOW_KINDS[flow.protocol].connected:
                said = f'flow "{flow.name}" is UDP, whose datagrams are numbered once'
                reader.problem("node", f'{said}; for example action = "blackhole" of its link')
            elif node in (flow.sender, flow.receiver) and (flow.reverse or flow.messages):
                reader.problem("node", f'flow "{flow.name}" has reverse or messages, whose rest is lost; use interval')
            elif node in (flow.sender, flow.receiver) and "window_clamp_bytes" in flow.receiver_options:
                reader.problem("node", f'flow "{flow.name}" has a window_clamp, which is of one connection; use rcvbuf')
        killed: Killed = reader.choice("killed", get_args(Killed), "host")
        return msgspec.structs.replace(event, node=node, killed=killed)
