"""The checks that a machine and its interfaces can be used for cells: asked before anything is changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from .controller import Refused
from .interfaces import read


def shown(*words: str) -> Any:
    """The JSON that a tool of iproute2 prints."""
    return json.loads(subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout or b"[]")


def addresses(name: str) -> list[str]:
    """Its addresses, but for link-local ones of IPv6."""
    every = [entry for link in shown("ip", "-j", "address", "show", "dev", name) for entry in link.get("addr_info", [])]
    return [entry["local"] for entry in every if entry.get("scope") != "link"]


def check_interface(name: str) -> Iterator[tuple[str, str]]:
    """The reason why an interface cannot be given to a cell, and a remedy."""
    if not os.path.isdir("/sys/class/net/" + name):
        there = ", ".join(sorted(set(os.listdir("/sys/class/net")) - {"lo"}))
        yield "there is no interface " + name, f"the machine has: {there}; correct the inventory"
        return
    link = shown("ip", "-j", "-d", "link", "show", "dev", name)[0]
    kind = link.get("linkinfo", {}).get("info_kind")
    if kind:
        yield f"{name} is a {kind}, which a namespace destroys", "use a real interface"
    if link.get("master"):
        yield f"{name} belongs to {link['master']}", f"ip link set dev {name} nomaster"
    own = addresses(name)
    if own:
        yield (
            f"{name} has the address {own[0]}: somebody uses it",
            f"give netwarp an interface that nothing else uses, or `ip address flush dev {name}`",
        )
    queues = shown("tc", "-j", "qdisc", "show", "dev", name)
    if any(entry.get("handle", "0:") != "0:" and entry.get("root") for entry in queues):
        yield f"{name} has a qdisc of somebody's", f"tc qdisc del dev {name} root"


def check_machine(directory: str, room_bytes: int) -> Iterator[tuple[str, str]]:
    """The reason why a machine cannot run cells, and a remedy."""
    if not os.path.isdir(directory):
        yield "there is no directory " + directory, "set netwarp_directory in the inventory"
        return
    free = os.statvfs(directory).f_bavail * os.statvfs(directory).f_frsize
    if free < room_bytes:
        text = f"{directory} has room for {free // 1_000_000} MB only"
        yield text, "make room, or set netwarp_directory in the inventory"


def facts(interfaces: list[str]) -> dict[str, Any]:
    """The known facts of those that are there."""
    known = {}
    for name in interfaces:
        place = "/sys/class/net/" + name
        if os.path.isdir(place):
            known[name] = {
                "mac": read(place + "/address"),
                "ifindex": int(read(place + "/ifindex") or 0),
                "driver": os.path.basename(os.path.realpath(place + "/device/driver")),
                "speed_mbit_s": read(place + "/speed"),
            }
    return known


def need_tools() -> None:
    """Raises Refused where those of iproute2 are not there."""
    for tool in ("ip", "tc"):
        if shutil.which(tool) is None:
            raise Refused(f"there is no `{tool}`", "apt-get install iproute2")
