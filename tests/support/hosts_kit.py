"""Inventories and link commands of tests of the back end hosts, without machines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from netwarp.core.types import Cell, Event
from netwarp.sandbox.hosts.commands import LinkCommand, LinkCommands
from netwarp.sandbox.hosts.inventory import Inventory, from_listing
from netwarp.sandbox.hosts.placement import Placement
from netwarp.testbed.messages import Device

from .cells import MS, two_path_cell


def inventory(**machines: dict[str, Any]) -> Inventory:
    """Of machines with these variables."""
    listing = {"_meta": {"hostvars": machines}, "netwarp": {"hosts": list(machines)}}
    return from_listing(Path("inventory.yml"), listing, allow_programs=True)


def devices_of(placed: Placement) -> dict[tuple[str, str, str], Device]:
    """The machines' interfaces at the ends of a placed cell, as an agent would describe them."""
    return {
        end: Device(name, 30 + number, mac=f"02:00:00:00:00:{number:02x}")
        for number, (end, (_, name)) in enumerate(placed.ends.items())
    }


def commanded(place: Path, program: str, *, down_ns: int = 50 * MS, up_ns: int = 100 * MS) -> tuple[Cell, LinkCommands]:
    """A cell whose link p1 goes down and up, and the commands for that: `program`, called in `place`."""
    (place / "port").write_text(program)
    (place / "port").chmod(0o755)
    timeline = (Event(down_ns, "outage", "link", "p1", end="p1.hop:b"), Event(up_ns, "outage", "repair", "p1"))
    commands = LinkCommands({"p1": LinkCommand(("./port", "down"), ("./port", "up"))}, place)
    return msgspec.structs.replace(two_path_cell(), timeline=timeline), commands
