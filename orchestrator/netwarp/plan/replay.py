"""A spec of one cell of a plan, with the packets that its schedule touched as rules of its links."""

from __future__ import annotations

from typing import Any

from ..core.link_types import SIDES, LinkImpairment
from ..core.schedule_levels import BETWEEN
from ..core.types import Cell
from ..experiment import Spec
from ..experiment.factors import DOES_NOT_APPLY
from ..experiment.fields import LONGEST_LEVEL
from ..experiment.grammar import RESOLVED
from ..experiment.toml_writer import plain, toml_text
from .resolve import merged

KEPT = ("format", "name", "title", "description", "metric", *RESOLVED)


def replay_spec(spec: Spec, cell: Cell, title: str) -> str:
    """The text of a spec whose only cell is this one: the levels of the cell are merged into it.

    Its captures are those of the cell, byte for byte, on the same kernel. A level that is too long for a spec has a
    short name there, and its own as title.
    """
    table = merged(spec, cell.factors).table()
    document: dict[str, Any] = {key: plain(child) for key, child in table.items() if key in KEPT}
    document |= {"title": title, "seed": cell.seed}
    links = document.setdefault("link", {})
    for link in cell.links:
        for side in SIDES:
            for key, value in _rules(link.side(side)).items():
                links.setdefault(link.name, {}).setdefault(side, {})[key] = value
    document["factor"] = {
        name: _factor(plain(factor.item), [level.name for level in factor.levels], cell.factors[name])
        for name, factor in spec.factors.items()
    }
    applied = {name: _name(level) for name, level in cell.factors.items() if level != DOES_NOT_APPLY}
    document["experiment"] = {"replay": {"factors": [], "fixed": applied}}
    return toml_text({key: document[key] for key in ("format", "name", "title", "seed", *document) if key in document})


def _factor(item: dict[str, Any], levels: list[str], level: str) -> dict[str, Any]:
    """The factor with its levels' names alone: what they change is merged into the document."""
    kept: dict[str, Any] = {key: value for key, value in item.items() if key in ("title", "only")}
    if level in (*levels, DOES_NOT_APPLY):
        return {"levels": levels, **kept}
    name = _name(level)
    return {"levels": [*levels, name], **kept, **({} if name == level else {"level": {name: {"title": level}}})}


def _name(level: str) -> str:
    """A level's name in the spec: that of a schedule of several packets may be longer than a spec may write it."""
    packets = level.split(BETWEEN)
    return level if len(level) <= LONGEST_LEVEL else f"{len(packets)} packets from {packets[0]}"


def _rules(shape: LinkImpairment) -> dict[str, Any]:
    """Rules for packets by number, as a spec writes them."""
    written: dict[str, Any] = {}
    for rule in shape.packet_rules:
        if rule.kind or rule.spans:
            continue  # the spec's own
        if rule.action == "delay":
            delays = {str(number): f"{rule.delay_ns} ns" for number in rule.numbers}
            written["delay"] = {**written.get("delay", {}), **delays}
        else:
            written[rule.action] = list(rule.numbers)
    return written
