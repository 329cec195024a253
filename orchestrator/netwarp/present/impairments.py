"""A direction of a link in words, made from the fields of LinkImpairment: a new one is shown without a word here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ..core.numbers import given
from ..core.types import GilbertElliott, LinkImpairment, PacketRule
from ..core.units import Kind, Quantity, format_quantity

LOSSES = ("loss_ratio", "loss_correlation_ratio", "burst_loss", "bit_error_ratio", "byte_error_ratio", "packet_rules")
"""The fields by which packets are lost."""
_UNITS: Mapping[str, Kind] = {
    "_ns": "time", "_ratio": "ratio", "_bit_s": "rate", "_bytes": "data", "_packets": "packets",
}  # fmt: skip
_ERRORS = ("bit_error_ratio", "byte_error_ratio")


def in_words(shape: LinkImpairment) -> dict[str, str]:
    """Field -> words, of all that are not at their default: {"jitter_ns": "jitter 5 ms"}."""
    return {
        field.name: _words(field.name, value)
        for field in msgspec.structs.fields(LinkImpairment)
        if (value := getattr(shape, field.name)) != field.default
    }


def losses(words: Mapping[str, str]) -> str:
    """Those of them that lose packets; "none" if there are none."""
    return ", ".join(words[name] for name in LOSSES if name in words) or "none"


def others(words: Mapping[str, str], said: Iterable[str]) -> str:
    """The rest, without the fields that are said elsewhere."""
    return ", ".join(text for name, text in words.items() if name not in (*LOSSES, *said))


def _words(name: str, value: object) -> str:
    unit = next((unit for unit in _UNITS if name.endswith(unit)), "")
    what = name.removesuffix(unit).replace("_", " ")
    if isinstance(value, bool):
        return what
    if isinstance(value, GilbertElliott):
        bad, good = given(value.bad_loss_ratio), given(value.good_loss_ratio)
        return f"{what} p={given(value.p_ratio)} r={given(value.r_ratio)} bad={bad} good={good}"
    if name == "packet_rules" and isinstance(value, tuple):
        return "; ".join(map(_rule, value))
    if unit and isinstance(value, (int, float)):
        plain = name in _ERRORS  # 1e-5, as everybody says it
        return f"{what} {given(value) if plain else format_quantity(Quantity(_UNITS[unit], value))}"
    text = getattr(value, "text", None)
    return text() if text is not None else f"{what} {value}"


def _rule(rule: PacketRule) -> str:
    kind = f"{rule.kind} " if rule.kind else ""
    by = f" by {format_quantity(Quantity('time', rule.delay_ns))}" if rule.action == "delay" else ""
    return f"{rule.action} {kind}packets {', '.join(map(str, rule.numbers))}{by}"
