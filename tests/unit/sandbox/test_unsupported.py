"""Cells that a back end cannot run are UNSUPPORTED, with the remedy; nothing is started."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import pytest
from netwarp.core.link_types import LinkImpairment
from netwarp.core.types import Cell, Outcome
from netwarp.sandbox.netns import NetnsBackend
from netwarp.sandbox.virtual import newer_needed
from netwarp.store.run_dir import RunDir
from support.cells import two_path_cell
from support.checkout import BUILD
from support.specs import BASE, cell_of, replaced


def traced() -> Cell:
    cell = two_path_cell()
    flow = msgspec.structs.replace(cell.flows[0], sender_options={"tracepoints": True})
    return msgspec.structs.replace(cell, flows=(flow,))


def test_tracepoints_in_namespaces_are_unsupported_with_the_remedy(tmp_path: Path) -> None:
    run = RunDir(tmp_path / "run")
    run.partial.mkdir(parents=True)
    outcome = NetnsBackend(BUILD).run_cell(traced(), run)
    assert outcome.outcome is Outcome.UNSUPPORTED
    assert "flow ftp: tracepoints" in outcome.reason
    assert "--backend virtual or guest" in outcome.reason
    assert run.cell(traced().id).read_outcome() == outcome
    assert not run.cell(traced().id).init_log.exists()


@pytest.mark.parametrize("absent", ["bin/netns-exec", "bin/cell-init"])
def test_a_program_that_is_not_built_is_a_problem_with_its_remedy(tmp_path: Path, absent: str) -> None:
    for kind in ("bin", "lib"):
        (tmp_path / kind).mkdir()
        for file in (BUILD / kind).iterdir():
            (tmp_path / kind / file.name).symlink_to(file)
    (tmp_path / absent).unlink()
    (problem,) = NetnsBackend(tmp_path).check()
    assert (problem.what, problem.remedy) == ("the programs are not built", "make setup")


def with_packet_program() -> Cell:
    cell = two_path_cell()
    link = msgspec.structs.replace(cell.links[0], forward=LinkImpairment(bit_error_ratio=1e-5))
    changed: Cell = msgspec.structs.replace(cell, links=(link, *cell.links[1:]))
    return changed


def refused(send: Connection) -> None:
    """In a child process that is root no longer, if it was."""
    if os.geteuid() == 0:
        os.setuid(65534)
    send.send(NetnsBackend(BUILD).refuses(with_packet_program()))


def test_packet_programs_in_an_ordinary_users_namespaces_are_unsupported() -> None:
    """tests/guest/measure/test_packet_rules_wall_clock.py: of root they are not."""
    fork = multiprocessing.get_context("fork")
    receive, send = fork.Pipe(duplex=False)
    child = fork.Process(target=refused, args=(send,))
    child.start()
    reason = receive.recv()
    child.join()
    assert "need eBPF, which only this machine's root may load" in reason
    assert "use --backend virtual or guest" in reason


def test_without_tracepoints_nothing_is_refused() -> None:
    assert NetnsBackend(BUILD).refuses(two_path_cell()) == ""


@pytest.mark.parametrize("event", ["", '[event.e]\naction = "change"\nlink = "p1"\nat = "1 s"\n'])
def test_an_aqm_that_only_newer_kernels_have_is_found_in_events_too(event: str) -> None:
    aqm = 'aqm = { kind = "dualpi2" }\n'
    text = BASE + event + aqm if event else replaced('rate = "1 Mbit/s"\n', f'rate = "1 Mbit/s"\n{aqm}')
    cell = cell_of(text)
    assert newer_needed(cell, (6, 12)) == "link p1 has aqm dualpi2"
    assert not newer_needed(cell, (6, 17))
