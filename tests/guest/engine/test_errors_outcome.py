"""Failures in a cell become its outcome, with the reason: panic, hang, deadline, apps, read-backs."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from netwarp.core.types import Cell, CellOutcome, Outcome
from netwarp.engine.execute import execute
from netwarp.experiment import load_spec
from netwarp.plan import make_plan
from netwarp.sandbox import VirtualBackend, sandbox
from netwarp.store.run_dir import RunDir
from support.chain_kit import HOSTS, Checkout, nothing_left, two_paths, written

STAND_IN = """
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int main(void)
{
	const char *mode = MODE;
	if (!strcmp(mode, "spin"))
		for (;;)
			;
	if (!strcmp(mode, "deaf"))
		signal(SIGTERM, SIG_IGN);
	if (!strcmp(mode, "crash"))
		raise(SIGSEGV);
	if (!strcmp(mode, "cannot") || !strcmp(mode, "fail")) {
		puts("{\\"record\\":\\"error\\",\\"message\\":\\"there is no such thing here\\"}");
		return strcmp(mode, "fail") ? 77 : 1;
	}
	for (;;)
		pause();
}
"""


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    """TCP for a second."""
    spec = written(tmp_path_factory.mktemp("spec") / "spec.toml", two_paths(duration="1 s"))
    return make_plan(load_spec(spec), seed=None, repetitions=None, only=[], where=[("protocol", "tcp")]).cells[0]


@dataclass
class Laboratory:
    """A back end whose programs can be replaced."""

    checkout: Checkout
    root: Path

    @property
    def apps(self) -> Path:
        """Its build/."""
        return self.root / "build"

    def replace(self, program: str, mode: str) -> None:
        """Another program in place of one of the apps, or of cell-init."""
        target = self.apps / "bin" / program
        source = written(self.root / "stand_in.c", STAND_IN)
        subprocess.run(["cc", "-static", f'-DMODE="{mode}"', "-o", str(target), str(source)], check=True)

    def outcome(self, cell: Cell) -> CellOutcome:
        """Run the cell as `netwarp run` would; asserts that nothing is left and that the outcome is on disk."""
        run = RunDir(self.root / "x")
        told: list[CellOutcome] = []
        backend = VirtualBackend(self.checkout.kernel, self.apps)
        execute([cell], backend, run, jobs=1, finished=lambda _, outcome: told.append(outcome))
        nothing_left(self.root, run=run.root)
        assert [run.cell(cell.id).read_outcome()] == told
        return told[0]


@pytest.fixture
def laboratory(checkout: Checkout, tmp_path: Path) -> Laboratory:
    """A copy of build/ to spoil."""
    shutil.copytree(checkout.root / "build", tmp_path / "build")
    return Laboratory(checkout, tmp_path)


def test_all_is_well(laboratory: Laboratory, cell: Cell) -> None:
    """What is spoilt below works as it is."""
    assert laboratory.outcome(cell).outcome is Outcome.COMPLETED


@pytest.mark.parametrize(
    ("init", "said"),
    [(b"no program at all\n", "Requested init /proc/self/cwd/init failed"), (None, "Attempted to kill init!")],
    ids=["cannot be executed", "exits at once"],
)
def test_panic(init: bytes | None, said: str, laboratory: Laboratory, cell: Cell) -> None:
    program = laboratory.apps / "bin" / "cell-init"
    program.write_bytes(init if init is not None else Path("/bin/true").read_bytes())
    found = laboratory.outcome(cell)
    assert found.outcome is Outcome.FAILED
    assert "the sandbox ended without an end record" in found.reason
    assert "Kernel panic - not syncing" in found.reason
    assert said in found.reason
    assert any("Kernel panic" in line for line in found.console_tail)
    assert found.virtual_s is None


@pytest.mark.parametrize(("program", "where"), [("cell-init", "before T0 + 1 s"), ("sender", "at T0 + 1 s")])
def test_a_program_that_computes_for_ever(
    program: str, where: str, laboratory: Laboratory, cell: Cell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that computes for ever: no virtual time passes, so no virtual deadline comes."""
    monkeypatch.setattr(sandbox, "STALL_WALL_S", 3.0)
    laboratory.replace(program, "spin")
    # a sender is started half a second before its flow
    flow = msgspec.structs.replace(cell.flows[0], start_ns=2_200_000_000, stop_ns=3_000_000_000)
    found = laboratory.outcome(msgspec.structs.replace(cell, flows=(flow,), duration_ns=3_000_000_000))
    assert found.outcome is Outcome.FAILED
    assert found.reason.startswith(f"the sandbox hung {where},")
    assert found.reason.endswith("no virtual second passed in 3 s")


def test_deadline(laboratory: Laboratory, cell: Cell) -> None:
    """A receiver that never listens: the set-up's virtual deadline ends the cell."""
    laboratory.replace("receiver", "wait")
    found = laboratory.outcome(cell)
    assert found.outcome is Outcome.TIMED_OUT
    assert found.reason
    assert any("cell-init:" in line for line in found.console_tail)


@pytest.mark.parametrize(
    ("program", "mode", "outcome", "said"),
    [
        ("sender", "deaf", Outcome.FAILED, "bulk.sender did not end and was killed after the grace period"),
        ("sender", "crash", Outcome.FAILED, "bulk.sender died of signal 11"),
        ("sender", "fail", Outcome.FAILED, "bulk.sender ended with status 1: there is no such thing here"),
        ("sender", "cannot", Outcome.UNSUPPORTED, "there is no such thing here"),
        ("receiver", "cannot", Outcome.UNSUPPORTED, "there is no such thing here"),
        ("receiver", "fail", Outcome.FAILED, "bulk.receiver: there is no such thing here"),
    ],
)
def test_app(program: str, mode: str, outcome: Outcome, said: str, laboratory: Laboratory, cell: Cell) -> None:
    laboratory.replace(program, mode)
    found = laboratory.outcome(cell)
    assert found.outcome is outcome, found
    assert said in found.reason
    assert found.virtual_s is not None
    assert found.virtual_s >= 0


def test_a_program_that_is_not_there(laboratory: Laboratory, cell: Cell) -> None:
    (laboratory.apps / "bin" / "receiver").unlink()
    found = laboratory.outcome(cell)
    assert found.outcome is Outcome.FAILED
    assert "receiver" in found.reason
    assert "No such file or directory" in found.reason


SYSCTLS = (
    HOSTS.format(name="sysctls", duration="1 s")
    + """
[link]
p1 = { between = ["a", "b"], rate = "2 Mbit/s", queue = "20 packets" }
[flow]
bulk = { from = "a", to = "b", protocol = "tcp", paths = ["p1"] }
[factor.case]
levels = ["good", "odd", "refused", "no_such_control"]
[factor.case.level.good]
node.a.sysctl = { "net.ipv4.tcp_ecn" = "1" }
[factor.case.level.odd]
node.a.sysctl = { "net.ipv4.tcp_ecn" = "01" }
[factor.case.level.refused]
node.a.sysctl = { "net.ipv4.tcp_retries2" = "100000" }
[factor.case.level.no_such_control]
flow.bulk.sender = { congestion = "perfect" }
[table]
goodput = { metric = "goodput_bit_s", rows = ["case"] }
"""
)
EXPECTED = {
    "good": ("COMPLETED", []),
    "odd": ("INVALID", ["sysctl net/ipv4/tcp_ecn in a", "asked 01, found 1"]),
    "refused": ("FAILED", ["net/ipv4/tcp_retries2", "Invalid argument", "steps.txt line "]),
    "no_such_control": ("UNSUPPORTED", ["perfect"]),
}


def test_killed_between_the_checks_and_the_outcome(checkout: Checkout, tmp_path: Path) -> None:
    """A check of the analysis had failed when netwarp was killed, a moment before it could say INVALID."""
    spec, run = written(tmp_path / "spec.toml", two_paths(duration="1 s")), tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    (path,) = run.glob("cells/tcp*/derived/checks.json")
    checks = json.loads(path.read_bytes())
    checks[0] |= {"ok": False, "detail": "3 packets dropped"}
    path.write_text(json.dumps(checks))
    done = checkout.run("run", spec, "--no-report", "--out", run, "--resume", cwd=tmp_path)
    assert done.status == 1, done
    table = (run / "tables" / "cells.csv").read_text()
    assert f"INVALID,{checks[0]['check']}: 3 packets dropped" in table
    assert {row[0][:5] for row in rows(run / "tables" / "measurements.csv")} == {"sctp_"}
    (judgement,) = run.glob("cells/tcp*/derived/judgement.json")
    assert json.loads(judgement.read_bytes())["outcome"] == "INVALID"


def rows(path: Path) -> Sequence[list[str]]:
    """Cells of a table that has no commas in quotes where this test looks."""
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


def test_only_what_completed_is_counted(checkout: Checkout, tmp_path: Path) -> None:
    """A value that reads back differently, one that the kernel does not have or take: nothing of it reaches a table."""
    spec = written(tmp_path / "spec.toml", SYSCTLS)
    done = checkout.run("run", spec, "--no-report", "--out", tmp_path / "x", cwd=tmp_path)
    assert done.status == 1, done
    table = (tmp_path / "x" / "tables" / "cells.csv").read_text().splitlines()[1:]
    for case, (outcome, said) in EXPECTED.items():
        (line,) = [line for line in table if line.endswith(f",{case}")]
        assert f",{outcome}," in line
        for part in said:
            assert part in line, (case, line)
            assert part in done.err
    measured = {row[0] for row in rows(tmp_path / "x" / "tables" / "measurements.csv")}
    assert len(measured) == 1
    assert next(iter(measured)).startswith("good_")


def test_a_sysctl_that_the_kernel_does_not_have_ends_the_plan(checkout: Checkout, tmp_path: Path) -> None:
    """A guest is asked once for its sysctls; the answer is kept by the kernel's hash, and a second plan boots none."""
    spec, cache = tmp_path / "spec.toml", tmp_path / "cache"
    for name, nearest in (("net.ipv4.tcp_sak", "net.ipv4.tcp_sack"), ("net.sctp.rto_mn", "net.sctp.rto_min")):
        written(spec, SYSCTLS.replace("net.ipv4.tcp_retries2", name))
        line = 1 + spec.read_text().partition(name)[0].count("\n")
        for command in (["plan", spec], ["run", spec, "--out", tmp_path / "x"]):
            done = checkout.run(*command, cwd=tmp_path, NETWARP_CACHE=str(cache))
            assert done.status == 2, done
            assert f'spec.toml:{line}: factor.case.level.refused.node.a.sysctl."{name}": Linux ' in done.err
            assert f'has no sysctl "{name}", did you mean "{nearest}"?' in done.err
    assert not (tmp_path / "x").exists()
    (kept,) = (cache / "sysctls").iterdir()
    assert kept.stem == hashlib.sha256(checkout.kernel.read_bytes()).hexdigest()
    record = json.loads(kept.read_bytes())
    kept.write_text(json.dumps(record | {"sysctls": {}}))  # what stands there is believed, no guest is booted
    done = checkout.run("plan", spec, cwd=tmp_path, NETWARP_CACHE=str(cache))
    assert 'has no sysctl "net.ipv4.tcp_ecn"' in done.err
    done = checkout.run("plan", spec, cwd=tmp_path, NETWARP_CACHE=str(tmp_path / "none"), NETWARP_KERNEL="")
    assert "names of sysctls are not checked: no kernel" in done.err or "this machine's Linux" in done.err, done
