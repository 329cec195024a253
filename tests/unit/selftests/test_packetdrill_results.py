"""Results of packetdrill's scripts: which scripts a pattern means, counts, a page's table, the form of selftests."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import KernelError, SpecError
from netwarp.engine.packetdrill import as_result
from netwarp.guestkernel.source import KernelSource
from netwarp.selftests.packetdrill.cases import CaseResult, ScriptResult
from netwarp.selftests.packetdrill.collection import Scripts, cached_scripts, own_scripts, unpack_scripts
from netwarp.selftests.packetdrill.counts import BEGIN, END, count, group_of, rows, update_table
from netwarp.selftests.tree import Selftest

PASS = CaseResult("ipv4", "pass", "", 12, own=True, within_1ms=True, virtual_s=1.5)
FAIL = CaseResult("ipv6", "fail", "line 3: flag PSH\n  expected  > .\n  seen      > P.", None, timeline="0.1 line 3\n")
SKIP = CaseResult("ipv4", "skip", "line 1: packets of udp")
RESULTS = [
    ScriptResult("tcp_zerocopy_closed.pkt", (PASS, PASS)),
    ScriptResult("tcp_zerocopy_basic.pkt", (PASS, FAIL)),
    ScriptResult("tcp_zerocopy_small.pkt", (SKIP,)),
]


def test_counts_are_of_cases() -> None:
    counts = count(RESULTS)
    assert (counts.scripts, counts.cases, counts.own, counts.within_1ms, counts.exact) == (3, 5, 3, 3, 0)
    assert (counts.failed, counts.skipped) == (1, 1)
    assert [result.verdict for result in RESULTS] == ["pass", "fail", "skip"]


def test_the_rows_of_a_kernel_replace_those_of_the_same_kernel_only(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\n| kernel | x |\n| --- |\n| 6.12 | all | 1 |\n| 7.3 | all | 9 |\n{END}\nafter\n")
    update_table(page, rows(RESULTS, "7.3"), "7.3")
    lines = page.read_text().splitlines()
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert "| 6.12 | all | 1 |" in lines
    assert "| 7.3 | all | 9 |" not in lines
    assert "| 7.3 | all | 3 | 5 | 3 | 3 | 0 | 1 | 1 |" in lines
    assert "| 7.3 | `tcp_zerocopy*` | 3 | 5 | 3 | 3 | 0 | 1 | 1 |" in lines
    assert "| 7.3 | flaky: `tcp_zerocopy_cl.*` | 1 | 2 | 2 | 2 | 0 | 0 | 0 |" in lines
    assert any(line.startswith("| 7.3 | `tcp_zerocopy_basic.pkt` | 1 | 2 | line 3: flag PSH |") for line in lines)
    page.write_text("none")
    with pytest.raises(SpecError, match="has no <!-- packetdrill -->"):
        update_table(page, {}, "7.3")


@pytest.mark.parametrize(
    ("name", "group"),
    [
        ("tcp_accecn_ecn3.pkt", "tcp_accecn"),
        ("tcp_fast_recovery_prr-ss-10pkt-lost-1.pkt", "tcp_fast_recovery"),
        ("tcp_slow_start_slow-start-after-idle.pkt", "tcp_slow_start"),
        ("tcp_md5_md5-only.pkt", "tcp_md5"),
        ("own.pkt", "own"),
    ],
)
def test_the_group_of_a_script(name: str, group: str) -> None:
    assert group_of(name) == group


def test_the_form_of_every_selftest() -> None:
    result = as_result(Selftest("packetdrill", "tcp_zerocopy_basic.pkt"), RESULTS[1])
    assert (result.verdict, result.status, result.note) == ("fail", 1, "ipv6: line 3: flag PSH")
    assert result.output.splitlines() == [
        "TAP version 13", "1..2", "ok 1 ipv4 # needs a tolerance of 12 us",
        "# line 3: flag PSH", "#   expected  > .", "#   seen      > P.", "# 0.1 line 3", "not ok 2 ipv6",
    ]  # fmt: skip
    assert [(case.name, case.verdict) for case in result.cases] == [("ipv4", "pass"), ("ipv6", "fail")]
    skipped = as_result(Selftest("packetdrill", "x.pkt"), RESULTS[2])
    assert (skipped.verdict, skipped.note) == ("skip", "line 1: packets of udp")
    assert "ok 1 ipv4 # SKIP line 1: packets of udp" in skipped.output


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    for name in ("tcp_a.pkt", "tcp_b.pkt", "tcp_b_c.pkt", "defaults.sh", "config"):
        (tmp_path / name).write_text("")
    return Scripts(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "names"),
    [("*", "tcp_a tcp_b tcp_b_c"), ("tcp_b", "tcp_b"), ("tcp_b.pkt", "tcp_b"), ("tcp_b*", "tcp_b tcp_b_c")],
)
def test_a_pattern_names_scripts_with_or_without_their_ending(scripts: Scripts, pattern: str, names: str) -> None:
    assert [path.stem for path in scripts.matching(pattern)] == names.split()


def test_a_path_is_a_script_of_ones_own_with_the_files_beside_it(
    scripts: Scripts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "mine.pkt").write_text("")
    (own / "defaults.sh").write_text("mine")
    (own / "more.py").write_text("")
    (script,) = scripts.matching(f"{own}/mine.pkt")
    assert {file.name: file.parent for file in scripts.files(script)} == {"defaults.sh": own, "more.py": own}
    with pytest.raises(SpecError, match="there is no such file"):
        scripts.matching("./no-such.pkt")
    monkeypatch.chdir(own)
    with pytest.raises(SpecError, match=r"a script of yours is named by a path: packetdrill:./mine.pkt"):
        scripts.matching("mine.pkt")
    with pytest.raises(SpecError, match=r"has no such script \(it has tcp_a.pkt, tcp_b.pkt, tcp_b_c.pkt, ...\)"):
        scripts.matching("udp*")


def test_a_script_that_needs_a_sources_files_is_not_only_ones_own(tmp_path: Path) -> None:
    script = tmp_path / "mine.pkt"
    script.write_text("`./defaults.sh\n ./more.py 1`\n0 `true`\n")
    assert own_scripts([str(script)]) is None
    (tmp_path / "defaults.sh").write_text("")
    assert own_scripts([str(script)]) is None
    (tmp_path / "more.py").write_text("")
    assert own_scripts([str(script)]) == Scripts(tmp_path)
    assert own_scripts([str(script), "tcp_*"]) is None


def test_the_versions_are_those_of_the_sources_runner(scripts: Scripts) -> None:
    assert scripts.versions == ("ipv4", "ipv6", "ipv4-mapped-ipv6")
    (scripts.folder / "ksft_runner.sh").write_text("--ip_version=ipv4 ...")
    assert scripts.versions == ("ipv4", "ipv6")
    (scripts.folder / "ksft_runner.sh").write_text("[ipv4-mapped-ipv6]=...")
    assert scripts.versions == ("ipv4", "ipv6", "ipv4-mapped-ipv6")


def test_a_trees_scripts_are_unpacked_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    tree = tmp_path / "tree"
    folder = tree / "tools/testing/selftests/net/packetdrill"
    folder.mkdir(parents=True)
    source = KernelSource("directory", tree, "tree 1", "tree")
    with pytest.raises(KernelError, match="has no scripts"):
        unpack_scripts(source)
    (folder / "tcp_a.pkt").write_text("0 `true`")
    assert cached_scripts("tree 1") is None
    found = unpack_scripts(source)
    assert [path.name for path in found.matching("*")] == ["tcp_a.pkt"]
    (folder / "tcp_a.pkt").unlink()
    assert unpack_scripts(source) == found == cached_scripts("tree 1")
