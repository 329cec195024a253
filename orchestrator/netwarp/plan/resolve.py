"""Resolves one combination of levels into the document of one cell: merges layers, expands the shape, fills in
`{name}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..core.names import NAME
from ..core.units import QuantityError, parse_quantity
from ..experiment import Spec
from ..experiment.fields import PLACEHOLDER
from ..experiment.flow_groups import expand_groups
from ..experiment.grammar import RESOLVED, SECTIONS
from ..experiment.merge import DEEPEST_PARAMETER, Values, holds, merge, resolve_parameters, substitute
from ..experiment.problems import Problems, nearest
from ..experiment.profiles import Stacks
from ..experiment.programs import PLACEHOLDERS
from ..experiment.sections import expand_shape
from ..experiment.toml_positions import Item
from .combine import Combination

MOST_OF_A_KIND = 1000
OF_A_CELL = ("duration", "captures", "kernel", "measure")
"""Keys of the top that are the cell's."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The document of a cell: tables by name, in the order of the spec; those of the shape come first."""

    top: Item
    nodes: Mapping[str, Item]
    links: Mapping[str, Item]
    flows: Mapping[str, Item]
    groups: Mapping[str, str]
    """Flow -> the group it belongs to, of those that `count` made."""
    events: Mapping[str, Item]
    parameters: Mapping[str, str]


def merged(spec: Spec, levels: Combination) -> Item:
    """The document with what the levels and --set change."""
    document = spec.document
    for name, factor in spec.factors.items():
        level = next((level for level in factor.levels if level.name == levels[name]), None)
        if level is not None and level.patch is not None:
            patch = {key: child for key, child in level.patch.table().items() if key in RESOLVED}
            document = merge(document, level.patch.with_value(patch))
    return merge(document, spec.overrides)


def resolve(spec: Spec, levels: Combination, stacks: Stacks, problems: Problems) -> Resolved:
    """Merge, expand and fill in. stacks: those read for other combinations. Mistakes are added to `problems`; the
    result must not be used then.
    """
    document = merged(spec, levels)
    parameters = resolve_parameters(document.under("parameter"), levels, problems)
    values = Values({**parameters, **levels}, _places(document.under("parameter"), spec, levels), problems)
    shape = document.get("shape")
    if shape is not None:
        expanded = expand_shape(substitute(shape, values), problems)
        document = merge(expanded, document) if expanded is not None else document
    sections = {name: _section(document, name, levels, values) for name in SECTIONS}
    nodes = {name: stacks.node(item) for name, item in sections["node"].items()}
    made = expand_groups(sections["flow"], sections["node"], sections["link"], problems)
    flows = {name: stacks.flow(item, sections["node"]) for name, item in made.items.items()}
    top = {key: child for key, child in document.table().items() if key in OF_A_CELL}
    filled = substitute(document.with_value(top), values)
    return Resolved(filled, nodes, sections["link"], flows, made.groups, sections["event"], parameters)


def _places(parameters: Mapping[str, Item], spec: Spec, levels: Combination) -> dict[str, Item]:
    """The position of each factor's and parameter's value; a value that only repeats another has the position of that
    one.
    """
    listed = {name: factor.item.get("levels") for name, factor in spec.factors.items()}
    places = {name: item.part(levels[name]) for name, item in listed.items() if item is not None}
    places = {**parameters, **places}
    for _ in range(DEEPEST_PARAMETER):
        repeated = {
            name: places[other[1]]
            for name, place in places.items()
            if isinstance(place.value, str)
            and (other := PLACEHOLDER.fullmatch(place.value)) is not None
            and other[1] in places
        }
        if not repeated:
            break
        places.update(repeated)
    return places


def _section(document: Item, section: str, levels: Combination, values: Values) -> dict[str, Item]:
    table, default = document.under(section), document.get("default", section)
    if len(table) > MOST_OF_A_KIND:
        values.problems.add(document.get(section) or document, f"{len(table)} of them; at most {MOST_OF_A_KIND}")
        return {}
    items: dict[str, Item] = {}
    for name, item in table.items():
        layered = _layers(name, table, default, values) if NAME.fullmatch(name) else None
        if layered is None or not _applies(layered, levels):
            continue
        if section == "event" and _never_happens(layered, values):
            continue
        switches = layered.get("switch_primary")
        if switches is not None and isinstance(switches.value, list):
            kept = switches.with_value([child for child in switches.items() if _applies(child, levels)])
            layered = layered.with_value({**layered.table(), "switch_primary": kept})
        items[name] = _filled(layered, values).with_place(item)
    return items


def _filled(item: Item, values: Values) -> Item:
    """The table with `{name}` filled in. Placeholders in a program's arguments that are known only later stay as they
    are.
    """
    program = item.get("program")
    rest = item.with_value({key: child for key, child in item.table().items() if key != "program"})
    filled = substitute(rest, values)
    if program is None:
        return filled
    later = {name: f"{{{name}}}" for name in PLACEHOLDERS}
    known = Values({**values.texts, **later}, values.places, values.problems)
    files = program.get("files")
    if files is None:
        return filled.with_value({**filled.table(), "program": substitute(program, known)})
    rest = program.with_value({key: child for key, child in program.table().items() if key != "files"})
    whole = {**substitute(rest, known).table(), "files": _filled_text(files, values)}
    return filled.with_value({**filled.table(), "program": program.with_value(whole)})


def _filled_text(item: Item, values: Values) -> Item:
    """The same for the content of files: braces that name no factor or parameter are the file's own."""
    if isinstance(item.value, list):
        return item.with_value([_filled_text(child, values) for child in item.value])
    if not isinstance(item.value, str):
        return item
    return item.with_value(PLACEHOLDER.sub(lambda at: values.texts.get(at[1], at[0]), item.value))


def _layers(name: str, table: Mapping[str, Item], default: Item | None, values: Values) -> Item | None:
    """The layers of an item: the default, then what `like` names, then the item itself; later ones override."""
    chain, seen = [table[name]], {name}
    while (like := chain[-1].get("like")) is not None:
        other = str(substitute(like, values).value)
        if other in seen:
            values.problems.add(like, f'"{other}" leads back to itself in a circle of `like`')
            return None
        if other not in table:
            said = f'there is no "{other}" to be like{nearest(other, table.keys() - seen)}'
            values.problems.add(like, said)
            return None
        seen.add(other)
        chain.append(table[other])
    layered = default
    for item in reversed(chain):
        layered = merge(layered, item)
    return layered


def _applies(item: Item, levels: Combination) -> bool:
    refused = item.get("unless") is not None and holds(item.levels("unless"), levels)
    return holds(item.levels("only"), levels) and not refused


def _never_happens(item: Item, values: Values) -> bool:
    """True if the event does not happen: `for = "0 s"`. Its other keys are not checked then."""
    length = item.get("for")
    if length is None:
        return False
    text = PLACEHOLDER.sub(lambda at: values.texts.get(at[1], at[0]), str(length.value))
    try:
        return parse_quantity(text, "time").value == 0
    except QuantityError:
        return False
