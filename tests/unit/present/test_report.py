"""A report made of a run directory: its contents, its links, its refusals."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import statistics
import subprocess
import sys
import zlib
from collections.abc import Iterator, Mapping, Sequence
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec
import pytest
from netwarp.core.errors import StoreError
from netwarp.core.outputs import Figure
from netwarp.present.answer_words import answer_words
from netwarp.present.figures import KINDS
from netwarp.present.figures.description import Chart, HeatMap
from netwarp.present.figures.print import chart_canvas
from netwarp.present.looks import report_looks
from netwarp.present.pages.build import make_report
from netwarp.present.run_data import RunData, read_run
from netwarp.present.run_summary import _part, _randomness
from netwarp.store.run_dir import RunDir
from support.report_kit import (
    EXPECTED,
    FAILED_AT,
    HOSTILE,
    hostile_run,
    large_run,
    plan_of,
    small_run,
    spec_text,
    write_run,
)

VOID = {"meta", "link", "img", "input", "br", "hr", "path", "col"}


class Page(HTMLParser):
    """Every tag with its attributes; complains where tags do not close as they opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> at {self.getpos()}"

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        """Attributes of every such tag."""
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(run: RunDir) -> Page:
    """The page of a report."""
    return Page((run.report / "index.html").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = small_run(tmp_path_factory.mktemp("small") / "run")
    assert make_report(run) == run.report / "index.html"
    return run


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> RunDir:
    run = hostile_run(tmp_path_factory.mktemp("hostile") / "run")
    make_report(run)
    return run


def chart_of(data: RunData, figure: Figure) -> Chart:
    """The description of a figure of lines, steps or boxes."""
    described = KINDS[figure.kind](data, figure)
    assert described is not None and isinstance(described.marks, Chart)
    return described.marks


def cell_view(path: Path) -> dict[str, object]:
    """The argument of netwarp.cellLoaded in a cell's script."""
    text = path.read_text(encoding="utf-8")
    assert text.startswith("netwarp.cellLoaded(")
    view: dict[str, object] = json.loads(text.removeprefix("netwarp.cellLoaded(").removesuffix(");\n"))
    return view


def links(page: Page) -> Iterator[str]:
    """Everything the page points to."""
    for _, attributes in page.tags:
        for name in ("href", "src"):
            if (value := attributes.get(name)) is not None:
                yield value


def test_every_link_of_the_page_leads_somewhere_and_none_to_the_net(small: RunDir, hostile: RunDir) -> None:
    for run in (small, hostile):
        page = page_of(run)
        ids = {attributes["id"] for _, attributes in page.tags if "id" in attributes}
        files = 0
        for link in links(page):
            address = urlsplit(link)
            assert address.scheme in ("", "data"), link
            if address.scheme == "data":
                continue
            if address.path:
                assert Path(str(run.report), unquote(address.path)).is_file(), link
                files += 1
            elif not address.fragment.startswith("cell="):
                assert address.fragment.partition("?")[0] in ids, link
        assert files > 10


def test_every_file_a_cell_links_to_is_there(small: RunDir, hostile: RunDir) -> None:
    for run in (small, hostile):
        scripts = list((run.report / "cells").glob("*.js"))
        assert {path.name for path in scripts} == {f"{cell}.js" for cell in run.finished()}
        for script in scripts:
            for file in cell_view(script)["files"]:  # type: ignore[attr-defined]
                target = Path(str(run.report), unquote(file["href"]))
                assert target.is_file()
                assert target.stat().st_size == file["bytes"]


def test_the_page_is_sound_for_screen_readers(small: RunDir, hostile: RunDir) -> None:
    for run in (small, hostile):
        page = page_of(run)
        names = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
        assert len(names) == len(set(names))
        assert dict(page.tags)["html"]["lang"] == "en"
        assert len(page.of("caption")) == len(page.of("table")) > 4
        assert all(attributes.get("scope") for attributes in page.of("th"))
        assert all(attributes.get("alt") for attributes in page.of("img"))
        assert len(page.of("h1")) == len(page.of("main")) == 1
        for tag, attributes in page.tags:
            if attributes.get("role") in ("img", "region", "group"):
                assert attributes.get("aria-label"), (tag, attributes)
            assert not any(name.startswith("on") for name in attributes), "handlers live in the scripts"


def test_numbers_of_the_tables_are_on_the_page(small: RunDir) -> None:
    text = "".join(page_of(small).text)
    with open(small.tables / "outages.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    shown = [row for row in rows if row["value"]]
    assert len(rows) == 12
    assert len(shown) == 10
    for row in shown:
        assert f"{float(row['value']):.4f}" in text
    tcp = {row["outage"]: float(row["value"]) for row in rows if row["variant"] == "tcp" and row["value"]}
    assert f"+{(tcp['20 s'] / 0.6 - 1) * 100:.0f}\u202f%" in text


def test_beside_a_table_stands_which_buffers_may_decide_its_numbers(tmp_path: Path) -> None:
    text = spec_text().replace('"50 packets"', '"5 MB"')
    run = write_run(tmp_path / "deep", plan_of(text, tmp_path / "spec", EXPECTED))
    make_report(run)
    page = run.report.joinpath("index.html").read_text()
    block = page[page.index('id="table-outages"') : page.index("outages.csv")]
    assert "&#34;ftp&#34; of 4 of 12 cells cannot fill the queue of its path" in block, "of TCP"
    assert "&#34;ftp&#34; of 8 of 12 cells cannot fill the queue of its path" in block, "of SCTP"
    assert "net.ipv4.tcp_rmem" in block and "rcvbuf" in block


def test_the_summary_counts_what_is_there(small: RunDir) -> None:
    text = " ".join("".join(page_of(small).text).split())
    assert "10 of 12 cells completed; 1 FAILED, 1 NOT_RUN" in text
    assert "Of 3 claims, 1 was tested on Linux 6.12: 1 does not hold; 2 were not tested." in text
    assert "Of 1 test of them under other conditions, 1 was not tested." in text
    assert "Calibration: 1 of 2 measured quantities within their bounds." in text
    checks = 11 * 40 + 10 * 12
    assert f"{checks} self-checks" in text
    assert "1 failed" in text


def test_a_cell_that_failed_says_why_and_has_no_measurements(small: RunDir) -> None:
    cell = read_run(small).cells[FAILED_AT]
    view = cell_view(small.report / "cells" / f"{cell.id}.js")
    assert (view["outcome"], view["measurements"], view["series"]) == ("FAILED", [], None)
    assert view["reason"] == "the guest hung at T0 + 40 s"
    assert view["console_tail"]


def test_figures_can_be_printed_and_their_numbers_read(small: RunDir) -> None:
    pdf = (small.report / "figures" / "outage.pdf").read_bytes()
    streams = [zlib.decompress(part) for part in re.findall(rb"stream\r?\n(x.*?)endstream", pdf, re.S)]
    assert b"/FontFile2" in pdf + b"".join(streams), "TrueType, embedded"
    assert b"/Type3" not in pdf + b"".join(streams)
    svg = (small.report / "figures" / "outage.svg").read_text()
    assert "<text" not in svg, "letters are drawn: no font is asked for"
    data = read_run(small)
    chart = chart_of(data, data.plan.figures[0])
    with open(small.report / "figures" / "outage.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(len(line.x) for line in chart.series) == 12
    with open(small.tables / "outage.csv", newline="") as file:
        table = {(row["variant"], row["failover"], row["outage"]): row["value"] for row in csv.DictReader(file)}
    own = {
        (row["line"], row["length of the outage (s)"]): row["goodput (kbit/s)"]
        for row in rows
        if row["source"] == "Linux 6.12"
    }
    assert float(own["TCP", "20"]) == pytest.approx(float(table["tcp", "-", "20 s"]) / 1000)
    assert float(own["SCTP, two paths, default", "10"]) == pytest.approx(
        float(table["multi", "default", "10 s"]) / 1000
    )


def test_an_axis_is_logarithmic_where_the_spec_says_so(small: RunDir) -> None:
    data = read_run(small)
    asked = msgspec.structs.replace(data.plan.figures[0], log=True)
    charts = [chart_of(data, figure) for figure in (data.plan.figures[0], asked)]
    assert [chart.y.kind for chart in charts] == ["linear", "log"]
    (axes,) = chart_canvas(charts[1], report_looks(data)).axes
    assert axes.get_yscale() == "log"


def test_the_same_run_makes_the_same_bytes(small: RunDir) -> None:
    def bytes_of(folder: Path) -> dict[str, bytes]:
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    before = bytes_of(small.report)
    make_report(small)
    assert bytes_of(small.report) == before


def test_an_old_report_is_replaced_whole(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    run.report.mkdir()
    (run.report / "stale.html").write_text("old")
    make_report(run)
    assert not (run.report / "stale.html").exists()
    assert [path.name for path in run.root.iterdir() if path.name.startswith(".report")] == []


def test_repetitions_of_something_random_have_intervals(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 180)
    make_report(run)
    data = read_run(run)
    chart = chart_of(data, data.plan.figures[0])
    counted = [n for line in chart.series for n in line.n]
    assert sorted(counted) == [2, *[3] * 11], "one cell of this figure failed"
    for line in chart.series:
        for y, low, high, n in zip(line.y, line.low, line.high, line.n, strict=True):
            assert low is not None
            assert high is not None
            assert low < y < high
            assert n > 1
    text = "".join(page_of(run).text)
    assert "95 % confidence interval" in text
    assert f"(n = {data.plan.repetitions})" in text


def test_names_stay_names(hostile: RunDir) -> None:
    page = page_of(hostile)
    assert all(attributes.get("src") != "x" for attributes in page.of("img"))
    assert HOSTILE in "".join(page.text)
    source = (hostile.report / "index.html").read_text(encoding="utf-8")
    assert source.count("</script>") == len(page.of("script"))
    for script in (hostile.report / "cells").glob("*.js"):
        assert "<" not in script.read_text(encoding="utf-8")


def test_a_run_without_claims_tables_or_calibration_has_a_report(tmp_path: Path) -> None:
    from support.report_kit import plan_of, spec_text

    bare = spec_text().partition("[table.outages]")[0]
    run = write_run(tmp_path / "run", plan_of(bare, tmp_path / "spec"))
    make_report(run)
    text = "".join(page_of(run).text)
    assert "12 of 12 cells completed (each one run of one condition" in text and "All 12 cells" not in text
    assert re.search(r"Ftp, 12 cells: goodput [\d.]+ to [\d.]+ kbit/s", text), "the key number"
    assert "No calibration is stored with this run" in text


def test_a_run_of_which_no_cell_completed_has_a_report_without_figures(tmp_path: Path) -> None:
    from support.report_kit import plan_of, spec_text

    plan = plan_of(spec_text(), tmp_path / "spec")
    assert plan.figures
    run = write_run(tmp_path / "run", plan, failed=range(len(plan.cells)))
    make_report(run)
    assert not list((run.report / "figures").glob("*.pdf"))
    assert f"0 of {len(plan.cells)} cells" in " ".join("".join(page_of(run).text).split())


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"plan\.json"):
        make_report(RunDir(tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_a_broken_file_of_a_cell_is_named(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run")
    make_report(run)
    before = (run.report / "index.html").read_bytes()
    broken = run.cell(sorted(run.finished())[0]).environment
    broken.write_text("{")
    with pytest.raises(StoreError, match=re.escape(str(broken))):
        make_report(run)
    assert (run.report / "index.html").read_bytes() == before, "the report of before stays"


def test_matplotlib_is_not_imported_before_it_draws() -> None:
    code = "import sys, netwarp.present; print(sorted({'matplotlib', 'plotly'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def with_measured(data: RunData, measured: Mapping[str, Sequence[tuple[str, str, float | None]]]) -> RunData:
    """The run with other measurements, in place of those of its table."""
    other = dataclasses.replace(data)
    vars(other)["measured"] = measured  # where its cached_property keeps it
    return other


def test_randomness_is_reported_as_observed(tmp_path: Path) -> None:
    """Counted from the measurements, whatever the plan knows to be random."""
    run = large_run(tmp_path / "run", 120)
    data = read_run(run)
    sentence = _randomness(data)
    repetitions = data.plan.repetitions
    assert repetitions > 1
    assert f"differ between {repetitions} repetitions" in sentence
    assert "goodput (" in sentence
    assert "outage" not in sentence, "the same in every repetition"
    one = {metric: value for _, metric, value in data.measured[data.cells[0].id]}
    same = {cell: [("ftp", metric, value) for metric, value in one.items()] for cell in data.measured}
    sentence = _randomness(with_measured(data, same))
    assert "None of the " in sentence
    assert "no interval applies" in sentence
    assert "no two completed" in _randomness(with_measured(data, {}))


def test_every_kind_of_figure_says_the_numbers_of_its_table(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 120)
    make_report(run)
    data = read_run(run)
    by_name = {figure.name: figure for figure in data.plan.figures}

    def rows(path: Path) -> list[dict[str, str]]:
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    # the map: every mean of the table stands in it, and where there is none it says why
    table = rows(run.tables / "map.csv")
    drawn = rows(run.report / "figures" / "map.csv")
    assert sorted(float(row["value"]) for row in table if row["value"]) == sorted(
        float(row["first new data sent, other path (s)"]) for row in drawn if row["first new data sent, other path (s)"]
    )
    assert len(table) == len(drawn) == 3 * 4 * 5
    assert {row["note"] for row in drawn if not row["first new data sent, other path (s)"]} == {
        "nothing to measure",
        "FAILED",
    }
    described = KINDS["heatmap"](data, by_name["map"])
    assert described is not None and isinstance(described.marks, HeatMap)
    heatmap = described.marks
    assert [panel.label for panel in heatmap.panels] == ["TCP", "SCTP, two paths, default", "SCTP, two paths, rfc4960"]
    assert heatmap.y.text == ("10", "50", "100", "200", "1000")
    spot = heatmap.panels[1].spots[3][2]
    assert spot is not None
    (mean,) = {
        float(row["value"]) for row in table
        if (row["variant"], row["failover"], row["rtt"], row["outage"]) == ("multi", "default", "200 ms", "10 s")
    }  # fmt: skip
    assert spot.value == pytest.approx(mean)
    # distributions: every draw, in order, with quartiles that numpy agrees on
    for name in ("spread", "boxes"):
        draws = sorted(float(row["value"]) / 1000 for row in rows(run.tables / f"{name}.csv") if row["value"])
        shown = sorted(float(row["goodput (kbit/s)"]) for row in rows(run.report / "figures" / f"{name}.csv"))
        assert shown == pytest.approx(draws)
        chart = chart_of(data, by_name[name])
        for box in chart.boxes:
            (values,) = (series.y for series in chart.series if abs(series.x[0] - box.at) < box.width / 2)
            assert list(values) == sorted(values)
            assert box.quartiles[2] == pytest.approx(statistics.median(values))
        if not chart.boxes:
            assert all(series.x[1:] == tuple(sorted(series.x[1:])) and series.y[-1] == 100 for series in chart.series)
    text = "".join(page_of(run).text)
    first = next(row for row in rows(run.tables / "boxes.csv"))
    assert first["note"].endswith("FAILED")
    repetitions = data.plan.repetitions
    assert f"{repetitions - 1} of {repetitions}" in text, "a box says how many of its cells have a value"
    for name in by_name:
        for suffix in ("pdf", "svg", "csv"):
            assert (run.report / "figures" / f"{name}.{suffix}").stat().st_size > 300


def test_an_answer_is_a_grid_of_the_verdicts_of_its_table(tmp_path: Path) -> None:
    run = large_run(tmp_path / "run", 120)
    make_report(run)
    (answer,) = answer_words(read_run(run))
    with open(run.tables / "answer-budget.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    grid = {
        (condition.split()[1] + " ms", choice["setting"], budget): (choice["exact"], verdict)
        for condition, choices in answer["conditions"]
        for choice in choices
        for budget, (verdict, _, _) in zip(answer["budgets"], choice["verdicts"], strict=True)
    }
    assert grid == {(row["rtt"], row["failover"], row["budget"]): (row["worst"], row["verdict"]) for row in rows}
    assert len(grid) == 5 * 2 * 2
    for _, choices in answer["conditions"]:
        worst = [float(choice["exact"]) for choice in choices]
        assert worst == sorted(worst), "the best choice first"
    text = "".join(page_of(run).text)
    for condition, sentence in answer["sentences"]:
        assert condition in text
        assert sentence in text


@pytest.mark.parametrize(
    ("filters", "part"),
    [
        ((), ""),
        (("only outages",), "outages only"),
        (("only base", "only robustness"), ""),
        (("only base", "only robustness", "variant=multi"), "variant: SCTP, two paths"),
    ],
)
def test_a_part_is_called_one(filters: tuple[str, ...], part: str, tmp_path: Path) -> None:
    """Base and robustness together are the whole, unless something else was left out."""
    data = read_run(small_run(tmp_path / "run"))
    data = dataclasses.replace(data, plan=msgspec.structs.replace(data.plan, filters=filters))
    assert _part(data) == ((f"This run covers a part of the experiment: {part}.",) if part else ())
    data = dataclasses.replace(data, plan=msgspec.structs.replace(data.plan, filters=("only base",)))
    assert _part(data)[0].startswith("Every table and figure is of this run.")
