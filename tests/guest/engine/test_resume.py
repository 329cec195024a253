"""Going on with a run: the printed command works as typed, a wrong directory is refused, `latest` has ended."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path

import pytest
from netwarp.store.plan_file import read_plan
from netwarp.store.run_dir import RunDir
from support.chain_kit import (
    Checkout,
    Done,
    all_completed,
    as_typed,
    ended,
    factor,
    guests,
    nothing_left,
    two_paths,
    unless_too_late,
    written,
)
from support.run_files import load_run


def spec_in(place: Path) -> Path:
    """Eight cells, whose rate is a parameter; the file's name needs quoting."""
    text = two_paths(factor("delay", ["10 ms", "20 ms", "30 ms", "40 ms"]), '[parameter]\npace = "2 Mbit/s"')
    text = text.replace('"20 ms"', '"{delay}"', 1).replace('rate = "2 Mbit/s"', 'rate = "{pace}"', 1)
    return written(place / "my spec.toml", text)


def interrupted(checkout: Checkout, *arguments: object, cwd: Path) -> Done:
    """netwarp, Ctrl-C as soon as a guest runs."""
    process = checkout.start(*arguments, cwd=cwd)
    while not guests(process.pid):
        assert process.poll() is None, ended(process)
    process.send_signal(signal.SIGINT)
    done = ended(process)
    unless_too_late(done)
    assert done.status == 130, done
    nothing_left(cwd)
    return done


@pytest.mark.parametrize("out", [[], ["--out", "my run"]], ids=["results", "out"])
def test_the_hint_of_run_works_as_typed(out: list[str], checkout: Checkout, tmp_path: Path) -> None:
    """Every option that chooses cells is in it; without --out, `latest` points to nothing before the run has ended."""
    spec = spec_in(tmp_path)
    words = ["--set", "pace=1 Mbit/s", "--where", "delay=20 ms", "--where", "delay=10 ms", "--seed", 9]
    more = ["--only", "main", "--repetitions", 2, "--jobs", 1, "--backend", "virtual", "--no-report"]
    done = interrupted(checkout, "run", spec.name, *words, *more, *out, cwd=tmp_path)
    latest = tmp_path / "results" / "chain" / "latest"
    assert not latest.is_symlink()
    again = as_typed(checkout, done.err, tmp_path).ok()
    run = tmp_path / again.out.splitlines()[-1]
    all_completed(run)
    plan = read_plan(RunDir(run))
    assert (len(plan.cells), plan.seed, plan.parameters) == (8, 9, {"pace": "1 Mbit/s"})
    assert RunDir(run).finished() == {cell.id for cell in plan.cells}
    assert latest.is_symlink() == (not out)
    if not out:
        assert latest.resolve() == run.resolve()


def test_resume_finds_the_interrupted_one(checkout: Checkout, tmp_path: Path) -> None:
    """`latest` stays at the run that has ended; --resume alone goes on with the newer one of the same plan."""
    spec = spec_in(tmp_path)
    base = tmp_path / "results" / "chain"
    whole = checkout.run("run", spec, "--where", "delay=10 ms", "--no-report", cwd=tmp_path).ok()
    interrupted(checkout, "run", spec, "--no-report", "--jobs", 1, cwd=tmp_path)
    assert (base / "latest").resolve() == (tmp_path / whole.out.splitlines()[-1]).resolve()
    done = checkout.run("run", spec, "--no-report", "--resume", cwd=tmp_path).ok()
    run = tmp_path / done.out.splitlines()[-1]
    assert len(RunDir(run).finished()) == 8
    assert (base / "latest").resolve() == run.resolve()
    again = checkout.run("run", spec, "--where", "delay=10 ms", "--no-report", "--resume", cwd=tmp_path).ok()
    assert (tmp_path / whole.out.splitlines()[-1]).resolve() == (tmp_path / again.out.splitlines()[-1]).resolve()


def test_the_hint_of_agree_works_as_typed(checkout: Checkout, tmp_path: Path) -> None:
    spec = spec_in(tmp_path)
    words = ["--set", "pace=1 Mbit/s", "--where", "delay=10 ms", "--seed", 3, "--repetitions", 1, "--jobs", 2]
    done = interrupted(checkout, "compare", "backends", spec.name, *words, "--backends", "virtual,guest", cwd=tmp_path)
    again = as_typed(checkout, done.err, tmp_path)
    (out,) = (path for path in (tmp_path / "results/agreement/chain").iterdir() if path.is_dir())
    if again.status == 2:
        assert "have no number in common" in again.err, again
        assert all(cell.late() for cell in load_run(out / "guest").cells.values()), again
    else:
        assert again.status in (0, 1) and "Metrics, over all places" in again.out, again
        assert out == tmp_path / again.out.splitlines()[-1]
    assert all((out / side / "tables" / "cells.csv").exists() for side in ("virtual", "guest"))


def test_a_wrong_directory(checkout: Checkout, tmp_path: Path) -> None:
    """--resume wants a run, a new run wants an empty place: 2, and nothing is made or touched."""
    spec = spec_in(tmp_path)
    somebody = tmp_path / "thesis"
    somebody.mkdir()
    (somebody / "chapter1.tex").write_text("mine")
    (tmp_path / "empty").mkdir()
    for command in (["run", spec, "--no-report"], ["compare", "backends", spec, "--backends", "virtual,guest"]):
        for out in ("typo", "empty", "thesis"):
            done = checkout.run(*command, "--where", "delay=10 ms", "--resume", "--out", out, cwd=tmp_path)
            assert (done.status, done.out) == (2, ""), done
            assert f"{out}: there is no run" in done.err, done
        done = checkout.run(*command, "--where", "delay=10 ms", "--out", "thesis", cwd=tmp_path)
        assert (done.status, done.out) == (2, ""), done
        assert "thesis: holds files that are not netwarp's (chapter1.tex)" in done.err, done
    done = checkout.run("calibrate", "generic", "--out", "thesis", cwd=tmp_path)
    assert (done.status, "chapter1.tex" in done.err) == (2, True), done
    assert os.listdir(somebody) == ["chapter1.tex"]
    assert sorted(os.listdir(tmp_path)) == ["empty", "my spec.toml", "thesis"]
    assert os.listdir(tmp_path / "empty") == []


def test_another_plan_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    """What differs is named, and the command that the run was started with."""
    spec = spec_in(tmp_path)
    run = tmp_path / "x"
    started = ["run", spec, "--where", "delay=10 ms", "--seed", 2, "--no-report"]
    checkout.run(*started, "--out", run, cwd=tmp_path).ok()
    shorter = written(tmp_path / "other.toml", spec.read_text().replace('duration = "4 s"', 'duration = "3 s"'))
    here = ["--where", "delay=10 ms"]
    cases: list[tuple[list[object], list[str]]] = [
        ([spec, *here, "--seed", 7], ["seed: 2 in the run, asked for: 7"]),
        ([spec, *here, "--seed", 2, "--repetitions", 2], ["repetitions: 1 in the run, asked for: 2"]),
        ([spec, "--seed", 2], ["choice of cells: delay=10 ms in the run, asked for: everything"]),
        ([spec, *here, "--seed", 2, "--set", "pace=1 Mbit/s"],
         ["parameter pace: 2 Mbit/s in the run, asked for: 1 Mbit/s", "rate_bit_s: 2000000 in the run, asked for"]),
        ([shorter, *here, "--seed", 2], ["duration_ns: 4000000000 in the run, asked for: 3000000000"]),
    ]  # fmt: skip
    for arguments, said in cases:
        done = checkout.run("run", *arguments, "--no-report", "--out", run, "--resume", cwd=tmp_path)
        assert done.status == 2, done
        for words in said:
            assert words in done.err, (words, done.err)
        assert shlex.join(str(word) for word in started) in done.err
    all_completed(run)


def test_another_analyser_is_refused(checkout: Checkout, tmp_path: Path) -> None:
    """Cells of one run are made and analysed by one netwarp. What an older run did not write down is not compared."""
    spec = spec_in(tmp_path)
    run = tmp_path / "x"
    words = ["run", spec, "--where", "delay=10 ms", "--no-report", "--out", run]
    checkout.run(*words, cwd=tmp_path).ok()
    manifest = json.loads((run / "manifest.json").read_text())
    assert {"netwarp", "numpy", "libnetwarp_analyzer.so"} <= manifest["software"].keys()
    other = manifest["software"] | {"libnetwarp_analyzer.so": "0" * 64, "numpy": "1.0"}
    (run / "manifest.json").write_text(json.dumps(manifest | {"software": other}))
    done = checkout.run(*words, "--resume", cwd=tmp_path)
    assert (done.status, done.out) == (2, ""), done
    assert "made and analysed with other software (libnetwarp_analyzer.so, numpy)" in done.err, done
    (run / "manifest.json").write_text(json.dumps({key: manifest[key] for key in manifest if key != "software"}))
    checkout.run(*words, "--resume", cwd=tmp_path).ok()


def test_a_resumed_run_makes_no_changed_file_one_that_it_wrote(checkout: Checkout, tmp_path: Path) -> None:
    words = ("run", spec_in(tmp_path).name, "--where", "delay=10 ms", "--out", "run", "--no-report")
    checkout.run(*words, cwd=tmp_path).ok()
    checkout.run(*words, "--resume", cwd=tmp_path).ok()
    assert "not what the run wrote" not in checkout.run("report", "run", cwd=tmp_path).ok().err
    (cell, *_) = (tmp_path / "run/cells").glob("*_r0_*")
    for name in ("derived/measurements.json", "outcome.json"):
        with (cell / name).open("a") as file:
            file.write("\n")
    checkout.run(*words, "--resume", cwd=tmp_path).ok()
    said = checkout.run("report", "run", cwd=tmp_path).ok().err
    assert "derived/measurements.json" in said and "outcome.json" in said
