"""Draws the flows of a study: protocols, sizes, laws, arrivals, both directions, pages, programs, late starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import netwarp

from . import options
from .draw import MS, Draw, S, rate_text, size_text, time_text, two_digits
from .networks import Network, Way

Keys = dict[str, Any]
PACKET_BITS = 12_000
FIRST_WINDOW = 10
OF_MESSAGES = ("streams", "unordered", "ppid")
"""Options of who sends messages: of a receiver with `reverse` alone."""


class Flows:
    """Draws flows into an experiment. duration_ns and budget_packets bound what they may cost."""

    def __init__(self, draw: Draw, study: netwarp.Experiment, net: Network, duration_ns: int, budget: int) -> None:
        self._draw, self._study, self._net = draw, study, net
        self._duration_ns, self._budget = duration_ns, budget
        self.names: list[str] = []
        self.protocols: dict[str, str] = {}
        self.ways: dict[str, Way] = {}
        self.plain: list[str] = []
        """Flows of TCP, SCTP or MPTCP of netwarp's own apps, one by one."""
        self.ported: list[str] = []
        """With a port that the spec says."""
        self.restartable: list[str] = []
        """Of them those that may lose what was under way."""
        self.groups: list[str] = []

    def drawn(self) -> None:
        """One to four flows; a group; pages; a program."""
        draw, net = self._draw, self._net
        for number in range(1, draw.of((1, 1, 1, 2, 2, 3, 4)) + 1):
            way = draw.of([*net.ways, *net.multihomed, *net.multihomed])
            if net.agents:
                self._transport(f"f{number}", way)
                continue
            match draw.whole(1, 100):
                case form if form <= 11 and len(way.paths) == 1:
                    self._page(f"web{number}", way)
                case form if form <= 21 and len(way.paths) == 1 and "icmp" not in self.protocols.values():
                    self._program(f"tool{number}", way)
                case form if form <= 38 and len(way.paths) == 1:
                    self._group(f"many{number}", way)
                case form if form <= 40 and set(self.plain) - set(self.ported):
                    self._like(f"x{number}")
                case _:
                    self._transport(f"f{number}", way)
        if not self.names:
            self._transport("f9", draw.of(net.ways))

    # netwarp's own apps --------------------------------------------------------------------------------------------

    def _transport(self, name: str, way: Way) -> None:
        draw = self._draw
        if len(way.paths) > 1:
            protocol = draw.of(("sctp", "sctp", "mptcp"))
        else:
            protocol = draw.of(("tcp", "tcp", "tcp", "sctp", "sctp", "udp", "mptcp"))
            if self._net.agents:
                protocol = "tcp"
        keys: Keys = {"protocol": protocol, "paths": list(way.paths)}
        keys |= self._times(way, protocol)
        sender, receiver = options.sender_options(draw, protocol), options.receiver_options(draw, protocol)
        if "streams" in receiver:  # at least the sender's: the plan refuses fewer
            receiver["streams"] = max(receiver["streams"], sender.get("streams", 1))
        if protocol == "udp":
            keys |= self._datagrams(way, sender)
        else:
            self._messages(way, protocol, keys, sender, receiver)
        if draw.maybe(0.09) and name.startswith("f"):
            keys["port"] = 6000 + 100 * int(name[1:])
            self.ported.append(name)
        if draw.maybe(0.1) and "bytes" not in keys:
            keys["late"] = draw.of(("20 ms", "200 ms"))
        if protocol == "sctp" and len(way.paths) > 1 and draw.maybe(0.6) and not keys.keys() & {"phase", "start"}:
            keys["switch_primary"] = [{"at": time_text(self._later(0.5)), "path": "p2"}]
        if sender.get("rcvbuf") == "1 bdp" or receiver.get("rcvbuf") == "1 bdp":
            for given in (sender, receiver):
                if not way.limited and given.get("rcvbuf") == "1 bdp":
                    given["rcvbuf"] = "64 KiB"
        if keys.keys() & {"reverse"} and "think" in keys["reverse"]:
            sender.pop("lifetime", None)
            sender.pop("max_retransmissions", None)
        if "reverse" not in keys:
            for key in OF_MESSAGES:
                receiver.pop(key, None)
        elif protocol == "sctp" and draw.maybe(0.6):
            receiver |= {"ppid": draw.of((3, 46, 60)), "streams": max(2, sender.get("streams", 1))}
            receiver |= {"unordered": True} if draw.maybe(0.6) else {}
        if keys.keys() & {"messages"} or sender.keys() & {"burst"}:
            sender.pop("separate_sends", None)
        if self._net.unscaled:
            receiver.pop("window_clamp", None)
        if sender:
            keys["sender"] = sender
        if receiver:
            keys["receiver"] = receiver
        self._study.flow(name, way.sender, way.receiver, **keys)
        self._known(name, protocol, way)
        if protocol != "udp":
            self.plain.append(name)
            if not keys.keys() & {"messages", "reverse"} and (
                "reconnect" in sender or (protocol != "mptcp" and "window_clamp" not in receiver)
            ):
                self.restartable.append(name)

    def _known(self, name: str, protocol: str, way: Way) -> None:
        self.names.append(name)
        self.protocols[name], self.ways[name] = protocol, way

    def _later(self, share: float) -> int:
        return max(1000, two_digits(self._duration_ns * share))

    def _times(self, way: Way, protocol: str) -> Keys:
        """Start, stop and bytes: at once, late, never; by time, by bytes, both."""
        draw, keys = self._draw, Keys()
        duration = self._duration_ns
        start = 0
        match draw.whole(1, 100):
            case form if form <= 25:
                start = self._later(draw.log(0.01, 0.6))
            case form if form <= 31:
                start = self._later(draw.of((0.9, 0.97)))
            case form if form <= 33:
                start = duration  # it never starts
        if start:
            keys["start"] = time_text(min(start, duration))
        if draw.maybe(0.12) and start < duration // 2:
            keys["phase"] = {"uniform": ["0 s", time_text(max(1000, two_digits(duration * 0.1)))]}
        form = draw.whole(1, 100)
        if form <= 55 or not way.limited or start >= duration:
            most = min(10_000_000, self._budget * 1400)
            size = two_digits(draw.log(1, 20_000)) if draw.maybe(0.4) else two_digits(draw.log(1000, most))
            if not way.limited:
                size = min(size, 200_000)
            keys["bytes"] = size_text(size)
        if 45 <= form <= 75 and start < duration:
            keys["stop"] = time_text(max(start + max(1000, duration // 10), self._later(draw.log(0.3, 1))))
            if start + duration // 10 > duration or self._ns(keys["stop"]) > duration:
                keys["stop"] = time_text(duration)
        if protocol == "udp":
            keys.pop("bytes", None)
            if start >= duration:
                keys.pop("start", None)
        return keys

    @staticmethod
    def _ns(text: str) -> int:
        number, unit = text.split(" ")
        return round(float(number) * {"s": S, "ms": MS, "us": 1000, "ns": 1}[unit])

    def _pace(self, way: Way, size: int, share: float = 0.3) -> int:
        """A gap in ns at which messages of this size use a share of the path, and are few."""
        at_rate = size * 8 * S / (way.rate_bit_s * share)
        return max(20_000, two_digits(max(at_rate, self._duration_ns / 150)))

    def _datagrams(self, way: Way, sender: Keys) -> Keys:
        draw, keys = self._draw, Keys()
        size = draw.of((8, 20, 160, 500, 1200))
        gap = self._pace(way, size + 28, draw.log(0.1, 1.5))
        match draw.whole(1, 6):
            case 1:
                sender["interval"] = time_text(gap)
                keys["message_size"] = f"{size} B"
            case 2:
                keys["message_size"] = f"{size} B"
                sender["message_rate"] = rate_text(max(8, two_digits(size * 8 * S / gap)))
            case 3:
                burst: Keys = {"every": time_text(gap * 4)}
                burst |= {"messages": draw.whole(2, 8)} if draw.maybe(0.5) else {"sizes": ["120 B", "80 B", "400 B"]}
                sender["burst"] = burst
            case 4:
                keys["messages"] = {"file": "calls.csv"}
            case _:
                keys["messages"] = self._law_of_messages(gap, size)
        return keys

    def _law_of_messages(self, gap: int, size: int) -> Keys:
        draw = self._draw
        messages: Keys = {"gaps": self._time_law(gap)}
        if draw.maybe(0.6):
            messages["sizes"] = self._size_law(size)
        if draw.maybe(0.3):
            messages["burst"] = draw.whole(2, 4)
        if draw.maybe(0.35):
            messages["on"] = self._time_law(max(1000, self._later(0.2)))
            messages["off"] = self._time_law(max(1000, self._later(0.1)))
        return messages

    def _time_law(self, mean: int) -> object:
        return self._draw.of((
            time_text(mean), {"exponential": time_text(mean)}, {"uniform": [time_text(mean), time_text(2 * mean)]},
            {"lognormal": {"median": time_text(mean), "sigma": "0.5"}},
            {"pareto": {"least": time_text(mean), "shape": "1.5"}},
        ))  # fmt: skip

    def _size_law(self, mean: int) -> object:
        return self._draw.of((
            f"{mean} B", {"exponential": f"{mean} B"}, {"uniform": [f"{mean} B", f"{2 * mean} B"]},
            {"lognormal": {"median": f"{mean} B", "sigma": "0.7"}}, {"pareto": {"least": f"{mean} B", "shape": "1.5"}},
        ))  # fmt: skip

    def _messages(self, way: Way, protocol: str, keys: Keys, sender: Keys, receiver: Keys) -> None:
        """Of TCP, SCTP and MPTCP: saturated, by a schedule, by a law; and what the receiver sends."""
        draw = self._draw
        bare = "bare" in sender
        if draw.maybe(0.12) or bare:
            keys["message_size"] = draw.of(("1 B", "100 B", "1000 B", "3 kB", "20 kB"))
        if bare and self._draw.maybe(0.5):
            return
        size = draw.of((20, 160, 1000))
        gap = self._pace(way, size + 60)
        form = draw.whole(1, 100)
        if form <= 8:
            sender["interval"] = time_text(gap)
            keys["message_size"] = f"{size} B"
        elif form <= 13:
            keys["message_size"] = f"{size} B"
            sender["message_rate"] = rate_text(max(8, two_digits(size * 8 * S / gap)))
        elif form <= 18:
            sender["burst"] = {"every": time_text(4 * gap)} | (
                {"messages": draw.whole(2, 6)} if draw.maybe(0.5) else {"sizes": ["120 B", "80 B", "400 B"]}
            )
        elif form <= 30:
            keys["messages"] = self._law_of_messages(gap, size) if draw.maybe(0.7) else {"file": "voice.csv"}
            keys.pop("message_size", None)
        if draw.maybe(0.28) and not bare:
            self._reverse(way, keys, sender, gap, protocol)
        if draw.maybe(0.35) and "bytes" not in keys and not keys.keys() & {"reverse", "messages"} and not (
            receiver.keys() & {"window_clamp"} or sender.keys() & {"bare"}
        ):  # fmt: skip
            sender["reconnect"] = draw.of(("100 ms", "1 s", "off"))

    def _reverse(self, way: Way, keys: Keys, sender: Keys, gap: int, protocol: str) -> None:
        draw = self._draw
        reverse: Keys = {}
        timed = "messages" in keys and "file" not in keys["messages"]
        match draw.whole(1, 4):
            case 1 if way.limited:
                pass
            case 2 if timed:
                reverse["think"] = self._time_law(max(1000, gap // 2))
            case _:
                reverse = self._law_of_messages(gap, draw.of((20, 300)))
        if "bytes" in keys or draw.maybe(0.2):
            reverse["bytes"] = size_text(two_digits(draw.log(10, 20_000)))
        if protocol == "sctp" and draw.maybe(0.4):
            reverse["streams"] = 2
        if timed and "think" not in reverse and draw.maybe(0.75):
            keys["messages"] = {"think": time_text(gap), "sizes": "100 B"}
            reverse = {"think": "1 ms"} | ({"bytes": reverse["bytes"]} if "bytes" in reverse else {})
        keys["reverse"] = reverse

    def _like(self, name: str) -> None:
        first = next(each for each in self.plain if each not in self.ported)
        self._study.flow(name, like=first)
        self._known(name, self.protocols[first], self.ways[first])

    # many, pages, programs -----------------------------------------------------------------------------------------

    def _group(self, name: str, way: Way) -> None:
        """Equal flows, or flows that arrive."""
        draw = self._draw
        protocol = draw.of(("tcp", "tcp", "sctp"))
        keys: Keys = {"protocol": protocol, "paths": list(way.paths)}
        duration = self._duration_ns
        if draw.maybe(0.72):
            count = draw.whole(6, 9)
            arrivals: Keys = {
                "process": draw.of(("poisson", "regular")),
                "rate": f"{max(1, round(count * S / duration))} /s" if duration < 20 * S else "30 /min",
                "size": self._sizes(),
            }
            if draw.maybe(0.7):
                arrivals["stop"] = time_text(self._later(0.6))
            keys["arrivals"] = arrivals
            if draw.maybe(0.5):
                keys["classes"] = {"mice": "5 kB", "elephants": "1 GB"}
        else:
            keys["count"] = draw.whole(2, 6)
            keys["bytes"] = size_text(two_digits(draw.log(100, min(300_000, self._budget * 300))))
            if draw.maybe(0.5):
                keys["start"] = {"first": "0 s", "every": time_text(self._later(0.02))}
            if draw.maybe(0.7) or "start" not in keys:
                step = {"every": time_text(self._later(0.05))}
                keys["stop"] = (
                    {"last": time_text(self._later(0.6))} if draw.maybe(0.6) else {"first": self._half()}
                ) | step
        self._study.flow(name, way.sender, way.receiver, **keys)
        self._known(name, protocol, way)
        self.groups.append(name)

    def _half(self) -> str:
        return time_text(max(1000, two_digits(self._duration_ns * 0.5)))

    def _sizes(self) -> object:
        draw = self._draw
        law = draw.of((
            {"exponential": "8 kB"}, {"lognormal": {"median": "4 kB", "sigma": "1"}}, {"uniform": ["1 B", "20 kB"]},
            {"pareto": {"least": "1 kB", "shape": "1.3"}}, {"published": "web-search"},
            {"lognormal": {"median": "900 B", "sigma": "2"}}, {"uniform": ["600 B", "2 kB"]},
            {"file": "sizes.csv"}, {"file": "shares.csv"},
        ))  # fmt: skip
        return draw.of(("5 kB", *[{**law, "most": "40 kB"}] * 9))

    def _page(self, name: str, way: Way) -> None:
        """Pages over TCP or SCTP."""
        draw = self._draw
        protocol = draw.of(("tcp", "sctp"))
        objects: object = draw.of(
            (["2 kB", "700 B"], {"count": 3, "size": "1500 B"}, {"count": 4, "median": "1 kB", "sigma": "1.2"})
        )
        page: Keys = {"objects": objects}
        if draw.maybe(0.4):
            page["html"] = "3 kB"
        if draw.maybe(0.25):
            page = {"har": "today.har"}
        choices: Keys = {"request": "120 B", "pages": 2, "think": "10 ms", "keep": draw.maybe(0.5), "nodelay": False}
        if protocol == "tcp":
            choices |= {"connections": draw.whole(1, 3)}
            form = draw.whole(1, 4)
            if form <= 2:
                choices |= {"pipelined": draw.maybe(0.5)}
            elif form <= 4:
                choices = {key: value for key, value in choices.items() if key != "connections"}
                page |= {"multiplexed": True}
                choices["frame"] = "2 KiB"
        else:
            choices |= {"streams": draw.whole(1, 3), "order": draw.of(("fcfs", "rr", "prio")), "message": "488 B",
                        "interleave": draw.maybe(0.5)}  # fmt: skip
        page |= {key: value for key, value in choices.items() if draw.maybe(0.75)}
        if page.get("order", "fcfs") != "fcfs":  # each object has a stream of its own then
            page["streams"] = 6
        keys: Keys = {"protocol": protocol, "paths": list(way.paths), "page": page}
        if protocol == "tcp" and draw.maybe(0.3):
            keys["sender"] = {"congestion": draw.of(options.CONGESTION)}
        self._study.flow(name, way.sender, way.receiver, **keys)
        self._known(name, protocol, way)

    def _program(self, name: str, way: Way) -> None:
        """ping, iperf3, or an argument list."""
        draw = self._draw
        seconds = self._duration_ns // S
        if seconds < 2 or not way.limited or way.rate_bit_s > 8_000_000 or draw.maybe(0.05):
            keys: Keys = {"protocol": "icmp", "program": "ping", "paths": list(way.paths)}
            if draw.maybe(0.6):
                keys["program"] = {
                    "sender": ["ping", "-n", "-i", time_text(max(10 * MS, self._later(0.1))).split(" ")[0], "{to}"],
                    "interrupt": True,
                }
                keys["program"]["sender"][3] = f"{max(0.01, self._duration_ns / S / 10):.3f}"
                if draw.maybe(0.6):
                    keys["program"]["files"] = ["mine.cfg"]
            self._study.flow(name, way.sender, way.receiver, **keys)
            self._known(name, "icmp", way)
            return
        protocol = draw.of(("tcp", "tcp", "udp", "sctp"))
        keys = {"protocol": protocol, "paths": list(way.paths), "start": "1 s", "stop": f"{min(seconds, 3)} s",
                "program": "iperf3"}  # fmt: skip
        if draw.maybe(0.9):
            extra = {"tcp": [], "udp": ["-u", "-b", "50k"], "sctp": ["--sctp"]}[protocol]
            server = ["iperf3", "-s", "-1", "--forceflush", "-p", "{port}"]
            client = ["iperf3", "-c", "{to}", "-p", "{port}", "-t", "{duration_s}", *extra]
            program: Keys = {"sender": client, "receiver": server, "ready": "Server listening"}
            if draw.maybe(0.75):  # the server sends: iperf3's reverse test
                client = ["iperf3", "-c", "{from}", "-p", "{port}", "-t", "{duration_s}", "-R", *extra]
                program = {"listens": "sender", "sender": server, "receiver": client, "ready": "Server listening"}
            if draw.maybe(0.5):
                program["files"] = ["mine.cfg"]
            keys["program"] = program
        self._study.flow(name, way.sender, way.receiver, **keys)
        self._known(name, protocol, way)


def cost_packets(ways: Sequence[Way], duration_ns: int) -> float:
    """How many packets a flow on the fastest of these ways may send in a time, by rate and by slow start."""
    most = 0.0
    for way in ways:
        rounds = duration_ns / max(way.rtt_ns, 1)
        grown = FIRST_WINDOW * 2.0 ** min(rounds, 40)
        most = max(most, min(grown, way.rate_bit_s * duration_ns / S / PACKET_BITS))
    return most
