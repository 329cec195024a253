"""Keeps what a kernel did in this experiment, checks another run against it, and writes the table of the README.

golden.py keep RUN      kernels/<release>.json: the verdicts, and a hash of each cell's captures; then the table.
                        Of a part of the experiment: the rest stays. On kernels built for it: builds.json
                        Status 1, and nothing is written: a cell did not complete
golden.py check RUN     are the captures those of the same kernel there? status 1: no, 77: none is there
golden.py compare RUN   the statements on which the kernel is judged otherwise than others that are kept there;
                        a patched kernel (same release, another hash) is compared with the one that it is made from
golden.py               writes the table of README.md again
"""

from __future__ import annotations

import csv
import hashlib
import json
import re
import sys
import textwrap
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
from netwarp.core.numbers import in_short, readable
from netwarp.core.outputs import Claim
from netwarp.core.types import Cell, Outcome
from netwarp.engine.run_directory import open_run
from netwarp.experiment import load_spec

HERE = Path(__file__).resolve().parent
NAMES = ("recovery", "rfc9438", "bbr")
SHOWN = {"rfc9438": ("tables", "epochs", "phases")}
"""Tables of a run that are kept, and shown in the README."""
MEASURED = ("bbr",)
"""Of these the table has what was measured beside each verdict."""
BUILDS = {"rfc9438": ("small-c", "large-c")}
"""Experiments that run on kernels built for them: what they came to is kept by itself, and shown in the README."""
TITLES = {
    "tables": "Average window in packets: the RFC's table, its equations, the models in whole round trips, and Linux",
    "epochs": "Round trips of one of CUBIC's epochs, less those of the model in which it follows Reno",
    "phases": "A rise of the round trip after a timeout: the window at which HyStart ends slow start (0: it does not)",
}
BEGIN = "<!-- table: experiments/golden.py writes what follows (kernels/, claims.toml, differences.toml) -->"
END = "<!-- end of the table -->"
PAGE = HERE.parent / "docs" / "referee.md"
"""The page that counts them."""
HOLDS = "holds"
NOT_TESTED = "not tested"
AT_ONCE_S = 1e-5
WIDTH = 158
Kept = dict[str, Any]
Row = dict[str, str]


def what_it_did(path: Path) -> Kept:
    """The verdict of every claim of a run, and a hash over the captures of every cell ("": it did not complete)."""
    run = open_run(path)
    with (path / "tables" / "claims.csv").open(newline="") as file:
        claims = {f"{row['claim']} {row['condition']}".strip(): row for row in csv.DictReader(file)}
    asked = [cell.kernel for cell in run.plan.cells if cell.kernel is not msgspec.UNSET]
    release, sha256 = run.manifest.kernel_release, run.manifest.kernel_sha256
    if asked:
        release, sha256 = asked[0].release, asked[0].sha256
    return {
        "experiment": run.plan.name,
        "release": release,
        "kernel_sha256": sha256,
        "claims": {name: {key: row[key] for key in ("verdict", "measured", "unit")} for name, row in claims.items()},
        "tables": {name: (path / "tables" / f"{name}.csv").read_text() for name in SHOWN.get(run.plan.name, ())},
        "captures": {
            named(cell): cell_hash(run.directory.cell(cell.id).packets) if run.results.completed(cell.id) else ""
            for cell in run.plan.cells
        },
    }


def incomplete(path: Path) -> list[str]:
    """The cells of a run that did not complete, and why. What they tested is not judged, and an old verdict would stand
    for it.
    """
    run = open_run(path)
    ends = {named(cell): run.results.outcomes.get(cell.id) for cell in run.plan.cells}
    return [
        f"{name}: not run" if end is None else f"{name}: {end.outcome}, {end.reason}"
        for name, end in ends.items()
        if end is None or end.outcome is not Outcome.COMPLETED
    ]


def named(cell: Cell) -> str:
    """A cell by its levels and its seed. Its id would change with the kernel, and with what a plan says of a link."""
    return ", ".join([*(f"{factor}: {level}" for factor, level in cell.factors.items()), f"seed {cell.seed}"])


def cell_hash(packets: Path) -> str:
    """SHA-256 over the names and digests of a cell's captures, its first 16 digits."""
    return hashlib.sha256(json.dumps(json.loads(packets.read_text()), sort_keys=True).encode()).hexdigest()[:16]


def kernels(name: str) -> list[Kept]:
    """What is kept of an experiment, older releases first."""
    kept = [json.loads(path.read_text()) for path in (HERE / name / "kernels").glob("*.json")]
    return sorted(kept, key=lambda each: [int(number) for number in each["release"].split(".")])


def with_the_rest(did: Kept) -> Kept:
    """With what is kept of the same kernel where a part of an experiment was run; without what nothing tested."""
    kept = next((each for each in kernels(did["experiment"]) if each["kernel_sha256"] == did["kernel_sha256"]), None)
    claims = {
        name: kept["claims"].get(name, row) if kept and row["verdict"] == NOT_TESTED else row
        for name, row in did["claims"].items()
    }
    did = did | {"claims": {name: row for name, row in claims.items() if row["verdict"] != NOT_TESTED}}
    if kept and kept["captures"].keys() - did["captures"].keys():
        return did | {"tables": did["tables"] | kept["tables"], "captures": kept["captures"] | did["captures"]}
    return did


def differing(did: Kept) -> list[str] | None:
    """The cells whose captures are not those that are kept of the same kernel; None: nothing is kept of it."""
    for kept in kernels(did["experiment"]):
        if kept["kernel_sha256"] == did["kernel_sha256"]:
            known: dict[str, str] = kept["captures"]
            return [cell for cell, digest in did["captures"].items() if known.get(cell) != digest]
    return None


def base_of(did: Kept) -> Kept | None:
    """The kernel that a patched one is made from: what is kept of the same release with another hash."""
    kept = (each for each in kernels(did["experiment"]) if each["release"] == did["release"])
    return next((each for each in kept if each["kernel_sha256"] != did["kernel_sha256"]), None)


def label(did: Kept) -> str:
    """The kernel of a run: a patched one has the release of its base, so its hash names it."""
    changed = f", a kernel of its own ({did['kernel_sha256'][:8]})" if base_of(did) else ""
    return f"Linux {did['release']}{changed}"


def compared_with(did: Kept) -> dict[str, Kept]:
    """Name -> the kernels that a run is compared with: of a patched kernel its base alone; else the other releases."""
    if base := base_of(did):
        return {f"{base['release']} as it is kept": base}
    others = kernels(did["experiment"])
    return {each["release"]: each for each in others if each["kernel_sha256"] != did["kernel_sha256"]}


def disagreements(did: Kept) -> list[str]:
    """The statements on which a kernel that it is compared with is judged otherwise."""
    lines: list[str] = []
    for name, row in did["claims"].items():
        others = {kernel: kept["claims"].get(name) for kernel, kept in compared_with(did).items()}
        differing = {kernel: other for kernel, other in others.items() if other and other["verdict"] != row["verdict"]}
        if differing and row["verdict"] != NOT_TESTED:
            kept = ", ".join(f"{kernel}: {other['verdict']} {number(other)}" for kernel, other in differing.items())
            lines.append(f"{name}: {row['verdict']} {number(row)}; Linux {kept}")
    return lines


def table(experiment: str) -> str:
    """The statements in words, by kernel; below them what differs."""
    found, claims = kernels(experiment), {claim.id: claim for claim in load_spec(HERE / experiment).claims}
    reasons, notes = differences(experiment), list[str]()
    said_by = "draft" if experiment == "bbr" else "RFC"
    lines = [f"| | statement | {said_by} | {' | '.join(each['release'] for each in found)} |"]
    lines.append(f"| --- | --- | --- |{' --- |' * len(found)}")
    for name in dict.fromkeys(name for each in found for name in each["claims"]):
        claim, condition = claims[name.partition(" ")[0]], name.partition("=")[2]
        rows = [each["claims"].get(name) for each in found]
        text = f"{claim.text} ({condition})" if condition else claim.text
        words = " | ".join(verdict(row) if experiment not in MEASURED else with_number(row) for row in rows)
        lines.append(f"| {claim.id} | {text} | {first_source(claim)} | {words} |")
        if name in reasons:
            note = f"- **{claim.id}**, {numbers(claim, rows)}: {reasons[name]}"
            notes.append(textwrap.fill(note, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    for name in SHOWN.get(experiment, ()):
        lines += ["", *kept_table(found, name)]
    return "\n".join([*lines, *of_builds(experiment, claims), "", "**What differs, and where:**", "", *notes])


def of_built_kernels(experiment: str) -> dict[str, Row]:
    """What became of the claims that are asked of kernels built for them."""
    file = HERE / experiment / "builds.json"
    return json.loads(file.read_text())["claims"] if file.exists() else {}


def of_builds(experiment: str, claims: dict[str, Claim]) -> list[str]:
    """The statements of kernels that are built for it, with what was measured."""
    rows = of_built_kernels(experiment).items()
    if not rows:
        return []
    lines = ["", "**Of kernels built for it:**", "", "| | statement | RFC | |", "| --- | --- | --- | --- |"]
    return lines + [f"| {i} | {claims[i].text} | {first_source(claims[i])} | {with_number(row)} |" for i, row in rows]


def kept_table(found: list[Kept], name: str) -> list[str]:
    """A table of the runs: its axes, what stands beside its numbers, and the number of each kernel."""
    kept = {each["release"]: each["tables"][name] for each in found if name in each["tables"]}
    tables = {release: list(csv.DictReader(text.splitlines())) for release, text in kept.items()}
    first = next(iter(tables.values()))
    columns = list(first[0])
    axes, beside = columns[: columns.index("value")], columns[columns.index("note") + 1 :]
    beside = [column for column in beside if any(row[column] for row in first)]
    heads = [*axes, *(column.removesuffix("_packets").replace("_", " ") for column in beside), *tables]
    lines = [f"**{TITLES[name]}**", "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for number_of, row in enumerate(first):
        values = [rows[number_of]["value"] for rows in tables.values()]
        cells = [row[axis] for axis in axes] + [short(row[column]) for column in beside] + [short(v) for v in values]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def short(text: str) -> str:
    """A number with four digits."""
    return readable(float(text), 4) if text else "-"


def verdict(row: Row | None) -> str:
    """A cell of the table."""
    if row is None or row["verdict"] == NOT_TESTED:
        return "-"
    return {HOLDS: HOLDS, "does not hold": "**differs**"}.get(row["verdict"], row["verdict"])


def with_number(row: Row | None) -> str:
    """The same with what was measured."""
    if row is None or not row["measured"]:
        return verdict(row)
    measured = short(row["measured"]) if row["unit"] == "packets" else in_short(float(row["measured"]), row["unit"], 4)
    return f"{verdict(row)} {measured}"


def number(row: Row) -> str:
    """What was measured, in brackets."""
    return f"({shown(float(row['measured']), row['unit'])})" if row["measured"] else "(nothing)"


def numbers(claim: Claim, rows: list[Row | None]) -> str:
    """What was measured where it differs, and what the claim allows."""
    assert claim.expected is not None and claim.tolerance is not None
    low, high = claim.expected - claim.tolerance, claim.expected + claim.tolerance
    wrong = [row for row in rows if row is not None and row["verdict"] != HOLDS]
    unit = wrong[0]["unit"]
    measured = dict.fromkeys(shown(float(row["measured"]), unit) for row in wrong if row["measured"])
    allowed = dict.fromkeys((shown(low, unit), shown(high, unit)))
    return f"{' and '.join(measured)} where it must be {'at once' if high == AT_ONCE_S else ' to '.join(allowed)}"


def shown(value: float, unit: str) -> str:
    """A number; of packets without the word."""
    return f"{value:g}" if unit == "packets" else in_short(value, unit, 4)


def first_source(claim: Claim) -> str:
    """The RFC that says it, and the section; claims.toml has what is said beside it."""
    return re.split(r", RFC|; RFC| \(|, with|, figure|, equation", claim.source)[0]


def differences(experiment: str) -> dict[str, str]:
    """Claim, or claim and condition -> how it differs and where."""
    return tomllib.loads((HERE / experiment / "differences.toml").read_text())


def counts() -> str:
    """How many statements of each experiment hold on each kernel."""
    lines = ["| experiment | Linux | statements | hold | differ |", "| --- | --- | --- | --- | --- |"]
    for experiment in NAMES:
        for kept in kernels(experiment):
            verdicts = [row["verdict"] for row in kept["claims"].values()]
            hold = verdicts.count(HOLDS)
            lines.append(f"| {experiment} | {kept['release']} | {len(verdicts)} | {hold} | {len(verdicts) - hold} |")
    return "\n".join(lines)


def write(page: Path, text: str) -> None:
    """The generated part of a page."""
    before, _, rest = page.read_text().partition(BEGIN)
    page.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.partition(END)[2]}")


def main() -> int:
    """The command line; the exit status."""
    match sys.argv[1:]:
        case ["keep", run]:
            if lacks := incomplete(Path(run)):
                print("\n".join(["nothing is kept of a run whose cells did not all complete:", *lacks]))
                return 1
            did = what_it_did(Path(run))
            file = HERE / did["experiment"] / "kernels" / f"{did['release']}.json"
            if {cell.experiment for cell in open_run(Path(run)).plan.cells} <= {*BUILDS.get(did["experiment"], ())}:
                file, did = file.parents[1] / "builds.json", did | {"tables": {}}
                did["claims"] = {name: row for name, row in did["claims"].items() if row["verdict"] != NOT_TESTED}
            else:
                did = with_the_rest(did)
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(did, indent=0) + "\n")
        case ["check", run]:
            did = what_it_did(Path(run))
            wrong = differing(did)
            if wrong is None:
                print(f"nothing is kept of Linux {did['release']} with the hash {did['kernel_sha256'][:16]}")
                return 77
            print(
                "\n".join(
                    [f"{len(did['captures']) - len(wrong)} of {len(did['captures'])} cells have equal captures", *wrong]
                )
            )
            return 1 if wrong else 0
        case ["compare", run]:
            did = what_it_did(Path(run))
            lines, judged = disagreements(did), Counter(row["verdict"] for row in did["claims"].values())
            words = ", ".join(f"{count} {verdict}" for verdict, count in judged.items())
            kept = ", ".join(compared_with(did)) or "(nothing is kept of another kernel)"
            print("\n".join([f"{did['experiment']}, {label(did)}: {words}", *lines]))
            print(f"{len(lines)} of {len(did['claims'])} statements are judged otherwise than on Linux {kept}")
            return 0
        case []:
            pass
        case _:
            print(__doc__)
            return 2
    for name in NAMES:
        write(HERE / name / "README.md", table(name))
    write(PAGE, counts())
    return 0


if __name__ == "__main__":
    sys.exit(main())
