"""Losses by the packet on the wall clock: exact in a guest and in root's namespaces; an ordinary user's say why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.types import Outcome
from support.chain_kit import Checkout, in_a_guest, in_time, python_in_a_guest
from support.chain_packets import way_of
from support.run_files import CellFiles, load_run
from support.specs import two_hosts

SPEC = two_hosts(
    'name = "rules"\nseed = 5\nduration = "4 s"',
    'one_way_delay = "20 ms"',
    """
protocol = "tcp"
[flow.x]
bytes = "60 kB"
[link.p1.forward]
drop = { packet = [11], data = [1] }
duplicate = [14]
bit_errors = "1e-6"
[link.p1.backward]
drop = { syn_ack = [1] }
""",
)
IN_A_USER_NAMESPACE = """
import os, sys
files = os.stat("/run/cell")
os.setgid(files.st_gid)
os.setuid(files.st_uid)
os.execv("/usr/bin/unshare", ["unshare", "--user", "--map-root-user", sys.executable, "-m", "netwarp", *sys.argv[1:]])
"""
"""Root there and of nothing else, as in many containers. It owns the files: it has no other right to read them."""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC)
    return path


def assert_exact(cell: CellFiles) -> None:
    """Against both captures: what the rules name is lost or comes twice, nothing else; the programs counted that."""
    way = way_of(cell, "a")
    came, lost = [frame.identity for frame in way.arrived], way.lost
    with_data = [number for number, frame in enumerate(way.sent, 1) if frame.data_bytes]
    by_rule = {11, with_data[0]}
    on_the_way = {number for number in lost - by_rule if number > len(way.sent) - 3}  # as the cell ended
    assert by_rule <= lost
    assert len(lost - by_rule - on_the_way) == way.counts["bit_errors"]
    assert came.count(way.sent[13].identity) == 2
    assert (way.counts["dropped"], way.counts["duplicated"]) == (2, 1)
    way = way_of(cell, "b")
    lost = way.lost
    assert way.sent[0].flags == 0x12
    assert 1 in lost
    assert all(number > len(way.sent) - 3 for number in lost - {1})
    assert way.counts["dropped"] == 1


def test_in_a_guest_on_the_wall_clock(checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    def play(place: Path) -> CellFiles:
        done = checkout.run("run", spec, "--backend", "guest", "--no-report", "--out", place, cwd=tmp_path)
        assert done.status in (0, 1), done
        return load_run(place).cell()

    assert_exact(in_time(play, tmp_path))


def test_in_namespaces_of_root(kernel: Path, checkout: Checkout, spec: Path, tmp_path: Path) -> None:
    """This machine's kernel may lack netem: a guest is the machine, and netwarp its root."""

    def play(place: Path) -> CellFiles:
        command = ("run", str(spec), "--backend", "netns", "--no-report", "--out", "/run/cell/run")
        done = in_a_guest(kernel, checkout, place, *command)
        said = (done.directory / "netwarp.out").read_text() + (done.directory / "netwarp.err").read_text()
        assert (done.directory / "run").is_dir(), said
        return load_run(done.directory / "run").cell()

    assert_exact(in_time(play, tmp_path))


def test_a_root_of_a_user_namespace_alone_is_told_why_not(
    kernel: Path, checkout: Checkout, spec: Path, tmp_path: Path
) -> None:
    done = python_in_a_guest(
        kernel, checkout, tmp_path / "guest", "-c", IN_A_USER_NAMESPACE, "run", str(spec), "--backend", "netns",
        "--no-report", "--out", "/run/cell/run",
    )  # fmt: skip
    said = (done.directory / "netwarp.out").read_text() + (done.directory / "netwarp.err").read_text()
    (cell,) = load_run(done.directory / "run").cells.values()
    assert cell.outcome.outcome is Outcome.UNSUPPORTED, said
    assert "need eBPF, which only this machine's root may load" in cell.outcome.reason
    assert "use --backend virtual or guest" in cell.outcome.reason
    assert not list(cell.root.glob("capture/*"))
