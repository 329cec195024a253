"""Hosts on one switch, one of them with two interfaces in its subnet: packets as a segment carries them."""

from __future__ import annotations

from pathlib import Path

import netwarp
import pytest
from netwarp.captures import read_captures

LAN = """\
format = 1
name = "lan"
duration = "20 s"
[node]
a = {{}}
b = {{ sysctl = {{ "net.ipv4.conf.all.rp_filter" = "0", "net.ipv4.conf.default.rp_filter" = "0" }} }}
lan = {{ kind = "switch" }}
[default.link]
rate = "10 Mbit/s"
queue = "50 packets"
one_way_delay = "1 ms"
[link]
u = {{ between = ["a", "lan"] }}
{links}
[flow.f]
from = "a"
to = "b"
protocol = "sctp"
paths = {paths}
bytes = "200 kB"
"""
IN_ORDER = 'd1 = { between = ["lan", "b"] }\nd2 = { between = ["lan", "b"] }'
OTHER_FIRST = 'd2 = { between = ["lan", "b"] }\nd1 = { between = ["lan", "b"] }'
BY_FIRST = '[{ sender = "u", receiver = "d1", back = "d1" }, { sender = "u", receiver = "d2", back = "d1" }]'
BY_OTHER = '[{ sender = "u", receiver = "d1", back = "d2" }, { sender = "u", receiver = "d2", back = "d2" }]'


def run_of(folder: Path, links: str, paths: str, backend: str = "virtual", family: str = "ipv4") -> netwarp.Run:
    spec = folder / "spec.toml"
    spec.write_text(LAN.format(links=links, paths=paths))
    return netwarp.run(spec, out=folder / "run", backend=backend, sets={"default.link.family": family})


@pytest.mark.parametrize(
    ("links", "paths", "share"),
    [
        (
            IN_ORDER,
            BY_FIRST,
            0.0,
        ),
        (OTHER_FIRST, BY_OTHER, 1.0),  # by the kernel's own routes: the other interface came up first
        (IN_ORDER, BY_OTHER, 1.0),  # by a route to the sender's address
    ],
)
def test_sacks_leave_by_the_interface_that_the_spec_says(tmp_path: Path, links: str, paths: str, share: float) -> None:
    run = run_of(tmp_path, links, paths)
    assert run.complete, run.outcomes
    numbers = {row["metric"]: row["value"] for row in run.table("measurements") if row["flow"] == "f"}
    assert numbers["sacks_other_path_ratio"] == share
    assert numbers["payload_bytes"] == 200_000
    assert (
        9.4e6 < float(str(numbers["goodput_bit_s"])) < 9.7e6
    )  # 1452 B of 1500 B at 10 Mbit/s, without slow start's pauses


def test_so_do_those_of_ipv6(tmp_path: Path) -> None:
    run = run_of(tmp_path, IN_ORDER, BY_OTHER, family="ipv6")
    assert run.complete, run.outcomes
    numbers = {row["metric"]: row["value"] for row in run.table("measurements") if row["flow"] == "f"}
    assert (numbers["sacks_other_path_ratio"], numbers["payload_bytes"]) == (1.0, 200_000)


def test_nothing_on_a_segment_counts_as_an_ip_hop_or_is_flooded(tmp_path: Path) -> None:
    run = run_of(tmp_path, OTHER_FIRST, BY_OTHER)
    captures = {
        path.name.split(".pcap")[0]: path for path in run.directory.cell(run.plan.cells[0].id).capture.iterdir()
    }
    at = {name: read_captures([path], ("packets", "identities")) for name, path in captures.items()}
    assert all(set(capture.identities["hop_limit"].tolist()) == {64} for capture in at.values())
    assert len(at["b-d2"].packets) < len(at["b-d1"].packets)  # SACKs, one for two packets, and no copy of the data
