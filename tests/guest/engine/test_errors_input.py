"""Bad input at the real command line: exit 2, where it is, a correct example, and nothing created."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest
from support.chain_kit import Checkout, outcomes, raw_files, two_paths, written

LINK = '[link.p1]\nbetween = ["a", "b"]\n'


def changed(old: str, new: str) -> str:
    """The spec with one thing wrong."""
    text = two_paths(duration="1 s")
    assert text.count(old) == 1
    return text.replace(old, new)


def line_of(text: str, words: str) -> int:
    """The last line that begins so."""
    return max(number for number, line in enumerate(text.splitlines(), 1) if line.startswith(words))


# what is wrong: text before, text after, the line that is to be named, its key, what the message must say
MISTAKES = {
    "unknown key": ("queue =", "quueue =", "quueue", "link.p1.quueue", ["unknown key", '"queue"']),
    "missing unit": ('"20 ms"', '"20"', "one_way_delay", "link.p1.one_way_delay", ["unit is missing", '"100 ms"']),
    "bare number": ('"20 ms"', "20", "one_way_delay", "link.p1.one_way_delay", ["bare number", '"100 ms"']),
    "negative rate": ('"2 Mbit/s"', '"-2 Mbit/s"', "rate", "link.p1.rate", ["negative", '"500 kbit/s"']),
    "another unit": ('"2 Mbit/s"', '"2 MB"', "rate", "link.p1.rate", ['"500 kbit/s"']),
    "two nodes of one name": ("[node.b]", "[node.a]", "[node.a]", "", ["node", "already"]),
    "flow to an unknown node": ('to = "b"', 'to = "c"', "to =", "flow.bulk.to", ['no node "c"', "a, b"]),
    "flow over an unknown link": ('paths = ["p1"]', 'paths = ["p9"]', "paths", "flow.bulk.paths", ['"p9"']),
    "no such profile": ('rate = "2 Mbit/s"', 'profile = "nope"', "profile", "link.p1.profile", ['"nope"', "there is"]),
    "not TOML": ("[node.b]", "[node.b", "[node.b", "", ["not TOML"]),
}


@pytest.mark.parametrize("mistake", MISTAKES)
@pytest.mark.parametrize("command", ["run", "plan"])
def test_a_mistake_in_a_spec(mistake: str, command: str, checkout: Checkout, tmp_path: Path) -> None:
    old, new, words, key, said = MISTAKES[mistake]
    text = changed(old, new)
    written(tmp_path / "spec.toml", text)
    more = ["--out", "x"] if command == "run" else []
    done = checkout.run(command, "spec.toml", *more, cwd=tmp_path)
    assert done.status == 2, done
    assert done.out == ""
    place = f"netwarp: spec.toml:{line_of(text, words)}: {key}"
    assert done.err.startswith(place), (done.err, place)
    assert "Traceback" not in done.err
    for part in said:
        assert part in done.err
    assert os.listdir(tmp_path) == ["spec.toml"]


ARGUMENTS = {
    "unknown level": (["--where", "protocol=udp"], ["protocol=udp", "tcp, sctp"]),
    "unknown factor": (["--where", "protocl=tcp"], ['"protocl"', '"protocol"']),
    "no level": (["--where", "protocol"], ["--where protocol", "e.g."]),
    "unknown experiment": (["--only", "nope"], ['"nope"', "main"]),
    "set nothing": (["--set", "rate"], ["--set rate", "e.g."]),
    "unknown key": (["--set", "link.p1.colour=red"], ["link.p1.colour"]),
    "no jobs": (["--jobs", "0"], ["--jobs 0"]),
    "no number": (["--seed", "x"], ["--seed", "x"]),
    "unknown back end": (["--backend", "moon"], ["--backend", "moon", "virtual"]),
}


@pytest.mark.parametrize("mistake", ARGUMENTS)
def test_a_mistake_in_the_arguments(mistake: str, checkout: Checkout, tmp_path: Path) -> None:
    arguments, said = ARGUMENTS[mistake]
    written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    done = checkout.run("run", "spec.toml", "--out", "x", *arguments, cwd=tmp_path)
    assert done.status == 2, done
    for part in said:
        assert part in done.err
    assert "Traceback" not in done.err
    assert os.listdir(tmp_path) == ["spec.toml"]


def test_no_such_spec(checkout: Checkout, tmp_path: Path) -> None:
    done = checkout.run("run", "nope", cwd=tmp_path)
    assert (done.status, "no spec file 'nope'" in done.err) == (2, True)
    assert os.listdir(tmp_path) == []


def test_without_out_the_run_is_found_under_results(checkout: Checkout, tmp_path: Path) -> None:
    """And nothing else is created: where the tests above look, a run would show."""
    written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    done = checkout.run("run", "spec.toml", "--no-report", cwd=tmp_path).ok()
    last = done.out.splitlines()[-1]
    assert sorted(os.listdir(tmp_path)) == ["results", "spec.toml"]
    assert (tmp_path / "results" / "chain" / "latest").resolve() == (tmp_path / last).resolve()
    assert len(outcomes(tmp_path / last)) == 2


def test_resume_of_another_plan(checkout: Checkout, tmp_path: Path) -> None:
    """Another seed, another choice of cells, another spec: 2, and the run stays as it is."""
    spec = written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    run = tmp_path / "x"
    checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path).ok()
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    other = written(tmp_path / "other.toml", two_paths(duration="2 s"))
    for arguments in ([spec, "--seed", 9], [spec, "--where", "protocol=tcp"], [other]):
        done = checkout.run("run", *arguments, "--no-report", "--out", run, "--resume", cwd=tmp_path)
        assert done.status == 2, done
        assert done.err.startswith(f"netwarp: {run}: holds a run of another plan")
    done = checkout.run("run", spec, "--no-report", "--out", run, cwd=tmp_path)
    assert (done.status, "--resume" in done.err) == (2, True), done
    assert {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()} == before
    assert len(raw_files(run)) > 10


@pytest.mark.parametrize("command", ["run", "calibrate"])
def test_kernel_missing(command: str, checkout: Checkout, tmp_path: Path) -> None:
    """77, with the command that builds one; nothing is created."""
    (tmp_path / "cache").mkdir()
    written(tmp_path / "spec.toml", two_paths(duration="1 s"))
    arguments = ["run", "spec.toml", "--out", "x"] if command == "run" else ["calibrate", "--out", "x"]
    nowhere = {"NETWARP_KERNEL": "", "NETWARP_CACHE": str(tmp_path / "cache")}
    done = checkout.run(*arguments, cwd=tmp_path, **nowhere)
    assert (done.status, done.out) == (77, "")
    assert "make kernel" in done.err
    assert shlex.join(checkout.command("kernel", "build")) in done.err, "as it works when typed"
    assert str(tmp_path / "cache") in done.err
    done = checkout.run(*arguments, cwd=tmp_path, NETWARP_KERNEL=str(tmp_path / "linux"))
    assert (done.status, done.out) == (77, "")
    assert "unset NETWARP_KERNEL" in done.err
    assert sorted(os.listdir(tmp_path)) == ["cache", "spec.toml"]
    assert os.listdir(tmp_path / "cache") == []
