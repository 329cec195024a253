"""The executor of docs/selftests.md: rounds of its loop, as it stands there, with a list of branches in a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from support.chain_kit import Checkout
from support.checkout import ROOT

SCRIPT = "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n+0 listen(3, 1) = {}\n"
GIT = ["git", "-c", "user.name=x", "-c", "user.email=x@example.org"]


def test_one_round_of_the_executor(checkout: Checkout, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "selftests.md").read_text()
    (loop,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    for place in ("linux", "remote", "web"):
        (tmp_path / place).mkdir()
    subprocess.run([*GIT, "init", "-q", "-b", "net-next-2026-08-20--15-00"], cwd=tmp_path / "remote", check=True)
    (tmp_path / "remote" / "mine.pkt").write_text(SCRIPT.format(0))
    (tmp_path / "remote" / "wrong.pkt").write_text(SCRIPT.format(1))
    for command in (["add", "."], ["commit", "-qm", "scripts"]):
        subprocess.run([*GIT, *command], cwd=tmp_path / "remote", check=True)
    subprocess.run([*GIT, "init", "-q"], cwd=tmp_path / "linux", check=True)
    branches = [
        {"branch": name, "date": date, "base": "0", "url": f"{tmp_path}/remote {name}"}
        for name, date in (("net-2026-08-20--12-00", "2026-08-20T12:00:00+00:00"),
                           ("net-next-2026-08-20--15-00", "2026-08-20T15:00:03+00:00"))
    ]  # fmt: skip
    (tmp_path / "branches.json").write_text(json.dumps(branches))
    tests = [*checkout.command("selftest"), "packetdrill:linux/mine.pkt", "packetdrill:linux/wrong.pkt"]
    changes = {
        r"BRANCHES = .*": f"BRANCHES = {f'file://{tmp_path}/branches.json'!r}",
        r"TESTS = .*": f"TESTS = {tests!r}",
        r"while True:": "for _ in range(2):",
        r"time\.sleep\(60\)": "pass",
    }
    for pattern, new in changes.items():
        loop, count = re.subn(pattern, lambda _, new=new: new, loop)  # type: ignore[misc]
        assert count == 1
    environment = {**checkout.environment(tmp_path), "PATH": os.environ["PATH"]}
    subprocess.run([sys.executable, "-c", loop], cwd=tmp_path, env=environment, check=True, timeout=300)
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
