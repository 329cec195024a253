"""Links and what they do to packets, as frozen types. Units and the rules of their JSON: core/types.py."""

from __future__ import annotations

from typing import Literal

import msgspec

from .frozen import Frozen
from .ip_families import IPV4, IPV6, IpFamily
from .names import Count, Digest, InnerName, Ratio, Text
from .units import Quantity, format_quantity
from .wire import ETHERNET_HEADER_BYTES

DirectionName = Literal["forward", "backward"]
SIDES: tuple[DirectionName, DirectionName] = ("forward", "backward")
Layer = Literal["ip", "ethernet"]
Distribution = Literal["uniform", "normal", "pareto", "paretonormal"]
Firewall = Literal["drop", "reject"]
AqmKind = Literal["red", "codel", "fq_codel", "pie", "cake", "dualpi2"]


class GilbertElliott(Frozen, frozen=True):
    """Burst loss (netem `loss gemodel p r 1-h 1-k`), each a ratio per packet.

    p: good -> bad, r: bad -> good, bad_loss: loss in the bad state (1-h), good_loss: loss in the good state (1-k).
    """

    p_ratio: Ratio
    r_ratio: Ratio
    bad_loss_ratio: Ratio = 1.0
    good_loss_ratio: Ratio = 0.0


class PacketRange(Frozen, frozen=True):
    """The packets `first`, `first` + `step`, ... up to `last` (None: without end), counted from 1."""

    first: Count
    last: Count | None
    step: Count


class PacketRule(Frozen, frozen=True):
    """A rule that drops, duplicates or delays the packets with these numbers (from 1) and in these ranges, each once.
    It counts all packets of the direction, or (`kind`) the packets of that kind of each flow.

    kind: a name of core.packet_kinds; "": every packet that enters the direction.
    """

    action: Literal["drop", "duplicate", "delay"]
    numbers: tuple[Count, ...]
    kind: Text = ""
    delay_ns: Count = 0
    ranges: tuple[PacketRange, ...] | msgspec.UnsetType = msgspec.UNSET
    """Unset: none, and no part of the JSON."""

    @property
    def spans(self) -> tuple[PacketRange, ...]:
        """Its ranges, also if there is none."""
        return () if self.ranges is msgspec.UNSET else self.ranges


class Aqm(Frozen, frozen=True):
    """Active queue management: a qdisc that drops or marks before the queue is full (`queue_packets` or `queue_bytes`).

    settings: name -> value in the base unit that the name ends in; every setting of its kind is there.
    """

    kind: AqmKind
    ecn: bool
    settings: dict[str, int | float]

    @property
    def draws(self) -> bool:
        """True if it draws from the kernel's generator for single packets (sch_red.c, sch_pie.c, sch_cake.c: BLUE)."""
        return self.kind in ("red", "pie", "cake", "dualpi2")

    def text(self) -> str:
        """The kind, and whether it marks."""
        return f"{self.kind} that marks (ECN)" if self.ecn else self.kind


class Policer(Frozen, frozen=True):
    """A token bucket without a queue: what exceeds it is lost. Lengths are those of the direction's layer."""

    rate_bit_s: Count
    burst_bytes: Count

    def text(self) -> str:
        """Rate and burst."""
        rate, burst = Quantity("rate", self.rate_bit_s), Quantity("data", self.burst_bytes)
        return f"policer of {format_quantity(rate)} and {format_quantity(burst)}"


class Slots(Frozen, frozen=True):
    """Times at which all that waits leaves together, as frames of one aggregate (netem's slot): `least_ns` to `most_ns`
    after the first of them came, or after the group before was full; at most so many packets, and so many bytes and the
    packet with which they are reached.
    """

    least_ns: Count
    most_ns: Count
    packets: Count | None
    bytes: Count | None

    def text(self) -> str:
        """When, and how much."""
        apart = [format_quantity(Quantity("time", each)) for each in (self.least_ns, self.most_ns)]
        limits = [format_quantity(Quantity("packets", self.packets))] if self.packets else []
        limits += [format_quantity(Quantity("data", self.bytes))] if self.bytes else []
        return f"slots of {' and '.join(limits) or 'any size'} after {' to '.join(dict.fromkeys(apart))}"


class AckThinning(Frozen, frozen=True):
    """Of a TCP flow's acknowledgements without data each `every`-th passes at once; of the others those after which no
    newer one comes within `hold_ns`.
    """

    every: Count
    hold_ns: Count

    def text(self) -> str:
        """How many pass, and how long the others are held."""
        return f"each {self.every}. ACK, others held for {format_quantity(Quantity('time', self.hold_ns))}"


class Opportunities(Frozen, frozen=True):
    """Times at which a link delivers, as mahimahi's traces have them. Each serves `bytes`, of which a packet takes its
    IP length and `overhead_bytes`; a packet that does not fit keeps what of it is sent and goes on with the next one.

    gaps_ms: from T0 to the first, then from each to the next; those that the cell cannot reach are left out.
    period_ms: after so long they begin anew; None: they end. sha256: of the whole file.
    """

    file: Text
    sha256: Digest
    gaps_ms: tuple[Count, ...]
    period_ms: Count | None
    bytes: Count
    overhead_bytes: Count
    mean_bit_s: Count
    """Of the whole trace."""

    @property
    def period_ns(self) -> int | None:
        """The period in ns."""
        return None if self.period_ms is None else self.period_ms * 1_000_000

    def text(self) -> str:
        """The file, and what it gives."""
        return f"opportunities of {self.file}, {format_quantity(Quantity('rate', self.mean_bit_s))} in the mean"


class LinkImpairment(Frozen, frozen=True):
    """The effects of one direction of a link on packets. `rate_bit_s` None: no rate limit and no queue.

    keeps_order: a packet never leaves the delay line before one sent earlier (a link layer that delivers in order);
    False: with jitter packets can overtake each other. The queue is limited by queue_bytes (at the layer of the rate)
    or by queue_packets.
    """

    one_way_delay_ns: Count = 0
    jitter_ns: Count = 0
    jitter_correlation_ratio: Ratio = 0.0
    distribution: Distribution = "uniform"
    loss_ratio: Ratio = 0.0
    loss_correlation_ratio: Ratio = 0.0
    burst_loss: GilbertElliott | None = None
    duplicate_ratio: Ratio = 0.0
    corrupt_ratio: Ratio = 0.0
    reorder_ratio: Ratio = 0.0
    rate_bit_s: Count | None = None
    queue_packets: Count | None = None
    layer: Layer = "ip"
    keeps_order: bool = False
    queue_bytes: Count | None = None
    bit_error_ratio: Ratio = 0.0
    """Of bits, independent: a packet of L bytes (at the layer of the rate) is lost with 1 - (1 - BER)^(8 L)."""
    byte_error_ratio: Ratio = 0.0
    """The same of bytes: 1 - (1 - p)^L."""
    packet_rules: tuple[PacketRule, ...] = ()
    aqm: Aqm | None = None
    """In place of the tail-drop queue; the queue's length is then its hard limit."""
    policer: Policer | msgspec.UnsetType = msgspec.UNSET
    """Before everything else of the direction. Like the fields below it is no part of the JSON if the spec has none."""
    burst_bytes: Count | msgspec.UnsetType = msgspec.UNSET
    """Of the rate: the depth of its token bucket, at the layer of the rate."""
    slots: Slots | msgspec.UnsetType = msgspec.UNSET
    opportunities: Opportunities | msgspec.UnsetType = msgspec.UNSET
    """In place of a rate; what waits for them is in the queue."""
    ack_thinning: AckThinning | msgspec.UnsetType = msgspec.UNSET

    @property
    def header_bytes(self) -> int:
        """What the layer of the rate counts of each packet besides its IP length."""
        return ETHERNET_HEADER_BYTES if self.layer == "ethernet" else 0

    @property
    def token_bucket(self) -> bool:
        """True if tbf makes the rate: netem's own queue counts packets only, and has no place for another qdisc."""
        if self.burst_bytes is not msgspec.UNSET:
            return True
        return self.queue_bytes is not None if self.aqm is None else self.aqm.kind != "cake"


class Link(Frozen, frozen=True):
    """A veth pair between two nodes; forward: from a to b. A shaped link with a host at an end gets a hop in the middle
    (a router of its own, a bridge if the other end is a switch), because shaping on the sending host would push back on
    its transport.
    """

    name: InnerName
    a: InnerName
    b: InnerName
    forward: LinkImpairment
    backward: LinkImpairment
    mtu_bytes: Count = 1500
    firewall: Firewall | msgspec.UnsetType = msgspec.UNSET
    """What a stateful firewall on the link's hop does to packets of connections that it does not know."""
    family: Literal["ipv6"] | msgspec.UnsetType = msgspec.UNSET
    """Of the packets on it. Unset: IPv4, and no part of the JSON."""

    def side(self, name: DirectionName) -> LinkImpairment:
        """What one direction does to packets."""
        return self.forward if name == "forward" else self.backward

    @property
    def ip_family(self) -> IpFamily:
        """The family of the packets on it."""
        return IPV4 if self.family is msgspec.UNSET else IPV6
