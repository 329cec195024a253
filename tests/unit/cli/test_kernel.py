"""`kernel build` and `kernel list` as processes: output, links, two at once, Ctrl-C, kill -9."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from netwarp.core.checkout import CHECKOUT
from support.kernel_tree import builds, make_tree

LIMIT_S = 300


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name != "NETWARP_KERNEL"}
    return {**kept, "NETWARP_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(CHECKOUT)}


def start(environment: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "netwarp.cli.kernel", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # whoever runs the tests may ignore SIGINT (a job in the background does), and children inherit that
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=LIMIT_S)
    return process.returncode, out, err


def read_until(descriptor: int, wanted: bytes | None) -> bytes:
    """Read until `wanted` has come (None: until every writer is gone); fails after LIMIT_S."""
    got = b""
    while wanted is None or wanted not in got:
        assert select.select([descriptor], [], [], LIMIT_S)[0], f"nothing more after {got!r}"
        chunk = os.read(descriptor, 1000)
        if not chunk:
            assert wanted is None, f"ended with {got!r}"
            break
        got += chunk
    return got


def test_build_and_list(tmp_path: Path, environment: dict[str, str]) -> None:
    link = tmp_path / "links/kernel-headers"
    command = ["build", "--source", str(make_tree(tmp_path)), "--headers-link", str(link)]
    status, out, err = finish(start(environment, *command))
    assert status == 0, err
    assert "kernel 6.12.999" in out
    assert "compiles" in err
    assert (link / "linux/sctp.h").is_file()
    again = finish(start(environment, *command, "--json"))
    record = json.loads(again[1])
    assert again[0] == 0
    assert record["release"] == "6.12.999"
    assert builds(tmp_path) == 1
    missing = finish(start(environment, "build", "--if-missing"))
    assert missing[0] == 0, missing
    assert record["key"] in missing[1]
    listed = json.loads(finish(start(environment, "list", "--json"))[1])
    assert [(kernel["key"], kernel["default"]) for kernel in listed] == [(record["key"], True)]
    assert finish(start(environment, "list"))[1].startswith(f"*  {record['key']}  6.12.999")


def test_errors_are_messages_with_a_status(tmp_path: Path, environment: dict[str, str]) -> None:
    status, out, err = finish(start(environment, "build", "--source", str(tmp_path / "none")))
    assert (status, out) == (1, "")
    assert err.startswith("netwarp: ")
    assert "Traceback" not in err
    assert finish(start(environment, "build", "--jobs", "0"))[0] == 2
    assert finish(start(environment, "list"))[1].startswith("no kernel in ")


def test_two_builds_at_once_build_once(tmp_path: Path, environment: dict[str, str]) -> None:
    go = tmp_path / "go"
    started = tmp_path / "started"
    os.mkfifo(go)
    os.mkfifo(started)
    tree = make_tree(tmp_path, during=f"echo started > {started}; read line < {go}")
    first = start(environment, "build", "--source", str(tree), "--json")
    with started.open("rb") as fifo:
        read_until(fifo.fileno(), b"started")
    second = start(environment, "build", "--source", str(tree), "--json")
    assert second.stderr is not None
    read_until(second.stderr.fileno(), b"waits for another build")
    go.write_text("go\n")
    one, two = finish(first), finish(second)
    assert (one[0], two[0]) == (0, 0), (one, two)
    assert json.loads(one[1]) == json.loads(two[1])
    assert builds(tmp_path) == 1


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_build_leaves_no_process_and_is_never_trusted(
    tmp_path: Path, environment: dict[str, str], number: signal.Signals
) -> None:
    started = tmp_path / "started"
    os.mkfifo(started)
    # The "compiler" holds the pipe open for as long as it lives, which without the signal is for ever.
    tree = make_tree(tmp_path, during=f"exec 9> {started}; echo started >&9; exec sleep 1000")
    process = start(environment, "build", "--source", str(tree))
    with started.open("rb") as fifo:
        read_until(fifo.fileno(), b"started")
        process.send_signal(number)
        read_until(fifo.fileno(), None)
    status, _, err = finish(process)
    assert status == (-signal.SIGKILL if number == signal.SIGKILL else 130), err
    kernels = tmp_path / "cache/kernels"
    if number != signal.SIGKILL:
        assert not list(kernels.glob(".building-*"))
    assert finish(start(environment, "list"))[1].startswith("no kernel in ")

    status, _, err = finish(start(environment, "build", "--source", str(make_tree(tmp_path / "again"))))
    assert status == 0, err
    assert not list(kernels.glob(".building-*"))
