"""An interface of a node of a cell: one end of a veth, or of a cable between two machines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .messages import VethEnd


@dataclass(frozen=True, slots=True)
class NetworkDevice:
    """An interface of a machine that takes the place of an end of a veth.

    ifindex: its number on the machine, which it keeps in the namespace: the kernel would not know another when it gives
    the interface back.
    """

    name: str
    mac: str
    ifindex: int


Devices = Mapping[tuple[str, str, str], NetworkDevice]
"""(link, node, peer node) -> the device that is this end."""


@dataclass(frozen=True, slots=True)
class Interface:
    """One end of a veth. `ip`/`mac` are its own, `peer_*` those of the other end. `name` is the link's on nodes.

    is_device: an interface of a machine, with a cable to its peer on another machine; `name` is the machine's then.
    On a switch's segment the port has no address (ip ""), and neighbours are those on the segment, not the peer.
    """

    node: str
    name: str
    link: str
    namespace: int
    ifindex: int
    mac: str
    ip: str
    subnet: str
    mtu_bytes: int
    peer_node: str
    peer_ip: str
    peer_mac: str
    is_device: bool = False
    segment: str = ""
    """The switch whose segment it is on."""
    bridge: int | None = None
    """The ifindex of the bridge of which it is a port."""

    @property
    def end(self) -> VethEnd:
        """As an end of a veth."""
        return VethEnd(self.namespace, self.name, self.ifindex, self.mac)
