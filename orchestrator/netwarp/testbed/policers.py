"""Policers: the kernel's own police action, where the packets of a direction come into the link's hop.

A token bucket without a queue (net/sched/act_police.c: tcf_police_act): a packet for which the bucket has not enough is
lost. There, at ingress, a packet's length is that of its IP packet; the Ethernet header is an overhead of the rate.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ..core.frozen import Frozen
from ..core.link_types import SIDES, DirectionName, Policer
from ..core.types import Cell, Check
from . import messages
from .layout import Interface, Layout
from .messages import INGRESS, TCA_ACT_KIND, TCA_ACT_OPTIONS, TCA_KIND, TCA_MATCHALL_ACT, TCA_OPTIONS, Request
from .qdiscs import LINKLAYER_ETHERNET, RATESPEC, TICK_NS, attribute, attributes_of, sending_ns

_TBF, _RATE, _RESULT, _RATE64 = 1, 2, 5, 8
"""TCA_POLICE_*."""
_PARMS = struct.Struct("=IiIII")
"""The beginning of struct tc_police: index, action, limit, burst (ticks of 64 ns), mtu; two rates follow."""
_CELL_LOG = 3
"""Of the rate's table, which the kernel asks for and does not use."""
_TABLE_BYTES = 1024
_SHOT, _OK = 2, 0
_MTU_BYTES = 1 << 17
"""Longer packets are lost: there are none."""
TCA_ACT_STATS, TCA_STATS_QUEUE, TCA_STATS_BASIC = 4, 3, 1


class Police(Frozen, frozen=True):
    """A police action as configured and read back, with its counters in a dump."""

    rate_byte_s: int
    burst_ticks: int
    overhead_bytes: int
    exceeding: int = _SHOT

    def encode(self) -> bytes:
        """The body of TCA_ACT_OPTIONS."""
        wide = self.rate_byte_s >= 1 << 32
        rate = RATESPEC.pack(
            _CELL_LOG, LINKLAYER_ETHERNET, self.overhead_bytes, 0, 0, 0xFFFFFFFF if wide else self.rate_byte_s
        )
        parms = _PARMS.pack(0, self.exceeding, 0, self.burst_ticks, _MTU_BYTES) + rate + bytes(RATESPEC.size + 12)
        body = attribute(_TBF, parms) + attribute(_RATE, bytes(_TABLE_BYTES))
        body += attribute(_RESULT, struct.pack("=I", _OK))
        return body + (attribute(_RATE64, struct.pack("=Q", self.rate_byte_s)) if wide else b"")

    @classmethod
    def decode(cls, attributes: dict[int, bytes]) -> Police:
        """From the attributes inside TCA_ACT_OPTIONS. Raises KeyError, struct.error for what is no policer's."""
        _, action, _, burst, _ = _PARMS.unpack_from(attributes[_TBF])
        _, _, overhead, _, _, rate = RATESPEC.unpack_from(attributes[_TBF], _PARMS.size)
        if _RATE64 in attributes:
            (rate,) = struct.unpack_from("=Q", attributes[_RATE64])
        return cls(rate, burst, overhead, action)

    def text(self, burst_bytes: int) -> str:
        """The same as arguments of tc(8)."""
        overhead = f"overhead {self.overhead_bytes} linklayer ethernet " if self.overhead_bytes else ""
        return f"police rate {self.rate_byte_s * 8}bit burst {burst_bytes}b {overhead}conform-exceed drop/ok"


def police(policer: Policer, header_bytes: int) -> Police:
    """The action of a policer; its bucket is not smaller than asked, by less than 64 ns."""
    rate = policer.rate_bit_s // 8
    return Police(rate, -(-sending_ns(policer.burst_bytes, rate) // TICK_NS), header_bytes)


@dataclass(frozen=True, slots=True)
class DirectionPolicer:
    """The policer of one direction. interface: where its packets come into the hop."""

    link: str
    direction: DirectionName
    interface: Interface
    policer: Policer
    action: Police

    def requests(self) -> list[Request]:
        """What makes it. The place for classifiers may be there already, of the other direction's."""
        body = attribute(TCA_ACT_KIND, b"police\0") + attribute(TCA_ACT_OPTIONS, self.action.encode())
        text = self.action.text(self.policer.burst_bytes)
        return [
            messages.clsact(self.interface, there=True),
            messages.act_on_all(self.interface, attribute(TCA_MATCHALL_ACT, attribute(1, body)), text),
        ]

    def check(self, dumped: Iterable[bytes]) -> tuple[Check, dict[str, object]]:
        """Compares the dump of the interface's ingress (its messages) with what was asked; also returns what it
        counted.
        """
        found = list(decode_policers(dumped))
        same = [action for action, _, _ in found] == [self.action]
        detail = str(self.action) if same else f"asked {self.action}, found {found}"
        _, came, dropped = found[0] if found else (None, 0, 0)
        counted = {"link": self.link, "direction": self.direction, "packets": came, "dropped_packets": dropped}
        return Check(f"policer of {self.link} {self.direction}", same, detail), counted


def direction_policers(cell: Cell, layout: Layout) -> tuple[DirectionPolicer, ...]:
    """Every policer of a cell."""
    policers = []
    for link in cell.links:
        for name, other in zip(SIDES, reversed(SIDES), strict=True):
            shape = link.side(name)
            if isinstance(shape.policer, Policer):
                action = police(shape.policer, shape.header_bytes)
                where = layout.shaped[link.name, other]
                policers.append(DirectionPolicer(link.name, name, where, shape.policer, action))
    return tuple(policers)


def policer_dump(interface: Interface) -> bytes:
    """A dump request of the filters at the interface's ingress."""
    return messages.filter_dump(interface.ifindex, INGRESS)


def decode_policers(dumped: Iterable[bytes]) -> Iterator[tuple[Police, int, int]]:
    """(action, packets that came, packets dropped) of every police action among the filters of a dump."""
    for message in dumped:
        attributes = attributes_of(message[16 + 20 :])
        if attributes.get(TCA_KIND) != b"matchall\0" or TCA_OPTIONS not in attributes:
            continue
        actions = attributes_of(attributes_of(attributes[TCA_OPTIONS]).get(TCA_MATCHALL_ACT, b""))
        for body in actions.values():
            action = attributes_of(body)
            if action.get(TCA_ACT_KIND) == b"police\0":
                counted = attributes_of(action.get(TCA_ACT_STATS, b""))
                _, packets = struct.unpack_from("=QI", counted.get(TCA_STATS_BASIC, bytes(16)))
                _, _, dropped, _, _ = struct.unpack_from("=IIIII", counted.get(TCA_STATS_QUEUE, bytes(20)))
                yield Police.decode(attributes_of(action[TCA_ACT_OPTIONS])), packets, dropped
