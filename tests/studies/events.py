"""Draws what happens to a study's network and hosts: every kind of event, some of which the cell's end cuts short."""

from __future__ import annotations

from typing import Any

import netwarp

from . import links
from .draw import MS, Draw, S, rate_text, time_text, two_digits
from .flows import Flows
from .networks import LinkDrawn, Network

Keys = dict[str, Any]
FIXED = ("burst", "slots", "trace", "profile")
"""Keys of links whose rate no event changes."""
ACTIONS = ("cut", "cut", "blackhole", "blackhole", "link", "change", "change", "change", "mtu", "forget", "address",
           "stop_reading", "restart", "restart", "restart", "like", "like")  # fmt: skip


class Events:
    """Draws events into an experiment."""

    def __init__(self, draw: Draw, study: netwarp.Experiment, net: Network, flows: Flows, duration_ns: int) -> None:
        self._draw, self._study, self._net, self._flows = draw, study, net, flows
        self._duration_ns = duration_ns
        self._busy: set[str] = set()
        self._first: tuple[str, str] | None = None

    def drawn(self) -> None:
        """None, one or two events, on different links."""
        draw = self._draw
        for number in range(1, draw.of((0, 0, 1, 1, 1, 2, 3)) + 1):
            used = [name for flow in self._flows.names for name in self._flows.ways[flow].crosses]
            free = [name for name in dict.fromkeys(used) if name not in self._busy]
            if free:
                again = self._first is not None and draw.maybe(0.4)
                self._event(f"e{number}", draw.of(free), "like" if again else draw.of(ACTIONS))

    def _event(self, name: str, link: str, action: str) -> None:
        draw, drawn = self._draw, self._net.links[link]
        keys: Keys = {"action": action, "link": link}
        if drawn.has("event") or (drawn.has("trace") and action == "change"):
            return
        match action:
            case "link":
                hosts = [end for end in drawn.ends if end in self._net.hosts]
                near = draw.of(hosts or drawn.ends)
                keys["end"] = {"hop": near} if hosts and draw.maybe(0.6) else near
            case "cut" | "blackhole":
                if action == "blackhole" and draw.maybe(0.35):
                    keys["longer_than"] = draw.of(("200 B", "600 B", "1200 B"))
                if draw.maybe(0.4):
                    keys["directions"] = [draw.of(("forward", "backward"))]
            case "change":
                if not self._change(keys, drawn):
                    return
            case "mtu":
                if "lan" in drawn.ends or (self._net.family != "ipv4" and drawn.has("mtu")):
                    return
                keys["mtu"] = (
                    draw.of(("1000 B", "700 B")) if self._net.family == "ipv4" else draw.of(("1280 B", "1400 B"))
                )
                if draw.maybe(0.3):
                    keys["directions"] = ["forward"]
            case "forget":
                if not drawn.has("firewall"):
                    return
            case "address":
                hosts = [end for end in drawn.ends if end in self._net.hosts]
                if not hosts or "lan" in drawn.ends:
                    return
                keys["node"] = draw.of(hosts)
            case "stop_reading":
                if not self._flows.plain:
                    return
                keys = {"action": action, "flow": draw.of(self._flows.plain)}
            case "restart":
                if not self._restart(keys):
                    return
            case "like":
                if self._first is None:
                    return
                self._study.event(name, like=self._first[0], **({"link": link} if self._first[1] != link else {}))
                self._busy.add(link)
                return
        at = draw.log(0.05, 0.85) * self._duration_ns
        keys["at"] = time_text(max(1000, two_digits(at)))
        length = (self._duration_ns - two_digits(at)) * draw.of((0.05, 0.2, 0.5, 0.6))
        if action != "forget" and (action == "restart" or draw.maybe(0.85)):
            keys["for"] = time_text(max(1000, two_digits(length)))
            left = self._duration_ns - two_digits(at) - two_digits(length)
            if draw.maybe(0.2) and action in ("cut", "blackhole", "link", "change") and left > 5 * MS:
                keys["every"] = time_text(max(MS, two_digits(length * 2.2)))
            elif draw.maybe(0.3) and left > 10 * MS:
                keys["for_phase"] = {"uniform": ["0 s", time_text(two_digits(left * 0.3))]}
            if draw.maybe(0.2) and left > 10 * MS and "every" not in keys:
                keys["phase"] = {"uniform": ["0 s", time_text(two_digits(left * 0.3))]}
        self._study.event(name, **keys)
        self._busy.add(link)
        if "link" in keys and action in ("cut", "blackhole") and "every" not in keys:
            self._first = (name, link)

    def _change(self, keys: Keys, drawn: LinkDrawn) -> bool:
        """What is laid over the link."""
        draw = self._draw
        fixed = any(drawn.has(key) for key in FIXED)
        rate = drawn.rate_bit_s
        spread = drawn.has("jitter") or drawn.has("reorder")
        choices: list[Keys] = [] if spread or drawn.has("profile") else [
            {"one_way_delay": time_text(links.delay_of(draw))} if "rtt" not in drawn.keys
            else {"rtt": time_text(2 * links.delay_of(draw))}
        ]  # fmt: skip
        if not drawn.has("loss") and not drawn.has("burst_loss") and not drawn.has("profile"):
            choices.append({"loss": draw.of(("2 %", "30 %"))})
        if drawn.limited and not fixed:
            other = max(1000, two_digits(rate * draw.of((0.25, 0.5, 2))))
            choices += [{"rate": rate_text(other)}] * 2
            if not drawn.has("aqm"):
                choices.append({"rate": rate_text(other), "queue": f"{draw.whole(5, 100)} packets"})
        if not choices:
            return False
        change = draw.of(choices)
        if "rtt" not in change and draw.maybe(0.4):
            keys[draw.of(("forward", "backward"))] = change
        else:
            keys |= change
            if draw.maybe(0.3):
                keys["directions"] = [draw.of(("forward", "backward"))]
        return True

    def _restart(self, keys: Keys) -> bool:
        """A host that is none of pages or programs."""
        draw, flows = self._draw, self._flows
        bad = {end for name in flows.names if name not in flows.restartable
               for end in (flows.ways[name].sender, flows.ways[name].receiver)}  # fmt: skip
        hosts = [end for name in flows.restartable for end in (flows.ways[name].sender, flows.ways[name].receiver)]
        hosts = [host for host in hosts if host not in bad]
        if not hosts or self._duration_ns < S // 20:
            return False
        keys.pop("link")
        keys["node"] = draw.of(hosts)
        if draw.maybe(0.8):
            keys["killed"] = draw.of(("host", "process"))
        return True
