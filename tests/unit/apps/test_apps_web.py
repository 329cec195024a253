"""web-server and web-client, sanitised, over the host's own TCP; requests of another run, and options refused."""

from __future__ import annotations

import itertools
import socket
import subprocess

import pytest
from support.apps_kit import Record, free_port, records, run, sanitised, summary_of


def fetch(
    page: list[str], expected: int, *, token: int = 7, request: str = "300", frame: str = "0"
) -> tuple[int, list[Record], int, list[Record]]:
    """A server and a client; asserts that the sanitisers kept silent."""
    port, both = free_port(), ["--request-bytes", request, "--frame-bytes", frame]
    server = subprocess.Popen(
        [str(sanitised() / "web-server"), "--expected", str(expected), *both, "--",
         "--protocol", "tcp", "--bind", "127.0.0.1", "--port", str(port), "--token", "7"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    lines = [server.stdout.readline() for _ in range(3)]
    assert '"listening"' in lines[-1]
    done = run(
        "web-client", *page, *both, "--", "--protocol", "tcp", "--to", "127.0.0.1",
        "--port", str(port), "--token", str(token), "--message-bytes", "1", "--stop-ns", "600000000000",
    )  # fmt: skip
    if done.returncode:
        server.terminate()
    out, err = server.communicate(timeout=300)
    assert (done.stderr, err) == ("", "")
    return done.returncode, records(done.stdout), server.returncode, records("".join(lines) + out)


@pytest.mark.parametrize(
    ("page", "expected", "objects"),
    [
        (["--html-bytes", "2000", "--object-bytes", "13500,13500,300000", "--pages", "3"], 3, 12),
        (["--html-bytes", "1", "--object-bytes", "1,2,3,4", "--pages", "2", "--connections", "2", "--serial", "--keep"],
         2, 10),
        (["--object-bytes", "13500,5,7,8,9,16777215,1", "--connections", "6"], 6, 7),
        (["--html-bytes", "70000", "--pages", "2", "--keep"], 1, 2),
    ],
)  # fmt: skip
def test_pages_come_whole(page: list[str], expected: int, objects: int) -> None:
    status, client, server_status, server = fetch(page, expected)
    assert (status, server_status) == (0, 0)
    summary, there = summary_of(client), summary_of(server)
    assert (summary["corrupt_bytes"], summary["reason"], there["reason"]) == (0, "done", "done")
    assert summary["unique_bytes"] == there["sent_bytes"]
    assert (there["connections"], there["closed"], there["requests"]) == (expected, expected, objects)
    ends = [record for record in client if record["record"] == "object"]
    assert len(ends) == objects
    assert all(each["requested_t_ns"] < each["first_t_ns"] <= each["complete_t_ns"] for each in ends)


def test_serial_is_one_request_at_a_time_on_a_connection() -> None:
    sizes = ",".join(["3000000"] + ["10"] * 8)
    _, client, _, _ = fetch(["--html-bytes", "1", "--object-bytes", sizes, "--connections", "2", "--serial"], 2)
    ends = [record for record in client if record["record"] == "object"]
    assert len({each["port"] for each in ends}) == 2
    for port in {each["port"] for each in ends}:
        mine = sorted((each for each in ends if each["port"] == port), key=lambda each: each["requested_t_ns"])
        for before, after in itertools.pairwise(mine):
            assert after["requested_t_ns"] >= before["complete_t_ns"]


@pytest.mark.parametrize("frame", ["7", "1000", "16384", "16777215"])
def test_objects_in_frames_come_whole(frame: str) -> None:
    """Every byte is some frame's head or some object's, and the pieces of the objects do not overlap."""
    sizes = [500, 900, 1, 1200] if frame == "7" else [5000, 13500, 1, 400000]
    page = ["--html-bytes", "2000", "--object-bytes", ",".join(map(str, sizes)), "--pages", "2"]
    status, client, server_status, server = fetch(page, 2, frame=frame)
    assert (status, server_status) == (0, 0)
    summary = summary_of(client)
    assert (summary["corrupt_bytes"], summary["unique_bytes"]) == (0, summary_of(server)["sent_bytes"])
    ends = [record for record in client if record["record"] == "object" and record["page"] == 0]
    pieces = {
        each["object"]: [tuple(map(int, piece.split(":"))) for piece in str(each["pieces"]).split(",")] for each in ends
    }
    assert {number: sum(size for _, size in found) for number, found in pieces.items()} == dict(
        enumerate([2000, *sizes])
    )
    placed = sorted(piece for found in pieces.values() for piece in found)
    assert placed[0][0] == 9, "behind the first head"
    for (start, size), (after, _) in itertools.pairwise(placed):
        assert after == start + size + 9


def test_kinds_of_pages_take_turns() -> None:
    page = ["--html-bytes", "100,200", "--object-bytes", "5,6,7", "--page-objects", "1,2", "--pages", "3", "--think-ns"]
    status, client, _, _ = fetch([*page, "1000000,20000000"], 3)
    assert status == 0
    ends = [record for record in client if record["record"] == "object"]
    sizes = [[each["bytes"] for each in ends if each["page"] == number] for number in range(3)]
    assert sizes == [[100, 5], [200, 6, 7], [100, 5]]
    pages = [record for record in client if record["record"] == "page"]
    assert pages[1]["start_t_ns"] - pages[0]["end_t_ns"] >= 1_000_000
    assert pages[2]["start_t_ns"] - pages[1]["end_t_ns"] >= 20_000_000


def test_a_request_of_another_run_is_refused() -> None:
    status, client, _, server = fetch(["--object-bytes", "10"], 1, token=8)
    assert status == 1
    assert summary_of(server)["reason"] == "failed"
    assert any("not a request of this run" in str(record.get("message")) for record in server)
    assert any("ended before the page" in str(record.get("message")) for record in client)


def test_what_is_no_request_ends_the_server() -> None:
    """Any 40 bytes."""
    port = free_port()
    server = subprocess.Popen(
        [str(sanitised() / "web-server"), "--request-bytes", "40", "--", "--protocol", "tcp", "--port", str(port)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert server.stdout is not None
    assert '"listening"' in [server.stdout.readline() for _ in range(3)][-1]
    with socket.create_connection(("127.0.0.1", port)) as sock:
        sock.sendall(bytes(range(40)))
        out, err = server.communicate(timeout=300)
    assert (server.returncode, err) == (1, "")
    assert summary_of(records(out))["reason"] == "failed"


@pytest.mark.parametrize(
    ("program", "arguments", "said"),
    [
        ("web-client", ["--object-bytes", "10"], "-- and the transport's options have to follow"),
        ("web-client", ["--", "--protocol", "tcp"], "this or --html-bytes has to be given"),
        ("web-client", ["--object-bytes", "10", "--page-objects", "2", "--", "--protocol", "tcp"], "do not add up"),
        ("web-client", ["--html-bytes", "10,20", "--", "--protocol", "tcp"], "every kind of page needs one size"),
        ("web-client", ["--object-bytes", "10", "--think-ns", "1,2", "--", "--protocol", "tcp"], "for every kind"),
        ("web-client", ["--object-bytes", "10", "--page-objects", "0,1", "--", "--protocol", "tcp"], "needs an object"),
        ("web-client", ["--object-bytes", "10", "--streams", "2", "--", "--protocol", "tcp", "--to", "127.0.0.1",
                        "--port", "1", "--message-bytes", "1", "--stop-ns", "1"], "streams"),
        ("web-server", ["--request-bytes", "3", "--", "--protocol", "tcp"], "request-bytes"),
        ("web-server", ["--", "--protocol", "mptcp", "--port", "1"], "tcp or sctp"),
    ],
)  # fmt: skip
def test_mistakes(program: str, arguments: list[str], said: str) -> None:
    done = run(program, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
