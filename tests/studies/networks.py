"""Draws networks: pair, chain to four routers, dumbbell, parking lot, star, switch; and the ways of flows over them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import netwarp

from . import links
from .draw import MS, Draw, time_text

Keys = dict[str, Any]
PROFILES = ("adsl", "mobile-3g", "wifi-80211n-good", "wifi-80211n-poor", "geo-satellite", "leo-handover", "wired-lan",
            "transcontinental", "mobile-lte", "e1", "cdma-9600")  # fmt: skip
PROFILE_RATE, PROFILE_DELAY = 20_000_000, 30 * MS
"""What the cost of a cell is estimated with."""
FAST_BIT_S = 10**9
AGENTS: tuple[Keys, ...] = (
    {
        "kind": "snoop",
        "cache": "50 packets",
        "timeout_min": "100 ms",
        "retransmissions": 5,
        "sack": "pass",
        "link": "h2",
    },
    {
        "kind": "snoop",
        "cache": "9 packets",
        "timeout_min": "50 ms",
        "retransmissions": 3,
        "sack": "hide",
        "dies_at": "1 s",
        "link": "h2",
    },
    {"kind": "mtcp", "away_after": "100 ms", "hold": "200 ms", "cache": "100 packets", "told": "both", "link": "h2"},
    {"kind": "itcp-proxy", "buffer": "64 KiB", "congestion": "reno", "link": "h2"},
)


@dataclass
class Way:
    """Where a flow may go: hosts, one path or two, and what the cost of its cell is estimated with."""

    sender: str
    receiver: str
    paths: list[object]
    rate_bit_s: int
    rtt_ns: int
    crosses: tuple[str, ...]
    """Links, in order."""
    limited: bool = True
    """False: a link without a rate alone is on it."""


@dataclass
class LinkDrawn:
    """A link, as far as events and measurements have to know it."""

    ends: tuple[str, str]
    keys: Keys
    rate_bit_s: int
    rtt_ns: int
    limited: bool
    sides: Mapping[str, Keys] = field(default_factory=dict)

    def has(self, key: str) -> bool:
        """True if either direction has this key."""
        return key in self.keys or any(key in side for side in self.sides.values())


@dataclass
class Network:
    """The network of a study."""

    hosts: list[str] = field(default_factory=list)
    routers: list[str] = field(default_factory=list)
    links: dict[str, LinkDrawn] = field(default_factory=dict)
    ways: list[Way] = field(default_factory=list)
    multihomed: list[Way] = field(default_factory=list)
    family: str = "ipv4"
    dual: bool = False
    agents: bool = False
    unscaled: bool = False
    """Hosts have TCP's window scaling off."""
    bottlenecks: list[str] = field(default_factory=list)


class Networks:
    """Draws one network into an experiment."""

    def __init__(
        self, draw: Draw, study: netwarp.Experiment, node_keys: Mapping[str, Keys], defaults: Keys | None = None
    ) -> None:
        self._defaults: Keys = defaults or {}
        self._draw, self._study, self._node_keys = draw, study, node_keys
        self._net = Network()
        self._sysctls: dict[str, str] = {}

    def drawn(self) -> Network:
        """The network."""
        draw, net = self._draw, self._net
        net.family = "ipv6" if draw.maybe(0.25) else "ipv4"
        net.unscaled = "net.ipv4.tcp_window_scaling" in self._node_keys["host"].get("sysctl", {})
        if net.family == "ipv6":
            keys: Keys = self._defaults | {"link": {"family": "ipv6"}}
            if draw.maybe(0.3):
                keys["node"] = {"sysctl": {"net.ipv6.flowlabel_reflect": "1"}}
            self._study.set(default=keys)
        elif self._defaults:
            self._study.set(default=self._defaults)
        shape = draw.of((self._pair, self._pair, self._two_path, self._two_path, self._chain, self._chain,
                         self._dumbbell, self._parking_lot, self._star))  # fmt: skip
        if draw.maybe(0.04):
            shape = self._switch
        shape()
        return net

    # shapes --------------------------------------------------------------------------------------------------------

    def _pair(self) -> None:
        self._hosts("a", "b")
        unlimited = self._draw.maybe(0.06)
        self._link("p1", "a", "b", rate=None if unlimited else links.rate_of(self._draw))
        self._way("a", "b", ["p1"])

    def _two_path(self) -> None:
        draw, net = self._draw, self._net
        shaped = draw.maybe(0.3)
        if shaped:
            self._study.set(shape={"kind": "two-path"})
        net.dual = net.family == "ipv4" and draw.maybe(0.3)
        if net.dual:
            net.family = "dual"
            self._sysctls["net.sctp.addr_scope_policy"] = "2"
        self._hosts("a", "b", named=not shaped)
        rate = links.rate_of(draw)
        if draw.maybe(0.2):
            rate = min(rate, 2_000_000)
        for number in (1, 2):
            name = f"p{number}"
            own = {"family": ("ipv4", "ipv6")[number - 1]} if net.dual else {}
            if number == 2 and draw.maybe(0.25) and not net.dual:
                first = net.links["p1"]
                self._study.link(name, *([] if shaped else ["a", "b"]), like="p1")
                net.links[name] = LinkDrawn(("a", "b"), {**first.keys}, first.rate_bit_s, first.rtt_ns, True,
                                            first.sides)  # fmt: skip
                continue
            self._link(name, "a", "b", rate=rate if draw.maybe(0.6) else links.rate_of(draw), between=not shaped,
                       own=own)  # fmt: skip
        self._way("a", "b", ["p1"])
        self._way("a", "b", ["p2"])
        first, second = net.ways[-2:]
        net.multihomed.append(
            Way(
                "a",
                "b",
                [*first.paths, *second.paths],
                first.rate_bit_s + second.rate_bit_s,
                max(first.rtt_ns, second.rtt_ns),
                ("p1", "p2"),
            )
        )

    def _chain(self) -> None:
        draw = self._draw
        routers = draw.whole(1, 4)
        names = [f"r{number}" for number in range(1, routers + 1)]
        shaped = draw.maybe(0.5)
        if shaped:
            self._study.set(shape={"kind": "chain", "hops": routers + 1})
        self._hosts("a", "b", named=not shaped)
        agent = draw.maybe(0.85) and self._net.family == "ipv4"
        self._routers(*(names[1:] if agent else names), named=not shaped)
        if agent:
            self._study.router(names[0], agent=dict(draw.of(AGENTS)))
            self._net.routers.insert(0, names[0])
            self._net.agents = True
        nodes = ["a", *names, "b"]
        slow = draw.whole(1, routers + 1)
        rate = links.rate_of(draw)
        hops = []
        for number in range(1, routers + 2):
            own = rate if number == slow else min(FAST_BIT_S, rate * draw.of((1, 2, 10, 100)))
            given = None if number != slow and draw.maybe(0.3) else own
            self._link(f"h{number}", nodes[number - 1], nodes[number], rate=given, between=not shaped,
                       plain=number != slow and draw.maybe(0.7))  # fmt: skip
            hops.append(f"h{number}")
        self._net.bottlenecks.append(f"h{slow}")
        self._way("a", "b", hops)
        if draw.maybe(0.4):
            self._way("b", "a", hops[::-1])

    def _dumbbell(self) -> None:
        draw = self._draw
        pairs = draw.whole(1, 3)
        shaped = draw.maybe(0.6)
        if shaped:
            self._study.set(shape={"kind": "dumbbell", "pairs": pairs})
        left, right = ([f"{side}{number}" for number in range(1, pairs + 1)] for side in "ab")
        self._hosts(*left, *right, named=not shaped)
        self._routers("r1", "r2", named=not shaped)
        rate = links.rate_of(draw)
        for number in range(pairs):
            edge = None if draw.maybe(0.4) else min(FAST_BIT_S, rate * 10)
            self._link(left[number], left[number], "r1", rate=edge, between=not shaped, plain=True)
            self._link(right[number], "r2", right[number], rate=edge, between=not shaped, plain=True)
        self._link("bottleneck", "r1", "r2", rate=rate, between=not shaped)
        self._net.bottlenecks.append("bottleneck")
        for number in range(pairs):
            self._way(left[number], right[number], [left[number], "bottleneck", right[number]])
            if draw.maybe(0.3):
                self._way(right[number], left[number], [right[number], "bottleneck", left[number]])

    def _parking_lot(self) -> None:
        """A chain of routers, a host at each: one flow goes the whole way, others over a part of it."""
        draw = self._draw
        count = draw.whole(2, 4)
        routers = [f"r{number}" for number in range(1, count + 1)]
        hosts = [f"c{number}" for number in range(1, count + 1)]
        self._hosts(*hosts)
        self._routers(*routers)
        rate = links.rate_of(draw)
        for host, router in zip(hosts, routers, strict=True):
            self._link(f"e{host[1:]}", host, router, rate=None if draw.maybe(0.5) else min(FAST_BIT_S, rate * 10),
                       plain=True)  # fmt: skip
        for number in range(1, count):
            self._link(f"m{number}", routers[number - 1], routers[number], rate=rate, plain=draw.maybe(0.4))
            self._net.bottlenecks.append(f"m{number}")
        for first in range(1, count):
            for last in range(first + 1, count + 1):
                middle = [f"m{number}" for number in range(first, last)]
                self._way(f"c{first}", f"c{last}", [f"e{first}", *middle, f"e{last}"])

    def _star(self) -> None:
        draw = self._draw
        count = draw.whole(3, 4)
        hosts = [f"s{number}" for number in range(1, count + 1)]
        self._hosts(*hosts)
        self._routers("hub")
        for host in hosts:
            self._link(f"l{host[1:]}", host, "hub", rate=links.rate_of(draw), plain=draw.maybe(0.4))
        for host in hosts[1:]:
            self._way(host, hosts[0], [f"l{host[1:]}", "l1"])
            self._way(hosts[0], host, ["l1", f"l{host[1:]}"])

    def _switch(self) -> None:
        draw = self._draw
        self._hosts("a", "b")
        self._study.switch("lan")
        for host, name in (("a", "u"), ("b", "d")):
            self._link(name, host, "lan", rate=links.rate_of(draw), plain=draw.maybe(0.5))
        self._way("a", "b", ["u", "d"])

    # parts ---------------------------------------------------------------------------------------------------------

    def _hosts(self, *names: str, named: bool = True) -> None:
        for name in names:
            keys = {**self._node_keys.get("host", {})}
            if self._sysctls:
                keys["sysctl"] = {**keys.get("sysctl", {}), **self._sysctls}
            if name.endswith("2") and self._draw.maybe(0.2) and named and self._net.hosts:
                keys = {"like": self._net.hosts[0]}
            if named or keys:
                self._study.host(name, **keys)
            self._net.hosts.append(name)

    def _routers(self, *names: str, named: bool = True) -> None:
        for name in names:
            if named:
                self._study.router(name, **self._node_keys.get("router", {}))
            self._net.routers.append(name)

    def _link(
        self,
        name: str,
        a: str,
        b: str,
        *,
        rate: int | None,
        between: bool = True,
        plain: bool = False,
        own: Mapping[str, object] | None = None,
    ) -> None:
        draw, net = self._draw, self._net
        keys: Keys = dict(own or {})
        delay = links.delay_of(draw)
        sides: dict[str, Keys] = {}
        limited = rate is not None
        if not plain and draw.maybe(0.05) and not net.routers:
            profile = draw.of(PROFILES)
            keys["profile"] = profile
            if draw.maybe(0.3) and profile != "mobile-3g":  # whose jitter is longer
                keys["rtt"] = "30 ms"
            rate, delay = PROFILE_RATE, PROFILE_DELAY
        elif not plain and draw.maybe(0.12):
            rate, delay = 3_000_000, 10 * MS
            keys |= {"one_way_delay": time_text(delay)}
            sides = {"forward": links.traced(draw), "backward": links.queue_of(draw, 4_000_000)}
        else:
            spread = delay
            if draw.maybe(0.5):
                keys["rtt"] = time_text(2 * delay)
            else:
                keys["one_way_delay"] = time_text(delay)
            if rate is not None:
                keys |= {"queue": f"{draw.whole(20, 500)} packets", "rate": links.rate_text(rate)} if plain else (
                    links.queue_of(draw, rate)
                )  # fmt: skip
            if not plain:
                keys |= links.losses_of(draw) | links.spread_of(draw, spread)
                if rate is not None and draw.maybe(0.07):
                    keys["policer"] = links.policer_of(draw, rate)
                if rate is not None and draw.maybe(0.3):
                    sides["backward"] = self._other_way(rate, keys)
                if draw.maybe(0.1):
                    sides.setdefault("backward", {})["ack_thinning"] = {
                        "every": f"{draw.whole(2, 8)} packets", "hold": draw.of(("2 ms", "10 ms"))
                    }  # fmt: skip
        if draw.maybe(0.12) and b != "lan":
            keys["mtu"] = draw.of(("1280 B", "1400 B", "4000 B", "9000 B", "1500 B"))
        if "family" not in keys and draw.maybe(0.06):
            keys["family"] = net.family if net.family != "dual" else "ipv4"
        hosts = {a, b} & set(net.hosts)
        if hosts and not plain and draw.maybe(0.05) and b != "lan":
            keys["firewall"] = draw.of(("drop", "reject"))
        if not plain and draw.maybe(0.07) and "profile" not in keys and b != "lan":
            keys["event"] = {"handover": self._handover(traced="trace" in sides.get("forward", {}))}
        arguments = [a, b] if between else []
        self._study.link(name, *arguments, **keys, **sides)
        net.links[name] = LinkDrawn((a, b), keys, rate or 10 * FAST_BIT_S, 2 * delay, limited, sides)

    def _other_way(self, rate: int, keys: Keys) -> Keys:
        """The other direction: another rate (ADSL, a satellite), another delay, other losses."""
        draw = self._draw
        side: Keys = {}
        if draw.maybe(0.7) and not keys.keys() & {"burst", "slots", "aqm"}:
            side["rate"] = links.rate_text(max(1000, links.two_digits(rate * draw.of((0.1, 0.25, 0.5, 4)))))
            side["queue"] = f"{draw.whole(5, 200)} packets"
        if draw.maybe(0.3) and "rtt" not in keys and not keys.keys() & {"jitter", "reorder"}:
            side["one_way_delay"] = time_text(links.delay_of(draw))
        if draw.maybe(0.3) and not keys.keys() & {"loss", "loss_correlation", "burst_loss"}:
            side["loss"] = draw.of(("0", "1 %", "3 %"))
        return side

    def _handover(self, *, traced: bool) -> Keys:
        draw = self._draw
        action = draw.of(("blackhole", "blackhole", "cut") if traced else ("blackhole", "blackhole", "cut", "change"))
        keys: Keys = {"action": action, "at": "0.5 s", "for": draw.of(("20 ms", "100 ms")), "every": "1 s"}
        if action == "change":
            keys["one_way_delay"] = "40 ms"
            keys["jitter"] = "0 s"
        if draw.maybe(0.5):
            keys["directions"] = [draw.of(("forward", "backward"))]
        if action == "blackhole" and draw.maybe(0.5):
            keys["longer_than"] = "700 B"
        return keys

    def _way(self, sender: str, receiver: str, crosses: Sequence[str]) -> None:
        net = self._net
        mine = [net.links[name] for name in crosses]
        first, last = crosses[0], crosses[-1]
        path: object = first if first == last else {"sender": first, "receiver": last}
        if first == last and self._draw.maybe(0.15):
            path = {"sender": first, "receiver": last}
            if self._draw.maybe(0.5):
                path["back"] = last
        limited = any(link.limited for link in mine)
        net.ways.append(
            Way(
                sender,
                receiver,
                [path],
                min(link.rate_bit_s for link in mine),
                sum(link.rtt_ns for link in mine),
                tuple(crosses),
                limited,
            )
        )
