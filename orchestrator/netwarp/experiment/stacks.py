"""Reads stack-profiles/*.toml: a host's transport protocols with the settings of another system, for `stack = "name"`
on a node.

A profile has values that today's kernel accepts: sysctls, and options of the flows that begin or end at the host.
Values in the spec for the host or the flow override them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..core.checkout import CHECKOUT
from .fields import Field, check_keys
from .merge import merge
from .problems import Problems, nearest
from .profiles import shown
from .toml_positions import Item, parse_toml, read_bounded

STACKS = CHECKOUT / "stack-profiles"
TODAY = "today"
"""The stack of the kernel as it is: no profile."""
_VALUE = {"value": Field("open", '"1"'), "source": Field("text", '"RFC 3390"')}
_ROLE = Field("open", 'congestion = { value = "bic", source = "Linux 2.6.10, net/ipv4/tcp_input.c" }')
_PROTOCOL = Field("table", "[tcp.sender]", fields={"sender": _ROLE, "receiver": _ROLE})
STACK = {
    "title": Field("text", '"Linux 2.6.10, as far as today\'s kernel can"'),
    "sysctl": Field("open", '"net.ipv4.tcp_recovery" = { value = "0", source = "RACK is of Linux 4.4" }'),
    "tcp": _PROTOCOL,
    "sctp": _PROTOCOL,
    "cannot": Field("open", '["congestion window reduction: PRR, RFC 6937"]'),
}
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}", re.ASCII)


class Stacks:
    """The profiles that a spec's nodes name; each is read once."""

    def __init__(self, problems: Problems, folder: Path = STACKS) -> None:
        self._problems, self._folder = problems, folder
        self._read: dict[str, Item | None] = {}

    def node(self, item: Item) -> Item:
        """A node with its own sysctls laid over those of its stack."""
        stack = self._stack(item)
        sysctls = stack.get("sysctl") if stack is not None else None
        return item if sysctls is None else merge(item.with_value({"sysctl": self._values(sysctls)}), item)

    def flow(self, item: Item, nodes: Mapping[str, Item]) -> Item:
        """A flow with its own options laid over those that the stacks of its two hosts have for its protocol."""
        protocol = item.get("protocol")
        if protocol is None or item.get("program") is not None:
            return item
        options: dict[str, Item] = {}
        for role, end in (("sender", "from"), ("receiver", "to")):
            host = item.get(end)
            node = nodes.get(str(host.value)) if host is not None else None
            stack = self._stack(node) if node is not None else None
            own = stack.get(str(protocol.value), role) if stack is not None else None
            if own is not None:
                options[role] = self._values(own)
        return merge(item.with_value(options), item) if options else item

    def _stack(self, node: Item) -> Item | None:
        named = node.get("stack")
        if named is None or named.value == TODAY:
            return None
        name = str(named.value)
        path = self._folder / f"{name}.toml"
        if not _NAME.fullmatch(name) or not path.is_file():
            known = [TODAY, *list_stacks(self._folder)]
            self._problems.add(named, f'there is no stack "{name[:40]}"{nearest(name, known)}')
            return None
        if name not in self._read:
            self._read[name] = read_stack(path, self._problems)
        return self._read[name]

    def _values(self, table: Item) -> Item:
        """name = { value, source } -> name = value."""
        return table.with_value({name: child.get("value") or child for name, child in table.table().items()})


def list_stacks(folder: Path = STACKS) -> list[str]:
    """The names of all profiles."""
    return sorted(path.stem for path in folder.glob("*.toml")) if folder.is_dir() else []


def read_stack(path: Path, problems: Problems) -> Item | None:
    """One profile, checked: every value must name its source."""
    item = parse_toml(read_bounded(path), shown(path), problems)
    if item is None:
        return None
    check_keys(item, STACK, problems)
    for keys in (("sysctl",), *((protocol, role) for protocol in ("tcp", "sctp") for role in ("sender", "receiver"))):
        table = item.get(*keys)
        for child in table.table().values() if table is not None else ():
            check_keys(child, _VALUE, problems)
            for key in _VALUE:
                if child.get(key) is None:
                    problems.add(child, f"its {key} is missing; for example {key} = {_VALUE[key].example}")
    return item
