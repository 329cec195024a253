"""Reads netem-profiles/*.toml, each a network path, for `profile = "name"` on a link; and stack-profiles/*.toml, each
the transport protocols of another system, for `stack = "name"` on a node.

A stack has values that today's kernel accepts: sysctls, and options of the flows that begin or end at the host. Values
in the spec for the host or the flow override them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..core.checkout import CHECKOUT
from ..core.names import NAME
from .fields import Field, check_keys
from .grammar import PROFILE
from .merge import merge
from .problems import Problems, nearest
from .toml_positions import Item, parse_toml, read_bounded

PROFILES = CHECKOUT / "netem-profiles"
STACKS = CHECKOUT / "stack-profiles"
TODAY = "today"
"""The stack of the kernel as it is: no profile."""
_VALUE = {"value": Field("open", '"1"'), "source": Field("text", '"RFC 3390"')}
_ROLE = Field("open", 'congestion = { value = "bic", source = "Linux 2.6.10, net/ipv4/tcp_input.c" }')
ROLES = ("both", "sender", "receiver")
"""Whose options a stack gives: `both` lies below those of the one role."""
_KEYS = Field("open", 'srto_initial = "rto_initial"')
_MARKS = Field("open", '["guami", "amf_name"]')
_PROTOCOL = Field("table", "[tcp.sender]", fields=dict.fromkeys(ROLES, _ROLE))
_SCTP = Field("table", "[sctp.both]", fields=dict.fromkeys(ROLES, _ROLE) | {"file": _KEYS, "marks": _MARKS})
STACK = {
    "title": Field("text", '"Linux 2.6.10, as far as today\'s kernel can"'),
    "sysctl": Field("open", '"net.ipv4.tcp_recovery" = { value = "0", source = "RACK is of Linux 4.4" }'),
    "tcp": _PROTOCOL,
    "sctp": _SCTP,
    "cannot": Field("open", '["congestion window reduction: PRR, RFC 6937"]'),
}
_STACK_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,63}", re.ASCII)


def list_profiles() -> dict[str, str]:
    """Name -> title of every profile, sorted by name. Raises SpecError if one cannot be read."""
    problems = Problems()
    read = {name: read_profile(PROFILES / f"{name}.toml", problems) for name in names_in(PROFILES)}
    problems.check()
    return {name: item.text("title") for name, item in read.items() if item is not None}


def names_in(folder: Path) -> list[str]:
    """The names of all profiles of a folder."""
    return sorted(path.stem for path in folder.glob("*.toml"))


def read_profile(path: Path, problems: Problems) -> Item | None:
    """One profile, checked."""
    item = parse_toml(read_bounded(path), shown(path), problems)
    if item is not None:
        check_keys(item, PROFILE, problems)
    return item


def find_profile(name: Item, problems: Problems, folder: Path = PROFILES) -> Item | None:
    """The profile that a link names. (Names contain no dots or slashes, so none leads to another folder.)"""
    text = str(name.value)
    path = folder / f"{text}.toml"
    if NAME.fullmatch(text) and path.is_file():
        return read_profile(path, problems)
    problems.add(name, f'there is no profile "{text[:40]}"{nearest(text, names_in(folder))}')
    return None


def profiles_named(document: Item, folder: Path = PROFILES) -> list[Path]:
    """The files of the profiles that a document names anywhere, on a link or in a level that chooses one."""
    values = set(_texts(document))
    return [folder / f"{name}.toml" for name in names_in(folder) if name in values]


def _texts(item: Item) -> Iterator[str]:
    if isinstance(item.value, str):
        yield item.value
    for child in (*item.table().values(), *item.items()):
        yield from _texts(child)


def shown(path: Path) -> str:
    """A path as messages show it: relative to the working directory, if it is below it."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


class Stacks:
    """The stacks that a spec's nodes name; each is read once."""

    def __init__(self, problems: Problems, folder: Path = STACKS) -> None:
        self._problems, self._folder = problems, folder
        self._read: dict[str, Item | None] = {}

    def node(self, item: Item) -> Item:
        """A node with its own sysctls laid over those of its stack."""
        sysctls = self._values(item, "sysctl")
        return item if sysctls is None else merge(item.with_value({"sysctl": sysctls}), item)

    def flow(self, item: Item, nodes: Mapping[str, Item]) -> Item:
        """A flow with its own options laid over those that the stacks of its two hosts have for its protocol."""
        if item.get("protocol") is None or item.get("program") is not None:
            return item
        options: dict[str, Item] = {}
        for role, end in (("sender", "from"), ("receiver", "to")):
            node = nodes.get(item.text(end))
            for whose in ("both", role):
                own = self._values(node, item.text("protocol"), whose) if node is not None else None
                if own is not None:
                    options[role] = merge(options[role], own) if role in options else own
        return merge(item.with_value(options), item) if options else item

    def _values(self, node: Item, *keys: str) -> Item | None:
        """A table of a node's stack: of name = { value, source } name = value."""
        stack = self._stack(node)
        table = stack.get(*keys) if stack is not None else None
        if table is None:
            return None
        return table.with_value({name: child.get("value") or child for name, child in table.table().items()})

    def _stack(self, node: Item) -> Item | None:
        named, name = node.get("stack"), node.text("stack", TODAY)
        if named is None or name == TODAY:
            return None
        path = self._folder / f"{name}.toml"
        if not _STACK_NAME.fullmatch(name) or not path.is_file():
            known = [TODAY, *names_in(self._folder)]
            self._problems.add(named, f'there is no stack "{name[:40]}"{nearest(name, known)}')
            return None
        if name not in self._read:
            self._read[name] = read_stack(path, self._problems)
        return self._read[name]


def read_stack(path: Path, problems: Problems) -> Item | None:
    """One stack, checked: every value must name its source."""
    item = parse_toml(read_bounded(path), shown(path), problems)
    if item is None:
        return None
    check_keys(item, STACK, problems)
    for keys in (("sysctl",), *((protocol, role) for protocol in ("tcp", "sctp") for role in ROLES)):
        for child in item.under(*keys).values():
            check_keys(child, _VALUE, problems)
            for key in _VALUE:
                if child.get(key) is None:
                    problems.add(child, f"its {key} is missing; for example {key} = {_VALUE[key].example}")
    return item
