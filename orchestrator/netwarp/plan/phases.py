"""Reads and draws phases: times drawn from the seed, written `"uniform(0 s, 1 s)"`."""

from __future__ import annotations

import hashlib
import re

from ..core.units import QuantityError, parse_quantity
from ..experiment.grammar import EVENT
from ..experiment.reader import Reader

_UNIFORM = re.compile(r"uniform\(([^,()]*),([^,()]*)\)")


def read_phase(key: str, reader: Reader) -> tuple[int, int] | None:
    """The bounds (from, to) in ns, inclusive; None if there is no phase or it is wrong (the problem is collected)."""
    text = reader.text(key)
    if text is None:
        return None
    match = _UNIFORM.fullmatch(text.strip())
    try:
        if match is not None:
            low, high = (int(parse_quantity(part.strip(), "time").value) for part in match.groups())
            if low <= high:
                return low, high
        raise QuantityError(f'"{text}" is no phase')
    except QuantityError as error:
        said = str(error).split("; write for example")[0]
        reader.wrong(key, f"{said}; for example {key} = {EVENT[key].example}")
        return None


def draw_phase(phase: tuple[int, int] | None, name: str) -> int:
    """A uniform draw, bounds included; each name has an independent draw."""
    if phase is None:
        return 0
    low, high = phase
    digest = hashlib.sha256(name.encode()).digest()
    return low + int.from_bytes(digest[:16], "big") * (high - low + 1) // (1 << 128)
