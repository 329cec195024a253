"""A page over the papers' results: results/papers.html (`make papers`).

Of each paper with reference results: the answer, its conclusions and causes with every source's number, by the newest
run of this checkout (results/NAME/latest, with a link to its report), or by the reference where there is none.
"""

from __future__ import annotations

import html
from pathlib import Path

import reference
from netwarp.plan.types import Outputs
from netwarp.present.claim_blocks import Statement, statements
from netwarp.present.conclusions import ClaimGrid, answer, claim_grid
from netwarp.present.run_data import RunData, read_run
from netwarp.present.style import VERDICTS
from netwarp.store.run_dir import RunDir

PAGE = reference.ROOT / "results" / "papers.html"
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Papers</title>
<style>
body { font: 16px/1.45 sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; color: #1a1a1a; }
table { border-collapse: collapse; margin: 1rem 0; } th { text-align: left; font-weight: normal; }
th, td { padding: .3rem .5rem; vertical-align: top; border-bottom: 1px solid #ccc; }
</style>
<h1>Do the papers' conclusions hold?</h1>
"""


def page(results: Path) -> str:
    """The page. results: the folder of runs; an experiment without a run there is shown by its reference results."""
    return HEAD + "\n".join(_paper(name, results) for name in reference.of_papers()) + "\n</html>\n"


def _paper(name: str, results: Path) -> str:
    latest = results / name / "latest"
    newest = (latest / "tables" / "claims.csv").exists()
    plan, claims, system = _of_run(read_run(RunDir(latest))) if newest else reference.kept(name)
    report = f' (<a href="{name}/latest/report/index.html">report</a>)' if newest else " (reference results)"
    parts = [
        f"<section><h2>{html.escape(name)}: {html.escape(plan.title)}{report}</h2>",
        f"<p>{html.escape(answer(plan, claims, system))}</p>",
    ]
    grid = claim_grid(plan, claims)
    for title, shown in (("The paper says", (*grid.first, *grid.rest)), ("Because, it says", grid.causes)):
        heads = "".join(f"<th>{html.escape(head)}" for head in (title, *(head for _, head in grid.columns)))
        parts.append(f"<table><tr>{heads}{''.join(_claim(grid, claim) for claim in shown)}</table>")
    return "\n".join([*parts, "</section>"])


def _of_run(data: RunData) -> tuple[Outputs, tuple[Statement, ...], str]:
    return data.plan, statements(data), data.system


def _claim(grid: ClaimGrid, claim: Statement) -> str:
    fields = [
        f"{VERDICTS[field.verdict][0] if field.verdict else ''} {field.text} {field.note}" for field in grid.row(claim)
    ]
    return f"<tr><th>{claim.id} {html.escape(claim.text)}{''.join(f'<td>{html.escape(field)}' for field in fields)}"


if __name__ == "__main__":
    PAGE.write_text(page(reference.ROOT / "results"))
