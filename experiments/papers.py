"""A page over the papers' results: results/papers.html (`make papers`).

Of each paper with reference results: its conclusions and causes with every source's number, by the newest run of this
checkout (results/NAME/latest, with a link to its report), or by the reference where there is none.
"""

from __future__ import annotations

import csv
import html
from collections import Counter
from pathlib import Path

import reference
from netwarp.core.outputs import Claim
from netwarp.engine.run_directory import open_run
from netwarp.experiment import load_spec
from netwarp.present.conclusions import CLASSES, verdict_words
from netwarp.present.style import VERDICTS, verdict_shown

PAGE = reference.ROOT / "results" / "papers.html"
HEAD = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Papers</title>
<style>
body { font: 16px/1.45 sans-serif; max-width: 60rem; margin: 1rem auto; padding: 0 1rem; color: #1a1a1a; }
li { margin: .4rem 0; } .verdict { font-weight: bold; white-space: nowrap; } .numbers { color: #444; }
img { max-width: 100%; }
</style>
<h1>Do the papers' conclusions hold?</h1>
"""


def page(results: Path) -> str:
    """The page. results: the folder of runs; an experiment without a run there is shown by its reference results."""
    names = sorted(place.name for place in reference.REFERENCE.iterdir())
    return HEAD + "\n".join(_paper(name, results) for name in names) + "\n</html>\n"


def _paper(name: str, results: Path) -> str:
    spec = load_spec(reference.ROOT / "experiments" / name)
    latest = results / name / "latest"
    newest = (latest / "tables" / "claims.csv").exists()
    of_the_run = open_run(latest).plan.claims if newest else reference.kept_claims(name)
    claims = reference.claims_of(spec.claims, of_the_run)
    claims_csv = (latest / "tables" if newest else reference.REFERENCE / name) / "claims.csv"
    rows = [row for row in csv.DictReader(claims_csv.read_text().splitlines()) if not row["condition"]]
    columns = reference.columns_of(spec, "Linux today")
    report = f' (<a href="{name}/latest/report/index.html">report</a>)' if newest else " (reference results)"
    parts = [f"<section><h2>{html.escape(name)}: {html.escape(spec.title)}{report}</h2>"]
    for kind in ("conclusion", "cause"):
        items = [_claim(row, claims, columns) for row in reference.ordered(rows, spec) if row["class"] == kind]
        verdicts = Counter(row["verdict"] for row in rows if row["class"] == kind)
        parts.append(f"<h3>{len(items)} {CLASSES[kind][1]}: {verdict_words(verdicts)}</h3><ul>{''.join(items)}</ul>")
    return "\n".join([*parts, "</section>"])


def _claim(row: reference.Row, claims: dict[str, Claim], columns: dict[str, str]) -> str:
    claim = claims[row["claim"]]
    numbers = ", ".join(f"{columns[key]} {reference.number(row, key, claim)}" for key in columns if row.get(key))
    said = f"{VERDICTS[row['verdict']][0]} {verdict_shown(row['verdict'])}"
    return (
        f"<li>{row['claim']} {html.escape(claim.text)} <span class=verdict>{said}</span>"
        f"<br><span class=numbers>{html.escape(numbers)}</span></li>"
    )


if __name__ == "__main__":
    PAGE.write_text(page(reference.ROOT / "results"))
