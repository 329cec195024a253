"""Reads laws of times and sizes: one value, `"50 ms"`, or a named distribution, `{ exponential = "50 ms" }`."""

from __future__ import annotations

from ..core.messages import Law
from .fields import Field, read_quantity, read_text
from .problems import Problems, nearest
from .toml_positions import Item

TIMES = '"50 ms", { exponential = "50 ms" } or { uniform = ["20 ms", "80 ms"] }'
SIZES = '"120 B", { exponential = "2 kB" } or { pareto = { least = "1 kB", shape = "1.3" } }'
LAWS: dict[str, Field] = {
    "uniform": Field("open", '["20 ms", "80 ms"]'),
    "exponential": Field("open", '"50 ms"'),
    "lognormal": Field("open", '{ median = "50 ms", sigma = "0.5" }'),
    "pareto": Field("open", '{ least = "1 kB", shape = "1.3" }'),
}
"""Laws by their keys; each has a value of its own form."""
_PARTS = {"lognormal": ("median", "sigma", 0.0, 4.0), "pareto": ("least", "shape", 0.1, 100.0)}
"""Law -> its keys for the scale and for the shape, and the shape's bounds."""


def read_law(item: Item, value: Field, example: str, problems: Problems) -> Law | None:
    """The law; None if it is wrong (the problem is collected). value: the quantity of each of its values."""
    if not isinstance(item.value, dict):
        quantity = read_quantity(item, value, problems)
        return None if quantity is None else Law("fixed", float(int(quantity.value)))
    names = list(item.value)
    if len(names) != 1 or names[0] not in LAWS:
        near = nearest(names[0], LAWS) if len(names) == 1 else ""
        problems.add(item, f"must be a value or one law of {', '.join(LAWS)}{near}; for example {example}")
        return None
    (name,) = names
    child = item.value[name]
    if name == "exponential":
        quantity = read_quantity(child, value, problems)
        return None if quantity is None else Law("exponential", float(int(quantity.value)))
    if name == "uniform":
        return _uniform(child, value, example, problems)
    scale_key, shape_key, least, most = _PARTS[name]
    parts = child.value if isinstance(child.value, dict) else {}
    if set(parts) != {scale_key, shape_key}:
        problems.add(child, f"needs {scale_key} and {shape_key}; for example {name} = {LAWS[name].example}")
        return None
    quantity = read_quantity(parts[scale_key], value, problems)
    text = read_text(parts[shape_key], Field("text", '"0.5"'), problems)
    try:
        shape = float(text or "")
    except ValueError:
        shape = -1.0
    if text is not None and not least <= shape <= most:
        bounds = f"a number from {least:g} to {most:g}, as text"
        problems.add(parts[shape_key], f"must be {bounds}; for example {name} = {LAWS[name].example}")
        return None
    if quantity is None or text is None:
        return None
    return Law("lognormal" if name == "lognormal" else "pareto", float(int(quantity.value)), shape)


def _uniform(item: Item, value: Field, example: str, problems: Problems) -> Law | None:
    ends = [read_quantity(child, value, problems) for child in item.items()]
    known = [int(end.value) for end in ends if end is not None]
    if len(ends) != 2:
        problems.add(item, f"must be two values, least and most; for example {example}")
    elif len(known) == 2 and known[1] < known[0]:
        problems.add(item, f"ends below its beginning; for example {example}")
    elif len(known) == 2:
        return Law("uniform", float(known[0]), float(known[1]))
    return None
