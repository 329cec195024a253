"""Phases: times drawn from the seed, `"uniform(0 s, 1 s)"`."""

from __future__ import annotations

import hashlib
import re

from ..core.units import QuantityError, parse_quantity
from ..experiment.grammar import EVENT
from .reader import Reader

_UNIFORM = re.compile(r"uniform\(([^,()]*),([^,()]*)\)")


def read_phase(key: str, reader: Reader) -> tuple[int, int] | None:
    """Uniform from, to (ns), inclusive; None where there is none, or after saying what is wrong."""
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
    """Uniform over both bounds and all between; every name has a draw of its own."""
    if phase is None:
        return 0
    low, high = phase
    digest = hashlib.sha256(name.encode()).digest()
    return low + int.from_bytes(digest[:16], "big") * (high - low + 1) // (1 << 128)
