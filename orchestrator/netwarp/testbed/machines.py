"""The steps of one machine, where a cell's namespaces are on several: the others' lines become comments.

A step keeps its number on every machine, so that the records of all of them are read as those of one cell.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from .compile import Compiled
from .steps import HEADER, Step


def machine_text(compiled: Compiled, here: AbstractSet[int]) -> str:
    """steps.txt for the machine that has the namespaces `here`."""
    lines = [HEADER]
    owners = _owners(compiled)
    for item in compiled.steps:
        namespace = _namespace(item, owners)
        lines.append(item.line() if namespace is None or namespace in here else f"# of another machine: {item.verb}")
    return "\n".join(lines) + "\n"


def devices_of(compiled: Compiled, here: AbstractSet[int]) -> tuple[str, ...]:
    """The machine's interfaces that its namespaces adopt."""
    interfaces = compiled.layout.interfaces()
    return tuple(interface.name for interface in interfaces if interface.is_device and interface.namespace in here)


def flows_of(compiled: Compiled, here: AbstractSet[int]) -> tuple[str, ...]:
    """The ids of the processes there that the end of the cell waits for."""
    spawned = [dict(item.fields) for item in compiled.steps if item.verb == "spawn"]
    return tuple(values["id"] for values in spawned if values.get("flow") == "1" and int(values["ns"]) in here)


def _owners(compiled: Compiled) -> dict[str, int]:
    """Namespace of each process by its id, and of each packet program by its number."""
    owners = {str(program.index): program.interface.namespace for program in compiled.programs}
    spawned = [dict(item.fields) for item in compiled.steps if item.verb == "spawn"]
    return owners | {values["id"]: int(values["ns"]) for values in spawned}


def _namespace(item: Step, owners: dict[str, int]) -> int | None:
    values = dict(item.fields)
    if item.verb == "ns":
        return int(values["index"])
    if "ns" in values:
        return int(values["ns"])
    owner = values.get("id", values.get("index"))
    return None if owner is None else owners[owner]
