"""README, CONTRIBUTING and docs: lengths of lines, links, the files and tests they name, the table of rooms."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from support.docs_kit import PAGES, ROOT

LINE, CELL = 160, 200
PACKAGE = ROOT / "orchestrator" / "netwarp"
TRACKED = set(
    subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
)
FOLDERS = {str(folder) for path in TRACKED for folder in Path(path).parents} - {"."}
TOP = {path.split("/")[0] for path in TRACKED if "/" in path} - {"results"}
"""Folders of the checkout. results/ is not among them: it holds runs, of which none is tracked."""
RUN = {"captures", "results"}
"""Rooms whose names are also words of a run's directory."""
CODE = re.compile(r"`([^`\n]+)`")
COMMANDS = re.compile(r"^ *```(?:sh|text)\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_lines_and_cells_of_tables_are_short(page: Path) -> None:
    lines = (ROOT / page).read_text().splitlines()
    assert [number for number, line in enumerate(lines, 1) if len(line) > LINE] == []
    assert [line for line in lines if line.startswith("|") and max(map(len, line.split("|"))) > CELL] == []


def headings(page: Path) -> set[str]:
    """The anchors of a page, as a forge makes them of its headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in re.findall(r"^#+ (.*)$", text, re.M)}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", (ROOT / page).read_text()):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.exists(), target
        assert not anchor or anchor in headings(path), target


def missing(word: str) -> bool:
    """Whether a word in code names a file, a folder or a test of the checkout that is not there."""
    if re.fullmatch(r"test_\w+", word):
        return not any(f"def {word}(" in path.read_text() for path in (ROOT / "tests").rglob("test_*.py"))
    if re.fullmatch(r"\w+\.py", word):
        return not any(path.endswith(f"/{word}") for path in TRACKED)
    first = word.split("/")[0]
    if "/" not in word or re.search(r"[<>*{$]", word):
        return False
    if first in TOP:
        return word.rstrip("/") not in TRACKED | FOLDERS
    if first.isidentifier() and first not in RUN and (PACKAGE / first).is_dir():
        return not (PACKAGE / word).exists()
    return False


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_files_and_tests_named_are_there(page: Path) -> None:
    text = (ROOT / page).read_text()
    words = {word.partition("::")[0] for code in CODE.findall(text) + COMMANDS.findall(text) for word in code.split()}
    assert sorted(word for word in words if missing(word)) == []


def test_the_table_of_rooms_is_the_linters_and_the_trees() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rooms = re.findall(r"^\| `(\w+)` \|", text[text.index("| room,") : text.index("## The parts of the report")], re.M)
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    assert rooms == layers
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(rooms)
