"""What a command concluded from a run is the first thing that its report says, in the words of the terminal."""

from __future__ import annotations

import ast
import html
import re
from pathlib import Path

import msgspec
import netwarp
import pytest
from netwarp.core.lines import lines_text
from netwarp.present.cell_list import make_listing
from netwarp.present.conclusion_words import conclusion_lines
from netwarp.present.conclusions import broken_flows
from netwarp.present.pages.build import make_report
from netwarp.present.run_data import read_run
from netwarp.store.conclusion import read_conclusion, write_conclusion
from netwarp.store.run_dir import RunDir
from support.report_kit import concluded, small_run


def first_screen(run: RunDir) -> str:
    """The markup of the report's first section."""
    page = make_report(run).read_text()
    return page.partition('<section id="summary"')[2].partition("</section>")[0]


def shown(markup: str) -> str:
    """Its text, as it is read."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    return small_run(tmp_path / "run")


def labels(run: RunDir) -> dict[str, str]:
    """Cell id -> its levels in words."""
    return {row.id: row.label for row in make_listing(read_run(run)).rows}


def test_the_report_begins_with_what_was_concluded(run: RunDir) -> None:
    before = shown(first_screen(run))
    assert "claims" in before, "without a conclusion the claims answer"
    conclusion = concluded(run)
    write_conclusion(run, conclusion)
    assert read_conclusion(run) == conclusion
    markup = first_screen(run)
    text = shown(markup)
    assert "Of 3 claims" not in text and "<script>alert" not in markup
    at = -1
    for part in conclusion.parts:
        for each in part.sentences:
            cells = [labels(run)[cell] for cell in each.cells]
            for words in filter(None, (each.name, each.text, each.remedy, *cells)):
                found = text.find(" ".join(words.split()), at + 1)
                assert found > at, f"{words}: not there, or not in its order"
                at = max(at, found)
        for row in part.rows:
            assert " ".join(row).strip() in text
    for cell in conclusion.parts[0].sentences[0].cells:
        assert f'href="#cell={cell}"' in markup
    assert text.index(conclusion.answer) < text.index("What is wrong") < text.index("What is well")


def test_terminal_and_report_say_the_same(run: RunDir) -> None:
    conclusion = concluded(run)
    write_conclusion(run, conclusion)
    text = shown(first_screen(run))
    for line in lines_text(conclusion_lines(conclusion)).splitlines():
        words = re.sub(r"^\s*(\d+\. |\u2022 |\u2192 |cells?: )?", "", line)
        for cell, label in labels(run).items():  # a report has links, a terminal what `--where` and `explain` take
            words = words.replace(cell, label)
        for part in re.split(r"\s{2,}|, ", words):
            assert " ".join(part.split()) in text.replace(" ,", ","), line


def test_other_tables_are_said_to_be_others(run: RunDir) -> None:
    write_conclusion(run, concluded(run))
    assert "made again" not in shown(first_screen(run))
    path = run.tables / "measurements.csv"
    path.write_text(path.read_text().replace("1", "2"))
    assert "The tables were made again since netwarp sctp check ended" in shown(first_screen(run))


def test_an_unknown_key_is_refused(run: RunDir) -> None:
    run.conclusion.write_bytes(msgspec.json.encode({"command": "x", "answer": "y", "verdict": "z"}))
    with pytest.raises(netwarp.StoreError, match=r"conclusion\.json"):
        read_conclusion(run)


def test_every_command_that_makes_a_run_of_its_own_with_a_report_concludes() -> None:
    """A call of run() or run_plan() in the engine says what it concludes, or makes no report."""
    engine = Path(netwarp.__file__).parent / "engine"
    silent, said = [], 0
    for path in engine.glob("*.py"):
        if path.name == "running.py":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("run", "run_plan"):
                words = {word.arg: word.value for word in node.keywords}
                no_report = isinstance(words.get("report"), ast.Constant)
                said += "conclude" in words
                if "conclude" not in words and not no_report:
                    silent.append(f"{path.name}:{node.lineno}")
    assert (silent, said) == ([], 4)


def test_flows_that_ended_badly_are_named_with_what_they_did_not_deliver() -> None:
    def of(
        cell: str, flow: str, broken: float, gave_up: float | None, missing: float, setup: float | None
    ) -> list[tuple[str, str, str, float | None]]:
        named = {
            "broken_connections": broken, "gave_up_s": gave_up, "undelivered_bytes": missing, "setup_time_s": setup,
            "goodput_bit_s": 1e6,
        }  # fmt: skip
        return [(cell, flow, name, value) for name, value in named.items()]

    measured = [
        *of("1", "dies", 0, None, 0, 0.04), *of("2", "dies", 1, 9.936, 2_448_000, 0.04),
        *of("1", "well", 0, None, 0, 0.04), *of("2", "never", 1, None, 0, None),
        *of("2", "reset", 1, None, 100, 0.04),
    ]  # fmt: skip
    assert broken_flows(measured) == (
        "dies gave up after 9.936 s, 2.448 MB not delivered (in 1 of 2 cells; the first)",
        "never was never answered",
        "reset was cut off before its end, 100 bytes not delivered",
    )
    many = [row for number in range(9) for row in of("1", f"f{number}", 1, 1.0, 1, 0.04)]
    assert broken_flows(many)[-1] == "4 more flows ended badly (metric broken_connections)"
    assert len(broken_flows(many)) == 6
    assert broken_flows([]) == ()
