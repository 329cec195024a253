"""`netwarp plan --steps`: the commands it prints build, typed into a shell, the network that netwarp builds."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from netwarp.core.executables import find_executable
from netwarp.core.types import Cell
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.testbed.layout import Layout, make_layout
from netwarp.testbed.netem import PROBABILITY_ONE, Netem
from netwarp.testbed.shaping import ExpectedQdisc, Shaping
from support import cell_init_kit as kit
from support.chain_kit import HOSTS, Checkout, all_completed, written

RICH = (
    HOSTS.format(name="rich", duration="10 s")
    + """
[link.p1]
between = ["a", "b"]
mtu = "1400 B"
rate = "5 Mbit/s"
queue = "30 packets"
[link.p1.forward]
one_way_delay = "12.345678 ms"
jitter = "1 ms"
jitter_correlation = "25 %"
distribution = "normal"
loss = "1.5 %"
loss_correlation = "30 %"
duplicate = "0.1 %"
corrupt = "0.2 %"
[link.p1.backward]
one_way_delay = "7 ms"
reorder = "2 %"
burst_loss = { p = "1 %", r = "20 %", bad_loss = "90 %", good_loss = "0.5 %" }
layer = "ethernet"
[link]
p2 = { between = ["a", "b"], one_way_delay = "1 us", rate = "10 Mbit/s", queue = "1000 packets" }
[flow]
bulk = { from = "a", to = "b", protocol = "sctp", paths = ["p1", "p2"] }
[event]
cut = { action = "cut", link = "p1", at = "1 s", for = "1 s" }
hole = { action = "blackhole", link = "p1", at = "3 s", for = "1 s" }
down = { action = "link", link = "p1", end = { hop = "b" }, at = "5 s", for = "1 s" }
slower = { action = "change", link = "p1", at = "7 s", rate = "100 kbit/s" }
end = { action = "blackhole", link = "p2", at = "8 s" }
[node.b.sysctl]
"net.sctp.rto_min" = "200"
"""
)
DUMBBELL = """
format = 1
name = "dumbbell"
title = "Routers"
duration = "10 s"
shape = { kind = "dumbbell", pairs = 2 }
[link]
bottleneck = { rate = "40 Gbit/s", queue = "1 bdp", rtt = "40 ms" }
[flow]
one = { from = "a1", to = "b1", protocol = "tcp", paths = ["a1"] }
two = { from = "a2", to = "b2", protocol = "sctp", paths = ["a2"] }
"""
IPV6 = DUMBBELL.replace("[link]\n", '[default.link]\nfamily = "ipv6"\n[link]\n')
CASES = {"every option and event": RICH, "dumbbell": DUMBBELL, "dumbbell of IPv6": IPV6}

FEATURES = (
    "tcp-segmentation-offload", "generic-segmentation-offload", "generic-receive-offload", "tx-checksumming",
    "rx-checksumming", "scatter-gather",
)  # fmt: skip

INIT = """#!/bin/sh
mount -t proc none /proc && mount -t sysfs none /sys && mount -t tmpfs none /run && mount -t tmpfs none /tmp
mkdir /run/cell && mount -t hostfs -o /proc/self/cwd none /run/cell && cd /run/cell || exit 1
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
. ./commands > /dev/null 2> refused
sleep 2 # of virtual time: link watch tells of carriers once a second
while read -r ns; do
	for what in "ip -j -d link" "ip -j addr" "ip -j route" "ip -j -6 route" "ip -j neigh" "tc -j qdisc" \\
		"sysctl $(cat sysctls)"; do
		ip netns exec "$ns" $what > "found/$ns ${what%% net.*}" 2> /dev/null
	done
	ip netns exec "$ns" ls /sys/class/net | while read -r name; do
		ip netns exec "$ns" ethtool -k "$name" > "found/$ns $name offloads"
	done
done < namespaces
exec ./off
"""
OFF = "#include <sys/reboot.h>\nint main(void) { return reboot(RB_POWER_OFF); }\n"


def tc_knows_seeds() -> bool:
    """iproute2 6.6 and later do; netem itself takes a seed from Linux 6.6 on."""
    tc = find_executable("tc")
    assert tc is not None, "no tc(8) on this machine: `make test` installs iproute2"
    told = subprocess.run(
        [tc, "qdisc", "add", "dev", "lo", "netem", "help"], capture_output=True, text=True, check=False
    )
    return "seed" in told.stderr


class Built:
    """The network as the commands built it."""

    def __init__(self, checkout: Checkout, text: str, place: Path) -> None:
        spec = written(place / "spec.toml", text)
        printed = checkout.run("plan", spec, "--steps", cwd=place).ok().out
        (cell,) = make_plan(load_spec(spec), seed=None, repetitions=None, only=[], where=[]).cells
        self.cell: Cell = cell
        self.layout: Layout = make_layout(cell)
        self.shaping = Shaping(cell, self.layout, 0)
        self.commands = [line for line in printed.splitlines()[1:] if line and not line.startswith("#")]
        apps = [line for line in self.commands if line.endswith(" &")]
        assert len(apps) == 2 * len(cell.flows)
        lines = [line for line in self.commands if line not in apps]
        if not tc_knows_seeds():
            lines = [re.sub(r" seed \d+$", "", line) for line in lines]
        self.place = place / "guest"
        self.place.mkdir()
        (self.place / "found").mkdir()
        said = [f"{line} || echo {shlex.quote(line)} >&2" for line in lines]
        (self.place / "commands").write_text("\n".join(said) + "\n")
        (self.place / "namespaces").write_text("\n".join(self.layout.namespaces) + "\n")
        (self.place / "sysctls").write_text(" ".join({key: None for keys in self.sysctls().values() for key in keys}))
        tools = find_executable("ip"), find_executable("tc"), find_executable("ethtool"), find_executable("sysctl")
        assert all(tools), f"ip, tc, ethtool, sysctl: {tools}; `make test` installs them"
        (self.place / "init").write_text(INIT)
        (self.place / "init").chmod(0o755)
        source = written(place / "off.c", OFF)
        subprocess.run(["cc", "-static", "-o", str(self.place / "off"), str(source)], check=True)
        command = kit.guest_command(checkout.kernel, self.place)
        done = subprocess.run(command, timeout=kit.WALL_LIMIT_S, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (done, (self.place / "console.txt").read_text()[-2000:])
        self.lines = lines

    def sysctls(self) -> dict[str, dict[str, str]]:
        """What is asked for, by namespace."""
        own = {node.name: node.sysctls for node in self.cell.nodes}
        over_ipv6 = self.cell.links[0].family == "ipv6"
        forwards = "net.ipv6.conf.all.forwarding" if over_ipv6 else "net.ipv4.ip_forward"
        forward = {name: {forwards: "1"} for name in self.layout.routers}
        ipv6 = "net.ipv6.conf.default.disable_ipv6" if over_ipv6 else "net.ipv6.conf.all.disable_ipv6"
        return {name: {ipv6: "1", **forward.get(name, {}), **own.get(name, {})} for name in self.layout.namespaces}

    def found(self, namespace: str, what: str) -> list[dict[str, Any]]:
        """One answer of ip or tc."""
        answer = (self.place / "found" / f"{namespace} {what}").read_text()
        entries: list[dict[str, Any]] = json.loads(answer or "[]")
        return entries

    def text(self, namespace: str, what: str) -> str:
        """One answer of another tool."""
        return (self.place / "found" / f"{namespace} {what}").read_text()


@pytest.fixture(scope="module", params=CASES)
def built(request: pytest.FixtureRequest, checkout: Checkout, tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Each network."""
    return Built(checkout, CASES[request.param], tmp_path_factory.mktemp("steps"))


def test_every_command_is_taken(built: Built) -> None:
    assert (built.place / "refused").read_text() == ""
    assert len(built.lines) > 40


def test_links_addresses_routes_neighbours(built: Built) -> None:
    for number, name in enumerate(built.layout.namespaces):
        own = [interface for interface in built.layout.interfaces() if interface.namespace == number]
        links = {entry["ifindex"]: entry for entry in built.found(name, "ip -j -d link")}
        lines = [line.queue.ifindex for line in built.shaping.lines.values() if line.queue.namespace == number]
        pairs = {ifindex + end for ifindex in lines for end in (0, 1)}
        assert set(links) == {1} | {interface.ifindex for interface in own} | pairs
        assert "UP" in links[1]["flags"]
        for interface in own:
            link = links[interface.ifindex]
            got = (link["ifname"], link["mtu"], link["address"], link["operstate"], link["linkinfo"]["info_kind"])
            assert got == (interface.name, interface.mtu_bytes, interface.mac, "UP", "veth")
        addresses = {
            (entry["ifname"], one["local"], one["prefixlen"])
            for entry in built.found(name, "ip -j addr")
            for one in entry["addr_info"]
            if entry["ifname"] != "lo"
        }
        assert addresses == {(interface.name, interface.ip, interface.ip_family.subnet_length) for interface in own}
        shown = [*built.found(name, "ip -j route"), *built.found(name, "ip -j -6 route")]
        routes = {(e["dst"], e["gateway"], e["dev"]) for e in shown if "gateway" in e}
        assert routes == {
            (f"{r.subnet}/{r.prefix_length}", r.gateway, r.interface.name)
            for r in built.layout.routes
            if r.node == name
        }
        neighbours = {(e["dev"], e["dst"], e["lladdr"], *e["state"]) for e in built.found(name, "ip -j neigh")}
        assert neighbours == {(i.name, i.peer_ip, i.peer_mac, "PERMANENT") for i in own}


def test_sysctls_and_offloads(built: Built) -> None:
    for number, name in enumerate(built.layout.namespaces):
        values = dict(line.split(" = ", 1) for line in built.text(name, "sysctl").splitlines())
        wanted = built.sysctls()[name]
        assert {key: " ".join(values[key].split()) for key in wanted} == wanted
        for interface in built.layout.interfaces():
            if interface.namespace == number:
                features = built.text(name, f"{interface.name} offloads")
                for feature in FEATURES:
                    assert f"{feature}: off" in features, (name, interface.name, feature)


def test_qdiscs(built: Built) -> None:
    """Every netem there is, with each of its numbers, as the testbed expects it after the whole timeline."""
    for event in built.cell.timeline:
        built.shaping.apply(event)
    seen = 0
    for number, name in enumerate(built.layout.namespaces):
        found = {
            (entry["dev"], entry["handle"]): entry
            for entry in built.found(name, "tc -j qdisc")
            if entry["kind"] == "netem"
        }
        expected = [want for want in built.shaping.expected(number) if isinstance(want.stage, Netem)]
        assert set(found) == {(want.device.name, f"{want.handle:x}:") for want in expected}
        for want in expected:
            compare(want, found[want.device.name, f"{want.handle:x}:"])
            seen += 1
    assert seen >= 2


def compare(want: ExpectedQdisc, entry: dict[str, Any]) -> None:
    """One qdisc of `tc -j` against the Netem it must be."""
    netem, options = want.stage, entry["options"]
    assert entry.get("root", False) == (want.parent is None)
    assert entry.get("parent") == (None if want.parent is None else f"{want.parent:x}:1")
    assert options["limit"] == netem.limit_packets
    delay = options.get("delay", {"delay": 0, "jitter": 0, "correlation": 0})
    for key, ns in (("delay", netem.latency_ns), ("jitter", netem.jitter_ns)):
        assert delay[key] == pytest.approx(ns / 1e9, abs=2e-6)  # tc counts in microseconds, and cuts off
    if netem.jitter_ns:
        assert near([delay["correlation"]], ratios([netem.delay_correlation]))
    loss = options.get("loss-random", {"loss": 0, "correlation": 0})
    assert near([loss["loss"], loss["correlation"]], ratios([netem.loss, netem.loss_correlation]))
    model = options.get("loss-gemodel")
    assert (model is None) == (netem.gilbert_elliott is None)
    if netem.gilbert_elliott is not None:
        p, r, h, k1 = netem.gilbert_elliott
        assert near([model[key] for key in ("p", "r", "1-h", "1-k")], ratios([p, r, PROBABILITY_ONE - h, k1]))
    for key, value in (("duplicate", netem.duplicate), ("corrupt", netem.corrupt), ("reorder", netem.reorder)):
        assert near([options.get(key, {key: 0})[key]], ratios([value])), key
    assert options["gap"] == netem.gap
    rate = options.get("rate", {"rate": 0, "packetoverhead": 0})
    assert (rate["rate"], rate["packetoverhead"]) == (netem.rate_byte_s, netem.packet_overhead_bytes)
    if "seed" in options:
        assert options["seed"] == netem.seed


def near(got: Sequence[float], wanted: Sequence[float]) -> bool:
    """Equal as far as tc prints numbers: six digits."""
    return got == pytest.approx(wanted, rel=2e-6, abs=1e-12)


def ratios(values: Sequence[int]) -> list[float]:
    """The kernel's probabilities as ratios."""
    return [value / PROBABILITY_ONE for value in values]


def test_every_option_of_netem_is_compared() -> None:
    """No field of a netem is left out of the comparison above."""
    compared = {
        "limit_packets", "latency_ns", "jitter_ns", "delay_correlation", "loss", "loss_correlation", "gilbert_elliott",
        "duplicate", "corrupt", "reorder", "gap", "rate_byte_s", "packet_overhead_bytes", "seed",
    }  # fmt: skip
    assert set(Netem.__struct_fields__) - compared == {
        "distribution",  # a table that no kernel ever dumps
        "size_overhead_bytes",  # only with a queue in bytes
        "slots",  # not beside a rate that changes: test_token_buckets.py
    }


def test_netwarp_builds_it_too(checkout: Checkout, tmp_path: Path) -> None:
    """The same cell for real: every option of a shape, read back as asked before and after each event."""
    run = tmp_path / "x"
    spec = written(tmp_path / "spec.toml", RICH)
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    all_completed(run)
    (path,) = run.glob("cells/*/environment.json")
    checks = [check for check in json.loads(path.read_bytes())["checks"] if check["check"].startswith("qdisc ")]
    assert all(check["ok"] for check in checks)
    for words in ("gilbert_elliott=(", "distribution='normal'", "distribution='overtake(82)'"):
        assert sum(words in check["detail"] for check in checks) >= 4, words
