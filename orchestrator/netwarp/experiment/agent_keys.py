"""The keys of an agent on a router, `agent = { kind = "snoop", ... }`: docs/agents.md explains them."""

from __future__ import annotations

from dataclasses import dataclass

from .fields import Field, quantity

MS, S = 10**6, 10**9
EXAMPLE = '"snoop" or { kind = "snoop", cache = "100 packets" }'
NO_AGENT = "none"
KINDS = ("snoop", "mtcp", "itcp-proxy")
FORWARDING = ("snoop", "mtcp")
"""Kinds that sit on the forwarding path: packets go through their queue."""
LAST_HOP = {
    "kind": Field("choice", '"snoop"', choices=(*KINDS, NO_AGENT)),
    "link": Field("name", '"air"'),
    "dies_at": quantity("time", example='"10 s"', high=86400 * S),
}
"""Keys of every kind."""
TOLD = Field("choice", '"return"', choices=("nothing", "return", "both"))


@dataclass(frozen=True, slots=True)
class AgentOption:
    """An option: its place in a Cell, its value, and the kinds that have it."""

    cell_key: str
    field: Field
    kinds: tuple[str, ...]


AGENT_OPTIONS: dict[str, AgentOption] = {
    "cache": AgentOption(
        "cache_packets", quantity("packets", example='"100 packets"', low=1, high=4096), ("snoop", "mtcp")
    ),
    "timeout_min": AgentOption(
        "timeout_min_ns", quantity("time", example='"100 ms"', low=MS, high=3600 * S), ("snoop",)
    ),
    "retransmissions": AgentOption("retransmissions", Field("integer", "10", low=1, high=1000), ("snoop",)),
    "away_after": AgentOption("away_after_ns", quantity("time", example='"100 ms"', low=MS, high=3600 * S), ("mtcp",)),
    "hold": AgentOption("hold_ns", quantity("time", example='"100 ms"', low=MS, high=3600 * S), ("mtcp",)),
    "buffer": AgentOption(
        "buffer_bytes", quantity("data", example='"64 KiB"', low=2048, high=1 << 29), ("itcp-proxy",)
    ),
    "congestion": AgentOption("congestion", Field("name", '"reno"'), ("itcp-proxy",)),
    "sack": AgentOption("sack", Field("choice", '"pass"', choices=("hide", "pass")), ("snoop",)),
}
ALL_AGENTS = LAST_HOP | {"told": TOLD} | {name: option.field for name, option in AGENT_OPTIONS.items()}


def fields_of(kind: str) -> dict[str, Field]:
    """The keys of one kind."""
    notices = {"told": TOLD} if kind == "mtcp" else {}
    return LAST_HOP | notices | {name: option.field for name, option in AGENT_OPTIONS.items() if kind in option.kinds}
