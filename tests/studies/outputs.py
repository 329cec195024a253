"""Draws what a study asks for: measurements, captures, factors and experiments, tables, figures, answers, claims."""

from __future__ import annotations

from typing import Any

import netwarp

from .draw import MS, Draw, time_text, two_digits
from .flows import Flows
from .networks import Network

Keys = dict[str, Any]
METRICS = ("goodput_bit_s", "throughput_bit_s", "packets", "retransmitted_packets")


class Outputs:
    """Draws outputs into an experiment whose network and flows are known."""

    def __init__(self, draw: Draw, study: netwarp.Experiment, net: Network, flows: Flows, duration_ns: int) -> None:
        self._draw, self._study, self._net, self._flows = draw, study, net, flows
        self._duration_ns = duration_ns
        self._flow = flows.names[0]
        self._windowed = False
        one = next((name for name in flows.names if name not in flows.groups), None)
        self._one, self._named = one or f"{self._flow}1", one or self._flow

    def drawn(self) -> None:
        """Everything; a study whose question is a factor has tables over it."""
        draw = self._draw
        self._measured()
        if draw.maybe(0.3):
            self._study.set(captures=draw.of(("hosts", "all", "all", self._ends())))
        form = draw.whole(1, 100)
        self._varied = form <= 24 or (form <= 34 and bool(self._ruleless()))
        if form <= 24:
            self._question()
        elif form <= 34 and self._ruleless():
            self._schedule(self._ruleless())
        if draw.maybe(0.04):
            self._study.set(kernel="6.12")
        if draw.maybe(0.08):
            self._study.set(loop={"ends": ["one", "two"]})
            self._study.table(
                "looped{e}", metric="packets", flow=self._one, title="{e}", each={"e": "ends"}
            ) if not self._varied else (
                self._study.figure(
                    "looped{e}", series=["goodput_bit_s"], flows=[self._one], title="{e}", each={"e": "ends"}
                )
            )
        if draw.maybe(0.08):
            study = self._study
            study.metric("mine", unit="bit/s", value="payload_bytes * 8 / duration_s", title="Payload over all")
            if not self._varied:
                study.table("mine", metric="mine", flow=self._one, rows=["flow"])
        if draw.maybe(0.07):
            window = {"window": ["0 s", time_text(self._duration_ns)]} if draw.maybe(0.5) else {}
            self._study.figure("course", series=["goodput_bit_s"], flows=[self._one], **window)
        if draw.maybe(0.06):
            self._study.table("around", around=["fault"], packets=draw.whole(2, 4), flow=self._one)

    def _ends(self) -> list[str]:
        points = []
        for name in self._flows.names:
            way = self._flows.ways[name]
            for path in way.paths:
                first, last = (path, path) if isinstance(path, str) else (path["sender"], path["receiver"])  # type: ignore[index]
                points += [f"{way.sender}.{first}", f"{way.receiver}.{last}"]
        return list(dict.fromkeys(points))

    def _measured(self) -> None:
        draw, measure = self._draw, Keys()
        if not draw.maybe(0.75):
            return
        if draw.maybe(0.6):
            measure["windows"] = time_text(max(MS, two_digits(self._duration_ns / draw.whole(2, 12))))
        limited = [name for name in self._flows.ways[self._named].crosses if self._net.links[name].limited]
        if draw.maybe(0.7) and limited:
            link = draw.of(limited)
            measure["links"] = [draw.of((link, f"{link}.forward", f"{link}.backward"))]
        if draw.maybe(0.3):
            measure["windows"] = time_text(max(MS, two_digits(self._duration_ns / 20)))
            measure["fair"] = {"within": draw.of(("20 %", "50 %")),
                               "for": time_text(max(2 * MS, two_digits(self._duration_ns / 4)))}  # fmt: skip
        if draw.maybe(0.35):
            first = max(1000, two_digits(self._duration_ns * draw.of((0.1, 0.5))))
            measure["span"] = {"from": time_text(first), "to": time_text(self._duration_ns)}
        self._windowed = "windows" in measure or not measure
        self._study.set(measure=measure or {"windows": time_text(max(MS, self._duration_ns // 4))})

    def _question(self) -> None:
        """A factor or two, with tables, figures, an answer and claims about them."""
        draw, study = self._draw, self._study
        levels = ["none", "small"]
        title = {"title": "how much is lost"} if draw.maybe(0.4) else {}
        robust = {"usual": "none", "unstated": "the source does not say"} if draw.maybe(0.25) else {}
        if draw.maybe(0.5):
            value = study.parameter("late", "100 ms")
            levels = ["100 ms", "20 ms"]
            study.factor("late_level", levels, sets=value, **title)
            robust = {}
            factor = "late_level"
        else:
            link = self._flows.ways[self._named].crosses[0]
            node = self._flows.ways[self._named].sender
            level: Keys = {"none": {}, "small": {"title": "small windows"}}
            level["small"]["node"] = {node: {"sysctl": {"net.ipv4.tcp_rmem": "4096 16384 32768"}}}
            if draw.maybe(0.4):
                robust["every"] = {"link": {link: {"mtu": "1500 B"}}}
            factor = "windows"
            study.factor(factor, level, **title, **robust)
        factors, whole = [factor], True
        if draw.maybe(0.28):
            self._also_there(factor, levels)
        if draw.maybe(0.33):
            study.factor("other_level", ["1 s", "2 s"], sets=study.parameter("other", "1 s"))
            factors.append("other_level")
        elif draw.maybe(0.35):
            study.factor("spare_node", ["one", "two"], only={factor: [levels[0]]})
            study.event("never", action="cut", link=self._flows.ways[self._named].crosses[0], at="0 s", for_="0 s",
                        **{draw.of(("only", "unless")): {"spare_node": "two"}})  # fmt: skip
            there: Keys = {draw.of(("only", "unless")): {"spare_node": ["one"]}}
            study.host("spare", **there)
            study.link("spare", "spare", self._flows.ways[self._named].sender, **there)
            factors.append("spare_node")
        self._experiments = draw.maybe(0.5)
        if self._experiments:
            keys: Keys = {"factors": factors}
            if draw.maybe(0.4):
                keys["title"] = "All of it"
            if draw.maybe(0.4):
                keys["repetitions"] = 1
            if draw.maybe(0.4):
                keys["repeat"] = draw.of(("all", "random"))
            if draw.maybe(0.25):
                keys["optional"] = False
            if "other_level" in factors:
                keys["zip"] = [[factor, "other_level"]]
            if draw.maybe(0.3) and "zip" not in keys:
                keys["levels"] = {factor: levels[:1]}
                whole = False
            if draw.maybe(0.25):
                study.experiment("first{n}", **keys, each={"n": ["a", "b"]})
            else:
                study.experiment("first", **keys)
            if draw.maybe(0.6) and len(factors) == 1:
                whole = False
                study.experiment("second", factors=[], fixed={factor: levels[1]})
        where: Keys = {"spare_node": "one"} if "spare_node" in factors else {}
        if "other_level" in factors:
            where = {"other_level": "1 s"}
        self._tables(factor, levels if whole else [levels[0], levels[0]], where)
        if draw.maybe(0.9) and whole and not where and factor == "windows":
            self._claims(factor, levels)

    def _also_there(self, factor: str, levels: list[str]) -> None:
        """A flow and a switch that are there at one level alone."""
        draw, study, way = self._draw, self._study, self._flows.ways[self._named]
        there: Keys = {draw.of(("only", "unless")): {factor: [draw.of(levels)]}}
        study.flow("extra", way.sender, way.receiver, protocol="tcp", paths=list(way.paths)[:1], bytes="2 kB", **there)
        there = {draw.of(("only", "unless")): {factor: [draw.of(levels)]}}
        study.switch("lan2", **there)
        study.link("to_lan2", way.sender, "lan2", **there)

    def _tables(self, factor: str, levels: list[str], where: Keys) -> None:
        draw, study = self._draw, self._study
        keys: Keys = {"metric": draw.of(METRICS), "flow": self._one, "rows": [factor]}
        if where:
            keys["where"] = {**where, factor: levels[0]}
        if draw.maybe(0.4):
            keys = {**keys, "rows": ["flow"], "columns": [factor]}
        keys |= {key: value for key, value in {

        }.items() if draw.maybe(0.4)}  # fmt: skip
        if not self._experiments and draw.maybe(0.5):
            keys["experiment"] = "main"
        if draw.maybe(0.4):
            keys["statistic"] = draw.of(("max", "median", "min"))
        elif draw.maybe(0.5):
            keys["beside"] = ["data_packets"] if "packets" in keys["metric"] else ["span_goodput_bit_s"]
        if draw.maybe(0.4):
            keys["title"] = "How much"
        if draw.maybe(0.4):
            study.table("numbers", **keys)
        elif draw.maybe(0.5) and not where:
            turns = [{"n": number, "where": {factor: level}} for number, level in enumerate(levels, 1)]
            study.table("numbers{n}", **{**keys, "title": "Number {n}"}, each=turns)
        panels = {"panels": ["other_level"]} if "other_level" in where and draw.maybe(0.7) else {}
        if draw.maybe(0.9):
            kind = "heatmap" if panels else draw.of(("line", "line", "cdf", "box", "heatmap"))
            figure: Keys = {"metric": "goodput_bit_s", "flow": self._one, "kind": kind}
            figure |= {"where": {**where, factor: levels[0]}} if where and not panels else {}
            figure |= panels
            figure |= {"over": [factor]} if kind == "cdf" else {"x": factor}
            figure |= {"y": "flow"} if kind == "heatmap" else {}
            figure |= {"lines": ["flow"]} if kind == "line" and draw.maybe(0.5) else {}
            figure |= {"log": True} if kind == "line" and draw.maybe(0.5) else {}
            if draw.maybe(0.4):
                figure["title"] = "How it goes"
            if draw.maybe(0.5) and kind == "line":
                figure["beside"] = ["throughput_bit_s"]
            if draw.maybe(0.4) and not self._experiments:
                figure["experiment"] = "main"
            study.figure("main", **figure)
            if draw.maybe(0.5):
                study.set(key_figure="main")
        if draw.maybe(0.5) and self._windowed:
            only = {"experiment": "main"} if not self._experiments and draw.maybe(0.5) else {}
            study.figure("over_time", series=["goodput_bit_s"], windows=True, flow=self._one, panels=[factor],
                         **({"where": where} if where else {}), **only)  # fmt: skip
        if draw.maybe(0.6) and not where:
            level = {"where": {factor: levels[0]}} if draw.maybe(0.5) else {}
            study.answer("best", title="Which is best?", metric="payload_bytes", flow=self._one, settings=[factor],
                         budgets=["1 MB"], tempting="packets",
                         because=[{"metric": "packets", "above": 1, "text": "{packets} packets"}],
                         given=[], cost={"metric": "retransmitted_packets", "text": "{value} sent again", **level},
                         **({"where": {factor: levels}} if draw.maybe(0.5) else {}),
                         **({} if self._experiments else {"experiment": "main"}))  # fmt: skip

    def _claims(self, factor: str, levels: list[str]) -> None:
        study = self._study
        study.source("paper", title="Somebody 2020", kind="paper")
        study.word("same", tolerance=0.1, source="Table 1", overlaps="more")
        study.word("more", tolerance=0.2, source="Table 2")
        study.set(amendment={"words": {"date": "2026-11-22", "reason": "the paper says otherwise"}})
        study.column("other", title="The other level", where={factor: levels[1]})
        common: Keys = {"metric": "packets", "flow": self._one, "source": "Table 1"}
        study.claim("C0", kind="equal", text="Equal where it is so.", where={factor: levels[0]}, a={"flow": self._one},
                    b={"flow": self._one}, metric="packets", metric_b="data_packets", source="Table 1",
                    tolerance=0.5, also={factor: [levels[1]]},
                    **({} if self._experiments else {"experiment": "main"}))  # fmt: skip
        if self._draw.maybe(0.95):
            study.metric("printed", unit="packets", published="paper", title="As printed")
            study.set(published="published.csv")
        study.claim("C1", kind="equal", text="Both are equal.", a={factor: levels[0]}, b={factor: levels[1]},
                    tolerance="same", class_="own", amended=["words"],
                    metric_b="data_packets", **common)  # fmt: skip
        study.claim("C2", kind="value", text="Many packets.", a={factor: levels[0]}, expected=100, tolerance=50,
                    paper={"en": "Many packets.", "ko": "패킷이 많다."}, class_="number", **common)  # fmt: skip
        study.claim("C3", kind="constant", text="It does not change.", a={}, over={factor: levels}, tolerance=0.1,
                    **common)  # fmt: skip
        study.claim("C4", kind="later", text="Nothing yet.", reason="it needs more", source="Table 3")
        study.claim("C5-{n}", kind="less", text="Fewer with {n}.", each={"n": ["a", "b"]},
                    a={factor: levels[1]}, b={factor: levels[0]}, **common)  # fmt: skip
        study.claim("C6", kind="greater", text="More.", clock="wall", reason="a CPU does it", a={factor: levels[0]},
                    b={factor: levels[1]}, **common)  # fmt: skip
        study.claim("C7", kind="mean", text="On the whole.", of=["C8", "C9"], expected=0, tolerance=1, source="Table 4")
        for name in ("C8", "C9"):
            study.claim(name, kind="gain", text="A gain.", a={factor: levels[0]}, b={factor: levels[1]}, expected=0,
                        tolerance=0.1, **common)  # fmt: skip
        study.set(headline=["C1"], summary={"text": "Mostly: {C1.measured}.", "presumes": {"C1": "holds"}})

    def _ruleless(self) -> list[str]:
        """The directions of links into which a host sends and which have no rules for single packets."""
        found = []
        for name, link in self._net.links.items():
            rules = any(link.has(key) for key in ("drop", "duplicate", "delay")) or "lan" in link.ends
            sides = [
                side for side, end in zip(("forward", "backward"), link.ends, strict=True) if end in self._net.hosts
            ]
            found += [] if rules else [f"{name}.{side}" for side in sides]
        return found

    def _schedule(self, directions: list[str]) -> None:
        """Single packets of the cell that are lost, doubled or overtaken, one a cell; the first two."""
        draw = self._draw
        of: Keys = {"first": draw.whole(1, 2), "of": draw.some(directions, 2)}
        if draw.maybe(0.6):
            of["from"] = "1 ms"
        if draw.maybe(0.6):
            of["together"] = 1
        self._study.factor("schedule", **{draw.of(("drops", "duplicates", "reorders")): of})
