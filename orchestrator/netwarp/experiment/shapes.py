"""Named shapes: ready-made nodes and links for networks that many experiments use."""

from __future__ import annotations

from typing import Any

from .fields import read_integer, read_text
from .grammar import SHAPE
from .problems import Problems
from .toml_positions import Item, plain


def expand_shape(item: Item, problems: Problems) -> Item | None:
    """The `node` and `link` tables of a shape; the spec's own tables are laid over them.

    two-path: hosts a and b, links p1 and p2 between them. dumbbell: `pairs` hosts aN - aN link - router r1 - bottleneck
    - router r2 - bN link - host bN. chain: host a, routers r1.., host b, and `hops` links h1.. in a row.
    """
    kind_item = item.get("kind")
    if kind_item is None:
        problems.add(item, 'the shape\'s kind is missing; for example { kind = "two-path" }')
        return None
    kind = read_text(kind_item, SHAPE["kind"], problems)
    counts: dict[str, int] = {}
    for key, default in (("hops", 2), ("pairs", 2)):
        child = item.get(key)
        counts[key] = default if child is None else (read_integer(child, SHAPE[key], problems) or default)
        if child is not None and kind != {"hops": "chain", "pairs": "dumbbell"}[key]:
            problems.add(child, f'a {kind} has no {key}; for example {{ kind = "chain", hops = 3 }}')
    if kind is None:
        return None
    if kind == "two-path":
        nodes, links = {"a": "host", "b": "host"}, {"p1": ("a", "b"), "p2": ("a", "b")}
    else:
        nodes, links = _chain(counts["hops"]) if kind == "chain" else _dumbbell(counts["pairs"])
    node_tables: dict[str, Any] = {name: {"kind": node_kind} for name, node_kind in nodes.items()}
    link_tables: dict[str, Any] = {name: {"between": list(ends)} for name, ends in links.items()}
    return plain({"node": node_tables, "link": link_tables}, item.file, item.line, "")


def _dumbbell(pairs: int) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    nodes = {"r1": "router", "r2": "router"}
    links = {"bottleneck": ("r1", "r2")}
    for number in range(1, pairs + 1):
        nodes |= {f"a{number}": "host", f"b{number}": "host"}
        links |= {f"a{number}": (f"a{number}", "r1"), f"b{number}": ("r2", f"b{number}")}
    return nodes, links


def _chain(hops: int) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    routers = [f"r{number}" for number in range(1, hops)]
    row = ["a", *routers, "b"]
    nodes = {name: "router" if name in routers else "host" for name in row}
    return nodes, {f"h{number}": (row[number - 1], row[number]) for number in range(1, hops + 1)}
