"""The executor of docs/selftests.md: rounds of its loop, as it stands there, with a server of branches on loopback."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

from support.chain_kit import Checkout
from support.checkout import ROOT

SCRIPT = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = {}\n"
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]


class Branches(BaseHTTPRequestHandler):
    """Gives the next of `answers` each time; "down" is 503."""

    def __init__(self, answers: list[bytes], *request: Any) -> None:
        self.answers = answers
        super().__init__(*request)

    def do_GET(self) -> None:
        answer = self.answers.pop(0)
        self.send_response(503 if answer == b"down" else 200)
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


def test_rounds_of_the_executor(checkout: Checkout, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "selftests.md").read_text()
    (loop,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for place in ("linux", "remote"):
        (tmp_path / place).mkdir()
    subprocess.run([*GIT, "init", "-q", "-b", "net-next-2026-08-20--15-00"], cwd=tmp_path / "remote", check=True)
    (tmp_path / "remote" / "mine.pkt").write_text(SCRIPT.format(0))
    (tmp_path / "remote" / "wrong.pkt").write_text(SCRIPT.format(1))
    for command in (["add", "."], ["commit", "-qm", "scripts"]):
        subprocess.run([*GIT, *command], cwd=tmp_path / "remote", check=True)
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path / "linux", check=True)
    named = (
        ("net-2026-08-20--12-00", "2026-08-20T12:00:00+00:00"),
        ("net-next-2026-08-20--15-00", "2026-08-20T15:00:03+00:00"),
        ("net-next-2026-08-20--18-00", "2026-08-20T18:00:03+00:00"),
    )
    branches = [{"branch": name, "date": date, "base": "0", "url": f"{tmp_path}/remote {name}"} for name, date in named]
    # the server is down, then names a branch that is gone, then the one that is there, twice
    answers = [b"down", json.dumps(branches).encode(), *[json.dumps(branches[:2]).encode()] * 2]
    tests = [*checkout.command("selftest"), "packetdrill:linux/mine.pkt", "packetdrill:linux/wrong.pkt"]
    changes = {
        r"TESTS = .*": f"TESTS = {tests!r}",
        r"while True:": "for _ in range(4):",
        r"time\.sleep\(60\)": "pass",
    }
    server = HTTPServer(("127.0.0.1", 0), partial(Branches, answers))
    changes[r"BRANCHES = .*"] = f"BRANCHES = 'http://127.0.0.1:{server.server_port}/branches.json'"
    for pattern, new in changes.items():
        loop, count = re.subn(pattern, lambda _, new=new: new, loop)  # type: ignore[misc]
        assert count == 1
    environment = {**checkout.environment(tmp_path), "PATH": os.environ["PATH"]}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        command = [sys.executable, "-c", loop]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, timeout=300, stdout=subprocess.PIPE, text=True
        )
    finally:
        server.shutdown()
        server.server_close()
    assert answers == []
    assert [line for line in done.stdout.splitlines() if "503" in line or "18-00" in line]
    assert (tmp_path / "web" / "done").read_text() == named[1][1]
    (entry,) = json.loads((tmp_path / "web" / "results.json").read_text())
    assert (entry["executor"], entry["branch"]) == ("netwarp-uml", "net-next-2026-08-20--15-00")
    name = entry["url"].rpartition("/")[2]
    assert re.fullmatch(r"results-\d+\.json", name)
    content = json.loads((tmp_path / "web" / name).read_text())
    assert (content["executor"], content["branch"]) == (entry["executor"], entry["branch"])
    assert [(one["test"], one["group"], one["result"]) for one in content["results"]] == [
        ("mine-pkt", "selftests-net-packetdrill", "pass"), ("wrong-pkt", "selftests-net-packetdrill", "fail"),
    ]  # fmt: skip
    folder = tmp_path / "web" / content["results"][1]["link"].removeprefix("https://example.org/netwarp/")
    assert (folder / "ipv4" / "timeline.txt").is_file()
