"""Classes of the pages: each belongs to one component, means one thing, and is used.

A style for one part of the report once matched cells of tables that had a class of the same name: their values stood
under the wrong columns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from netwarp.present import style, stylesheets
from netwarp.present.stylesheets import COMPONENTS, STYLES

PRESENT = STYLES.parent
TEMPLATES = PRESENT / "templates"
VERDICTS = {"holds", "fails", "unsure", "untested", "refuted"}
"""Classes that code chooses by a verdict or an outcome (present/style.py)."""
BY_CODE = VERDICTS | {"js", "v0"}
"""And whether scripts run, and the look of a variant (its styles are the run's own)."""
SCRIPTS = {
    "index": ("report", "state", "claims", "charts", "figure_blocks", "figures", "cells", "timeline", "waterfall",
              "cell", "explore"),
    "capture": ("report", "charts"),
}  # fmt: skip
PARTS = {
    "index": ("index", "summary", "conclusion", "setup", "answers", "claims", "counts", "figures", "tables",
              "grid_block", "schedules", "events", "explore", "cells", "run", "parts"),
}  # fmt: skip


def selectors(text: str) -> Iterator[str]:
    """Every selector of a style sheet, without what is inside :not(...) taken apart."""
    bare = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    for head in re.findall(r"([^{}]+)\{", bare):
        if not head.strip().startswith("@"):
            yield from (one.strip() for one in re.split(r",(?![^(]*\))", head))


def classes(selector: str) -> set[str]:
    """The classes that a selector names."""
    return set(re.findall(r"\.(-?[A-Za-z_][\w-]*)", re.sub(r'\[[^\]]*\]|"[^"]*"', "", selector)))


def styled(component: str) -> set[str]:
    """The classes that a component's file names."""
    return {name for one in selectors((STYLES / f"{component}.css").read_text()) for name in classes(one)}


def tokens(text: str) -> Iterator[str]:
    """The classes of one attribute, as patterns: what code fills in stands for anything."""
    # a test in the template chooses among words; a value that is filled in belongs to the word that it stands in
    words = re.sub(r"\{%.*?%\}", " ", text)
    for quoted in re.findall(r"\{\{[^}]*\bif\b[^}]*\}\}", words):
        yield from re.findall(r'"([\w-]+)"', quoted)
    for word in re.sub(r"\{\{.*?\}\}|\$\{[^}]*\}|\{[^}]*\}", "\x00", words).split():
        if word.strip("\x00"):
            yield re.escape(word).replace("\x00", r"[\w-]+")


def marked_up(path: Path) -> set[str]:
    """Patterns of the classes that a template, a script or a module gives to elements."""
    text = path.read_text(encoding="utf-8")
    found = set()
    if path.suffix in (".j2", ".py"):
        for attribute in re.findall(r'class="((?:\{\{.*?\}\}|\{%.*?%\}|[^"])*)"', text):
            found |= set(tokens(attribute))
    if path.suffix == ".js":
        chosen = re.findall(r'class: ([^,}]*(?:\{[^}]*\})?[^,}]*)|"class", ([^;]*);|classList\.\w+\(([^)]*)\)', text)
        for expression in ("".join(each) for each in chosen):
            for quoted in re.findall(r'"([^"]+)"', expression):
                for word in quoted.split():
                    if re.fullmatch(r"[\w-]+", word):
                        found.add(re.escape(word) + (r"[\w-]+" if word.endswith("-") else ""))
    return found


def sources(page: str) -> list[Path]:
    """The templates, scripts and modules that make a page."""
    templates = [TEMPLATES / f"{name}.html.j2" for name in PARTS.get(page, (page,))]
    scripts = [PRESENT / "static" / f"{name}.js" for name in SCRIPTS.get(page, ())]
    drawn = {"index": ("testbed_picture.py", "style.py"), "capture": ("captures/ladder_picture.py",)}
    modules = [PRESENT / name for name in drawn.get(page, ())]
    more = [path for path in (PRESENT / "pages" / f"{page}.js", PRESENT / "pages" / f"{page}.py") if path.exists()]
    return [*templates, *scripts, *modules, *more]


def hooks() -> set[str]:
    """Classes by which scripts find elements."""
    texts = [path.read_text() for path in (*(PRESENT / "static").glob("*.js"), *(PRESENT / "pages").glob("*.js"))]
    asked = re.findall(r"(?:querySelector(?:All)?|closest)\(([^)]*)\)", " ".join(texts))
    return {name for one in asked for name in re.findall(r"\.([A-Za-z][\w-]*)", one)}


@pytest.mark.parametrize("path", sorted(STYLES.glob("*.css")), ids=lambda path: path.stem)
def test_a_components_classes_begin_with_its_name(path: Path) -> None:
    """Its selectors all name it, so that no rule of it matches elsewhere; base.css names no component's class."""
    own = path.stem
    others = {one.stem for one in STYLES.glob("*.css")} - {"base"}
    if own == "base":
        assert {name for name in styled(own) if name.split("-")[0] in others} == set()
        return
    base = styled("base")
    for one in selectors(path.read_text()):
        named = classes(one)
        foreign = {name for name in named if name.split("-")[0] != own and name not in base | VERDICTS}
        assert not (foreign - allowed(own)), f"{one}: of another component"
        scoped = any(name.split("-")[0] == own for name in named) or f"#{own}" in one
        assert scoped, f"{one}: matches elsewhere"


def allowed(component: str) -> set[str]:
    """Shared components that stand inside this one."""
    return {"plain", "chart"} if component in ("capture", "events", "explore") else set()


def test_no_class_is_meant_twice() -> None:
    """A class is styled in one file: others may only use it beside their own."""
    first: dict[str, str] = {}
    for path in sorted(STYLES.glob("*.css")):
        for name in styled(path.stem):
            if name.split("-")[0] == path.stem or path.stem == "base":
                assert first.setdefault(name, path.stem) == path.stem, name


@pytest.mark.parametrize("page", sorted(COMPONENTS))
def test_every_class_is_used_and_every_used_class_means_something(page: str) -> None:
    used = {pattern for path in sources(page) for pattern in marked_up(path)}
    every = {name for path in STYLES.glob("*.css") for name in styled(path.stem)} | hooks() | BY_CODE
    nothing = {pattern for pattern in used if not any(re.fullmatch(pattern, name) for name in every)}
    assert nothing == set(), "neither a style nor a script knows them"
    others = [name for each, names in COMPONENTS.items() if each != page for name in ("base", *names)]
    own = {name for component in set(COMPONENTS[page]) - set(others) for name in styled(component)} - BY_CODE
    unused = {name for name in own if not any(re.fullmatch(pattern, name) for pattern in used)}
    assert unused == set(), "styled, but on no page"


def test_what_all_pages_share_is_used_by_one_at_least() -> None:
    used = {pattern for page in COMPONENTS for path in sources(page) for pattern in marked_up(path)}
    for path in STYLES.glob("*.css"):
        unused = {name for name in styled(path.stem) if not any(re.fullmatch(pattern, name) for pattern in used)}
        assert unused - BY_CODE == set(), path.name


def test_every_style_sheet_belongs_to_a_page() -> None:
    assert {path.stem for path in STYLES.glob("*.css")} == {
        "base",
        *(name for names in COMPONENTS.values() for name in names),
    }


def test_verdicts_have_styles() -> None:
    chosen = {kind for _, kind in (*style.VERDICTS.values(), *style.OUTCOMES.values())}
    assert chosen <= VERDICTS <= {*re.findall(r"[\w-]+", str(stylesheets.stylesheet("index")))}
