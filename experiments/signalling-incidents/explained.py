"""Runs the incidents, explains their captures, asks what would have been, and writes both into README.md and into
docs/signalling.md, between `<!-- incident NAME -->` and `<!-- end -->`.

    .venv/bin/python experiments/signalling-incidents/explained.py [--check]

--check: write nothing; exit status 1 where a page is not what the captures say.
"""

import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import netwarp

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[1]
PAGES = (HERE / "README.md", CHECKOUT / "docs" / "signalling.md")
CHANGES = {
    "ella-867": "b.sack_delay=40 ms",
    "ella-1475": "b.rto_initial=3 s, b.rto_min=1 s, b.rto_max=60 s, b.association_max_retrans=10",
}
"""Incident -> the change that was asked for, or made, in its thread."""
LEFT_OUT = re.compile(r"^ *(• )?(report: |/|the cell: |its run: |path 1 has )")
WIDTH = 120


def explained(incident: str, run: netwarp.Run, out: Path) -> str:
    """The console's block: the command, and what it prints."""
    (name,) = (str(row["cell_id"]) for row in run.table("cells") if row["incident"] == incident)
    cell = run.path / "cells" / name
    told = subprocess.run(
        [sys.executable, "-m", "netwarp", "explain", str(cell), "--what-if", CHANGES[incident], "--out", str(out)],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = [each for line in told.stdout.splitlines() if not LEFT_OUT.match(line) for each in wrapped(line)]
    return "\n".join([f'$ netwarp explain CELL_DIR --what-if "{CHANGES[incident]}"', *lines]).strip()


def wrapped(line: str) -> list[str]:
    """A line that fits a page; what goes on stands four letters farther in."""
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(line, WIDTH, subsequent_indent=indent) if len(line) > WIDTH else [line]


def answer(block: str) -> str:
    """The part that answers what would have been, without the table."""
    text = block[block.index("What would have been, with") :]
    return text.split("\n\n")[0]


def main() -> int:
    """Write the pages, or compare them."""
    with tempfile.TemporaryDirectory() as folder:
        run = netwarp.run(HERE / "spec.toml", out=Path(folder) / "run", report=False)
        blocks = {name: explained(name, run, Path(folder) / name) for name in CHANGES}
    differs = 0
    for page in PAGES:
        before = after = page.read_text(encoding="utf-8")
        for name, block in blocks.items():
            said = block if page.parent == HERE else answer(block)
            marked = f"<!-- incident {name} -->\n```text\n{said}\n```\n<!-- end -->"
            parts = re.split(rf"<!-- incident {name} -->\n.*?<!-- end -->", after, flags=re.DOTALL)
            after = marked.join(parts)
        differs += before != after
        if before != after and "--check" not in sys.argv[1:]:
            page.write_text(after, encoding="utf-8")
    return 1 if differs and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
