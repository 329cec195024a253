"""`netwarp shell`: a command on a node of a cell's network, in namespaces of a guest, which has netem."""

from __future__ import annotations

from pathlib import Path

from netwarp.plan.kinds import sctp, tcp
from support.cell_init_kit import MS, read_pcap
from support.chain_kit import STANDS, Checkout, in_a_guest, two_paths, written
from support.run_files import records


def test_a_command_on_a_node_with_captures(kernel: Path, checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", STANDS)
    # from b, over the other node's name, to itself and back: both names lead to the right place
    command = ["ip", "netns", "exec", "a", "ping", "-n", "-c", "3", "-i", "0.2", "10.0.0.129"]
    done = in_a_guest(
        kernel, checkout, tmp_path / "guest", "shell", str(spec), "--node", "b", "--out", "/run/cell/kept", "--exec",
        *command,
    )  # fmt: skip
    said, errors = ((done.directory / f"netwarp.{name}").read_text() for name in ("out", "err"))
    assert done.records("exit")[0]["status"] == 0, said + errors
    assert "3 packets transmitted, 3 received" in said
    assert "captures are kept in /run/cell/kept/capture" in errors
    kept = done.directory / "kept"
    ends = {record["file"]: record for record in records(kept / "init.ndjson") if record["record"] == "capture"}
    for node in ("a", "b"):
        capture = kept / "capture" / f"{node}-p1.pcap"
        assert len(read_pcap(capture)) == 6, "three requests and three replies"
        assert ends[f"capture/{node}-p1.pcap"]["bytes"] == capture.stat().st_size
        assert ends[f"capture/{node}-p1.pcap"]["dropped"] == 0
    times = [packet.t_ns for packet in read_pcap(kept / "capture" / "a-p1.pcap")]
    assert times[1] - times[0] >= 40 * MS, "there and back over the configured delay"
    assert not (kept / "bin").exists() and not (kept / "init").exists()


def test_the_status_is_the_commands(kernel: Path, checkout: Checkout, tmp_path: Path) -> None:
    spec = written(tmp_path / "spec.toml", STANDS)
    done = in_a_guest(
        kernel, checkout, tmp_path / "guest", "shell", str(spec), "--out", "/run/cell/kept", "--exec",
        "ping", "-c", "1", "-W", "1", "10.9.9.9",
    )  # fmt: skip
    assert done.records("exit")[0]["status"] == 2, (done.directory / "netwarp.err").read_text()


def test_the_buffers_of_a_cell_are_those_that_plans_are_judged_by(checkout: Checkout, tmp_path: Path) -> None:
    """Another kernel could give SCTP another, and the notes of plan/notes.py would be wrong."""
    spec = written(tmp_path / "spec.toml", two_paths())
    paths = [f"/proc/sys/net/{name}" for name in ("ipv4/tcp_rmem", "ipv4/tcp_wmem", "core/rmem_default")]
    done = checkout.run("shell", spec, "--out", tmp_path / "kept", "--exec", "cat", *paths, cwd=tmp_path).ok()
    *buffers, default = (" ".join(line.split()) for line in done.out.splitlines())
    assert buffers == list(tcp.BUFFERS.values())
    assert int(default) == 2 * sctp.WINDOW_BYTES


def test_only_the_largest_buffers_of_tcp_are_not_the_kernels_own(checkout: Checkout, tmp_path: Path) -> None:
    """A cell of SCTP alone shows those of the kernel."""
    spec = written(tmp_path / "spec.toml", two_paths())
    paths = [f"/proc/sys/net/ipv4/{name}" for name in ("tcp_rmem", "tcp_wmem")]
    sctp = ("--where", "protocol=sctp", "--out", tmp_path / "kept", "--exec")
    done = checkout.run("shell", spec, *sctp, "cat", *paths, cwd=tmp_path).ok()
    own = [line.split() for line in done.out.splitlines()]
    assert [values[:2] for values in own] == [value.split()[:2] for value in tcp.BUFFERS.values()]
    assert all(int(values[2]) < 2_100_000 for values in own), "of its memory"
