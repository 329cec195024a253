"""Cells of IPv6, and of both families: complete, with nobody's packets but the flows' own, equal twice; through faults
(an address that the kernel flushed is back), path MTU discovery with its black hole. tshark names the packets.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import netwarp
import pytest
import zstandard
from netwarp.core.executables import find_executable
from support.packet_difference import cell_hashes

SPEC = """\
format = 1
name = "ipv6"
duration = "9 s"
captures = "all"
[default.link]
family = "ipv6"
rate = "1 Mbit/s"
queue = "50 packets"
one_way_delay = "20 ms"
[node]
a = {}
b = {}
r = { kind = "router" }
q = { kind = "router", only = { case = ["pmtu", "hole"] } }
[link]
p1.between = ["a", "b"]
p2.between = ["a", "b"]
up = { between = ["a", "r"], only = { case = ["pmtu", "hole"] } }
middle = { between = ["r", "q"], mtu = "1280 B", only = { case = ["pmtu", "hole"] } }
down = { between = ["q", "b"], only = { case = ["pmtu", "hole"] } }
idle = { between = ["a", "r"], unless = { case = ["pmtu", "hole"] } }
[flow.bulk]
from = "a"
to = "b"
protocol = "tcp"
paths = ["p1"]
stop = "8 s"
[event]
fault.link = "p1"
fault.action = "link"
fault.end = "b"
fault.at = "1.5 s"
fault.for = "2.5 s"
fault.unless.case = ["pmtu", "hole", "kinds", "chunks"]
hole = { link = "up", action = "blackhole", longer_than = "1280 B", at = "0 s", only = { case = "hole" } }
[factor.case]
levels = ["tcp", "sctp", "mptcp", "sctp46", "sctp64", "mptcp46", "mptcp64", "pmtu", "hole", "kinds", "chunks"]
level.sctp = { flow.bulk = { protocol = "sctp", paths = ["p1", "p2"] } }
level.sctp46 = { link.p1.family = "ipv4", flow.bulk = { protocol = "sctp", paths = ["p1", "p2"] } }
level.sctp64 = { link.p2.family = "ipv4", flow.bulk = { protocol = "sctp", paths = ["p1", "p2"] } }
level.mptcp = { flow.bulk = { protocol = "mptcp", paths = ["p1", "p2"] } }
level.mptcp46 = { link.p1.family = "ipv4", flow.bulk = { protocol = "mptcp", paths = ["p1", "p2"] } }
level.mptcp64 = { link.p2.family = "ipv4", flow.bulk = { protocol = "mptcp", paths = ["p1", "p2"] } }
level.kinds.link.p1.forward = { drop = { syn = [1], data = [3] }, duplicate = { data = [7] } }
level.chunks.flow.bulk.protocol = "sctp"
level.chunks.link.p1 = { forward.drop = { data = [3] }, backward.drop = { init_ack = [1], sack = [1] } }
[factor.case.level.pmtu.flow.bulk]
paths = [{ sender = "up", receiver = "down" }]
[factor.case.level.hole]
flow.bulk.paths = [{ sender = "up", receiver = "down" }]
[experiment.main]
factors = ["case"]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> netwarp.Run:
    return run_in(tmp_path_factory.mktemp("ipv6"))


def run_in(folder: Path, **more: Any) -> netwarp.Run:
    (folder / "spec.toml").write_text(SPEC)
    return netwarp.run(folder / "spec.toml", out=folder / "run", backend="virtual", **more)


def cells(run: netwarp.Run) -> dict[str, Path]:
    """Case -> the directory of its cell."""
    return {str(row["case"]): run.directory.cell(str(row["cell_id"])).root for row in run.table("cells")}


def numbers(run: netwarp.Run, case: str) -> dict[str, Any]:
    name = cells(run)[case].name
    return {str(row["metric"]): row["value"] for row in run.table("measurements") if row["cell_id"] == name}


def seen(run: netwarp.Run, case: str, link: str, what: str, field: str = "frame.number", node: str = "a") -> list[str]:
    """One field of a link's packets that tshark's filter lets pass."""
    (capture,) = (cells(run)[case] / "capture").glob(f"{node}-{link}.pcap*")
    raw = capture.read_bytes()
    plain = zstandard.ZstdDecompressor().decompressobj().decompress(raw) if capture.suffix == ".zst" else raw
    tool = str(find_executable("tshark"))
    done = subprocess.run(
        [tool, "-r", "-", "-Y", what, "-T", "fields", "-e", field], input=plain, stdout=subprocess.PIPE, check=True
    )
    return done.stdout.decode().split()


def test_every_cell_is_complete(run: netwarp.Run) -> None:
    assert run.complete, run.table("cells")


def test_no_packet_is_the_kernels_own(run: netwarp.Run) -> None:
    """Neighbour and router discovery, listeners' reports (RFC 4861, RFC 3810): none, on any link of any cell."""
    for case, folder in cells(run).items():
        for capture in (folder / "capture").iterdir():
            node, link = capture.name.split(".pcap")[0].split("-")
            found = seen(run, case, link, "icmpv6.type >= 130 or ipv6.dst == ff00::/8 or arp", node=node)
            assert found == [], (case, node, link)


def test_paths_of_both_families(run: netwarp.Run) -> None:
    for case in ("sctp46", "sctp64", "mptcp46", "mptcp64"):
        for link, version in zip(("p1", "p2"), case[-2:], strict=True):
            other = {"4": "6", "6": "4"}[version]
            assert len(seen(run, case, link, f"ip.version == {version}")) > 50
            assert seen(run, case, link, f"ip.version == {other}") == []
        assert numbers(run, case).get("paths_used", 2) == 2  # of MPTCP


def test_an_interface_that_comes_back_has_its_address(run: netwarp.Run) -> None:
    """b's own interface is down from 1.5 s to 4 s, and its address gone. Data are back at it afterwards (TCP in its own
    time: it has one path); over two paths they go on meanwhile.
    """
    assert numbers(run, "tcp")["recovery_time_s"] < 3
    for case in ("sctp", "sctp46", "sctp64"):
        assert numbers(run, case)["first_arrival_other_path_s"] < 2.5


def test_a_router_says_packet_too_big_and_the_source_sends_less(run: netwarp.Run) -> None:
    """RFC 8201. Nobody fragments."""
    kinds = seen(run, "pmtu", "up", "icmpv6", "icmpv6.type")
    assert kinds
    assert set(kinds) == {"2"}
    assert set(seen(run, "pmtu", "up", "icmpv6.type == 2", "icmpv6.mtu")) == {"1280"}
    sizes = [int(size) for size in seen(run, "pmtu", "down", "tcp.len > 0", "ipv6.plen", node="b")]
    assert max(sizes) == 1240
    assert seen(run, "pmtu", "up", "ipv6.fraghdr") == []
    assert numbers(run, "pmtu")["goodput_bit_s"] > 500_000


def test_where_packet_too_big_is_lost_there_is_a_black_hole(run: netwarp.Run) -> None:
    assert seen(run, "hole", "up", "icmpv6") == []
    assert int(numbers(run, "hole")["payload_bytes"] or 0) == 0
    assert len(seen(run, "hole", "up", "tcp.len > 0")) >= 2  # sent again and again


def test_rules_by_kind_find_packets_of_ipv6(run: netwarp.Run) -> None:
    assert [len(seen(run, "kinds", "p1", "tcp.flags == 2", node=node)) for node in "ab"] == [2, 1]
    sent, came = (seen(run, "kinds", "p1", "tcp.len > 0", "tcp.seq", node=node) for node in "ab")
    assert came[:8] == [*sent[:2], *sent[3:7], sent[6], sent[7]]
    assert [len(seen(run, "chunks", "p1", "sctp.chunk_type == 2", node=node)) for node in "ba"] == [2, 1]
    sent, came = (seen(run, "chunks", "p1", "sctp.chunk_type == 0", "sctp.data_tsn", node=node) for node in "ab")
    assert came[:8] == [*sent[:2], *sent[3:9]]
    acknowledged = "sctp.sack_cumulative_tsn_ack"
    answered, heard = (seen(run, "chunks", "p1", "sctp.chunk_type == 3", acknowledged, node=node) for node in "ba")
    assert heard[:8] == answered[1:9]


def test_equal_cells_have_equal_captures(run: netwarp.Run, tmp_path: Path) -> None:
    again = run_in(tmp_path, where={"case": ["sctp46", "mptcp46"]})
    assert len(cells(again)) == 2
    for case, folder in cells(again).items():
        assert cell_hashes(folder) == cell_hashes(cells(run)[case])
