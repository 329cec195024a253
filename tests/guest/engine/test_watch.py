"""`netwarp kernel watch` on two releases that are built here: a cell that moved is named, with its first packet."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from netwarp.cli import main
from netwarp.core.errors import DoesNotBuild, SpecError
from netwarp.engine.watch import compare_results, results_of
from netwarp.engine.watch_bisect import Builder, bisect
from netwarp.engine.watch_sets import WatchSet, watch_set
from netwarp.guestkernel import KernelBuild
from netwarp.guestkernel.cache import find_named
from netwarp.results.watched import Watched
from support.specs import two_hosts

pytestmark = pytest.mark.skipif(
    find_named("6.12") is None or find_named("7.3") is None, reason="Linux 6.12 and 7.3 are not both built here"
)


LOST_COOKIE_ACK = two_hosts(
    'name = "lost"\nduration = "60 s"',
    'rate = "1 Mbit/s"\nqueue = "50 packets"\none_way_delay = "20 ms"\nbackward.drop = { cookie_ack = [1] }',
    'protocol = "sctp"\n[flow.f]\nbytes = "1 kB"\nsender = { connect_deadline = "20 s" }\n',
)


def test_two_releases_differ_where_the_receivers_window_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert main(["kernel", "watch", "6.12", "7.3", "--set", "tiny", "--anew", "--out", str(out), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads((out / "watch.json").read_text())
    [cell] = said["cells"]
    assert cell["levels"]["case"] == "window growth"
    # 6.12 and 7.3 measure the overhead of segments otherwise: the first packet of all is an ACK with another window
    assert cell["first_packet"].startswith("at b on p1: packet 110, at 0.28338")
    assert cell["first_packet"].endswith("window: 299 in A, 296 in B")
    assert (out / "new/runs/1-watch/cells" / cell["new_cell"] / "cell.json").is_file()
    assert "window growth" in (out / "index.html").read_text()
    monkeypatch.chdir(tmp_path)
    assert main(["kernel", "watch", "6.12", "7.3", "--set", "tiny", "--git-bisect"]) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["out"], "a step leaves nothing in the tree"


def test_a_kernel_beside_itself_has_changed_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "watch", "6.12", "6.12", "--set", "tiny", "--out", str(tmp_path / "out")]) == 0
    assert "Nothing changed." in capsys.readouterr().out


def history(tree: Path, *kernels: str) -> list[str]:
    """A repository whose commits say in a file which kernel each is; their hashes."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C", str(tree)]
    tree.mkdir()
    subprocess.run([*git, "init", "-q"], check=True)
    hashes = []
    for number, kernel in enumerate(kernels):
        (tree / "kernel").write_text(f"{kernel} {number}")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-qm", f"commit {number}"], check=True)
        said = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
        hashes.append(said.stdout.strip())
    return hashes


def builds(tree: Path, asked: list[str]) -> Builder:
    """Builds a commit of history(); its hash is put into `asked`."""

    def build(text: str) -> tuple[KernelBuild, None]:
        commit = text.rpartition("@")[2]
        command = ["git", "-C", str(tree), "show", f"{commit}:kernel"]
        asked.append(commit)
        name = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()[0]
        if (found := find_named(name)) is None:
            raise DoesNotBuild("the compiler refused it")
        return found, None

    return build


def watched_over(tree: Path, hashes: list[str], chosen: WatchSet) -> tuple[Watched, Path]:
    """What differs from the first commit to the last, and where the first one's results are."""
    base, new = (results_of(builds(tree, [])(f"{tree}@{each}")[0], None, chosen) for each in (hashes[0], hashes[-1]))
    return compare_results(base, new, chosen.name), base[1]


def test_the_commit_that_moved_a_number_is_found(tmp_path: Path) -> None:
    """Of six commits the fourth brings the other kernel; the third does not build, and may be it as well."""
    tree = tmp_path / "linux"
    hashes = history(tree, "6.12", "6.12", "none", "7.3", "7.3", "7.3")
    asked: list[str] = []
    build, chosen = builds(tree, asked), watch_set("tiny")
    watched, base = watched_over(tree, hashes, chosen)
    found = bisect(watched, watched.findings[0], chosen, tree, hashes[0], hashes[-1], base, build)
    assert (found.finding, set(found.commits), found.subject) == (
        "watch: case=window growth",
        {hashes[2], hashes[3]},
        "commit 3",
    )
    assert found.steps == len(set(asked)) - 1 and set(asked) < set(hashes[1:5])
    assert hashes[2] in asked
    with pytest.raises(SpecError, match="there is no finding absent"):
        bisect(watched, "absent", chosen, tree, hashes[0], hashes[-1], base, build)


def test_the_commit_since_which_a_cell_fails_is_found(tmp_path: Path) -> None:
    """On 7.3.4 no association comes up whose COOKIE ACK is lost (docs/decisions/0019-kernels.md)."""
    spec = tmp_path / "lost.toml"
    spec.write_text(LOST_COOKIE_ACK)
    tree = tmp_path / "linux"
    hashes = history(tree, "6.12", "7.3", "7.3")
    chosen = watch_set(str(spec))
    watched, base = watched_over(tree, hashes, chosen)
    [finding] = watched.findings
    assert finding == "lost: main repetition 0 FAILED"
    found = bisect(watched, finding, chosen, tree, hashes[0], hashes[-1], base, builds(tree, []))
    assert (found.commits, found.subject, found.steps) == ((hashes[1],), "commit 1", 1)
