"""`netwarp kernel watch`: the files of a kernel, the comparison of two, the page; guests are in tests/guest."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from netwarp.cli import main
from netwarp.core.errors import BackendUnavailable, DoesNotBuild, KernelError, SpecError
from netwarp.engine.watch import RECORD, new_splats, results_of, splats_of, watch_dir
from netwarp.engine.watch_nipa import watch_results
from netwarp.engine.watch_sets import SETS, WatchRun, WatchSet, watch_set
from netwarp.experiment import load_experiment
from netwarp.guestkernel import KernelBuild, build_kernel
from netwarp.plan import make_plan
from netwarp.present.pages.watch import sentence, watch_page
from netwarp.results.watched import (
    Bisected,
    ChangedCell,
    ChangedRun,
    Splat,
    Watched,
    WatchedTest,
    as_json,
    changed_tests,
    headline,
    rank,
    ranked,
    spec_names,
)
from netwarp.selftests.nipa import Origin
from support.kernel_tree import make_tree
from support.watch_kit import kernel, number, watched

NOW = datetime(2026, 8, 20, 15, 1, tzinfo=UTC)


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelBuild:
    monkeypatch.setenv("NETWARP_CACHE", str(tmp_path / "cache"))
    return build_kernel(make_tree(tmp_path))


def test_results_are_kept_whole_or_not_at_all(build: KernelBuild, tmp_path: Path) -> None:
    nothing = WatchSet("nothing")
    record, place = results_of(build, None, nothing, asked="6.12")
    assert (record.release, record.tests, record.runs) == ("6.12.999", (), ())
    written = (place / RECORD).stat().st_ino
    again, same = results_of(build, None, nothing, asked="~/linux")
    assert (same, again.asked) == (place, "~/linux")
    assert (place / RECORD).stat().st_ino == written, "it was not run again"
    assert results_of(build, None, nothing, anew=True)[1] == place
    assert (place / RECORD).stat().st_ino != written
    with pytest.raises(SpecError):
        results_of(build, None, WatchSet("broken", runs=(WatchRun("watch", only=("absent",)),)))
    assert [path.name for path in watch_dir().iterdir() if not path.name.startswith(".")] == [place.name]
    assert not list(watch_dir().glob(".running*"))


def test_tests_without_the_kernels_source_are_left_out_with_the_reason(build: KernelBuild) -> None:
    record, _ = results_of(build, None, WatchSet("tests", selftests=("net:tls",)))
    assert record.without == ("selftests: the source of Linux 6.12.999 is not here, with which its tests come",)


def test_a_splat_is_read_from_a_console(tmp_path: Path) -> None:
    place = tmp_path / "runs/1-watch/cells/bulk"
    place.mkdir(parents=True)
    (place / "console.txt").write_text(
        "@1\n[    1.2] WARNING: CPU: 0 PID: 1 at net/x.c:7\nCall Trace:\n tcp_ack+0x1/0x2\n@2\n"
    )
    [splat] = splats_of(tmp_path)
    assert splat.where == "runs/1-watch/cells/bulk"
    assert splat.text.startswith("WARNING: CPU: 0") and "tcp_ack" in splat.text


def test_a_splat_is_new_by_its_stack_and_its_cell() -> None:
    place = "runs/1-watch/cells/bulk_r0_"
    before = Splat(f"{place}0123456789", "BUG: at 0xffff", "tcp_ack:tcp_rcv")
    again = Splat(f"{place}abcdefabcd", "BUG: at 0xeeee", "tcp_ack:tcp_rcv")
    elsewhere, other = msgspec.structs.replace(again, where="tests/x"), Splat(again.where, "BUG: other", "sctp_rcv")
    assert new_splats([before], [again, elsewhere, other]) == (elsewhere, other)


def test_the_largest_change_stands_first_and_models_last() -> None:
    numbers = [
        number("theory_rto_low_s", 1, 9),
        number("packets", 0, 5),
        number("outage_s", 1.0, 1.1),
        number("packets", 9, 90),
    ]
    assert [each.b for each in ranked(numbers)] == [90, 1.1, 5, 9]
    cells = [
        ChangedCell("r", "watch", (), ranked(each), "", (None, None))
        for each in (
            [number("packets", 0, 5)],
            [number("outage_s", 1, 1.1)],
            [number("packets", 1, 2), number("outage_s", 1, 1.3)],
        )
    ]
    assert [each.numbers[0].b for each in sorted(cells, key=rank)] == [2, 1.1, 5]
    assert [head and head.b for head in map(headline, cells)] == [None, 1.1, 1.3]


def test_what_a_spec_makes_of_its_numbers_stands_behind_them() -> None:
    """A distance from a rule moves by the square of what moved it."""
    numbers = [number("off_prr_packets", 100, 5), number("retransmitted_packets", 10, 9)]
    assert [each.metric for each in ranked(numbers)] == ["retransmitted_packets", "off_prr_packets"]


def test_tests_of_one_source_alone_are_no_finding() -> None:
    passed, failed = WatchedTest("a", "pass"), WatchedTest("a", "fail")
    assert changed_tests([passed], [passed]) == ()
    [worse] = changed_tests([passed], [failed])
    assert worse.worse
    cases = [WatchedTest("a", "fail", cases=((name, "fail", ""),)) for name in "xy"]
    [both] = changed_tests(cases[:1], cases[1:])
    assert not both.worse, "it failed before, in another part"
    [alone] = changed_tests([passed], [])
    assert not Watched(kernel("a"), kernel("b"), "small", (), (), (alone,), ()).differs


def test_the_page_says_what_changed_and_nothing_of_a_spec_is_markup() -> None:
    answer = watched(bisected=(Bisected("watch: bulk", ("0123456789abcdef",), "tcp: slower", 3),))
    page = watch_page(answer).decode()
    assert sentence(answer).startswith(
        "1 splat, 1 test fails that did not, 1 cell ended otherwise, 1 number moved in 1 cell."
    )
    text = re.sub(r"<[^>]+>", " ", page)
    for said in (
        "at b on p1: packet 7",
        "BUG: sleeping",
        "line 3",
        "COMPLETED",
        "0123456789ab",
        "+50.0 %",
        "completion time",
    ):
        assert said in text
    assert "<b>bulk" not in page and "bulk &lt;b&gt;" in page
    assert 'href="new/runs/1-watch/cells/bulk_r0_1/"' in page
    passed = kernel("a", WatchedTest("net:tls", "pass"))
    assert "Nothing changed." in watch_page(Watched(passed, passed, "small", (), (), (), ())).decode()
    assert "Nothing was compared." in watch_page(Watched(passed, kernel("b"), "small", (), (), (), ())).decode()
    failed = ChangedRun("1-watch", "watch", 2, Counter(), (), (), ("", "2 of 2 cells did not complete: FAILED, no way"))
    assert "watch on B: 2 of 2 cells did not complete" in watch_page(watched(runs=(failed,))).decode()


def test_the_json_numbers_its_findings() -> None:
    said = msgspec.json.decode(msgspec.json.encode(as_json(watched())))
    assert said["differs"] is True
    numbers = [said[kind][0]["finding"] for kind in ("cells", "outcomes", "tests")]
    assert numbers == [1, 2, 3]
    assert watched().findings == ("watch: case=bulk <b>", "watch: case=cut FAILED", "test packetdrill:a.pkt")
    assert said["cells"][0]["numbers"][0] == {
        "flow": "f", "metric": "completion_time_s", "unit": "s", "base": 1.0, "new": 1.5, "relative": 0.5, "p": None,
        "sense": "worse",
    }  # fmt: skip
    assert said["new"]["tests"] == {"pass": 1, "fail": 1}


def test_every_finding_has_a_name_of_its_own() -> None:
    """Also where a set has a spec twice, and where two factors have a level of the same text."""
    named = spec_names(("1-watch", "2-schedules", "3-schedules"))
    assert named == {"1-watch": "watch", "2-schedules": "2-schedules", "3-schedules": "3-schedules"}
    shown = ranked([number("packets", 1, 2)])
    cells = tuple(
        ChangedCell(run, named[run], ((factor, "10 ms"),), shown, "", (None, None))
        for run in ("2-schedules", "3-schedules")
        for factor in ("delay", "jitter")
    )
    answer = watched(cells=cells)
    assert len(answer.finding_numbers) == len(answer.findings) == 6
    numbered = as_json(answer)["cells"]
    assert [each["finding"] for each in numbered] == [1, 2, 3, 4]  # type: ignore[attr-defined]


def test_a_result_file_for_nipa_has_tests_and_one_entry_of_numbers_a_run() -> None:
    said = watch_results(
        watched(), Origin("netwarp-watch", "net-next-2026-08-20--15-00", "https://example.org/7"), NOW, NOW
    )
    results = {each["test"]: each for each in said["results"]}  # type: ignore[attr-defined]
    assert [(name, each["result"]) for name, each in results.items()] == [
        ("tls", "pass"), ("a-pkt", "fail"), ("1-watch", "fail"), ("splats", "fail"),
    ]  # fmt: skip
    assert results["a-pkt"]["group"] == "selftests-net-packetdrill"
    assert results["1-watch"]["results"] == [
        {"test": "watch-case-bulk-b", "result": "fail"}, {"test": "case-cut", "result": "fail"},
    ]  # fmt: skip
    assert all("retry" not in each for each in results.values())


@pytest.mark.parametrize("name", ["small", "full", "tiny"])
def test_each_set_names_parts_that_are_there(name: str) -> None:
    for run in watch_set(name).runs:
        spec = load_experiment(run.spec)
        where = [
            (factor, level)
            for factor, text in run.where.items()
            for level in ([text] if isinstance(text, str) else text)
        ]
        assert make_plan(spec, only=run.only or (), where=where).cells, run


def test_a_set_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    (tmp_path / "cell.toml").touch()
    file.write_text('[mine]\nruns = [{ spec = "cell.toml" }, { spec = "watch" }]\n')
    chosen = watch_set(str(file))
    assert (chosen.name, [run.spec for run in chosen.runs]) == ("mine", [str(tmp_path / "cell.toml"), "watch"])
    spec = watch_set(str(Path("experiments/watch/spec.toml").resolve()))
    assert [Path(run.spec).name for run in spec.runs] == ["spec.toml"]
    file.write_text("[mine]\nrun = 3\n")
    with pytest.raises(SpecError, match=r"mine\.toml: .*a set is written as"):
        watch_set(str(file))
    with pytest.raises(SpecError, match="there is no set larger; it has small, full, tiny"):
        watch_set("larger", SETS)


@pytest.mark.parametrize(
    ("ended", "answer"),
    [
        (0, 0),
        (1, 1),
        (2, 255),
        (DoesNotBuild("the compiler"), 125),
        (KernelError("a full disk, a missing tool"), 255),
        (SpecError("no such commit"), 255),
        (BackendUnavailable("no memory"), 255),
        (OSError("a full disk"), 255),
        (MemoryError(), 255),
        (RuntimeError("a fault of ours"), 255),
    ],
)
def test_a_step_of_git_bisect_ends_as_git_wants_it(
    ended: int | Exception, answer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(args: object) -> int:
        if isinstance(ended, Exception):
            raise ended
        return ended

    monkeypatch.setattr("netwarp.cli.watch._run", run)
    assert main(["kernel", "watch", "6.12", ".@HEAD", "--git-bisect"]) == answer


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["6.12"], "watch compares two kernels"),
        (["6.12", "6.13", "--finding", "1"], "--finding says what --over bisects"),
        (["6.12", "--over", "a..b"], "--over needs one git repository"),
        ([".", "--over", "a"], "wants two commits"),
        ([".", "--over", "a..b", "--finding", "0"], "wants all, or numbers from 1 on"),
        ([".", "--over", "a..b", "--finding", "1,x"], "for example --finding 1,3"),
        ([".", "--over", "a..b", "--git-bisect"], "leave one of them out"),
        (["6.12", "6.13", "--nipa", "x.json"], "--nipa needs the branch's name"),
        (["6.12", "6.12+absent.patch"], "there is no file absent.patch"),
        (["7.99", "6.12"], "no such kernel is built; for example"),
    ],
)
def test_words_that_do_not_fit_are_answered_with_an_example(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernel", "watch", *words]) == (255 if "--git-bisect" in words else 2)
    assert said in capsys.readouterr().err
