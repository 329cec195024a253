"""The commands that README and docs print: in fenced blocks (`sh`; `console` with the output) and in the text."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

from .checkout import ROOT

PAGES = sorted(
    path.relative_to(ROOT)
    for pattern in ("*.md", "docs/**/*.md", "experiments/*/*.md", "netem-profiles/*.md", "stack-profiles/*.md")
    for path in ROOT.glob(pattern)
    if path.name != "CHANGELOG.md"
)
IN_ORDER = (Path("docs/tutorial.md"), Path("docs/using-results.md"), Path("docs/notebook.md"))
"""Pages whose blocks need each other: tests of their own (test_tutorial.py, ...) run all of them."""
LANGUAGES = {"toml", "sh", "console", "text", "python"}
"""toml: test_spec_docs; python: test_using_results, test_notebook; sh, console: run; text: what something printed."""
NOT_RUN = {
    "git clone": "needs the network",
    "PIP_FIND_LINKS=": "of wheels: make anywhere",
    "netwarp run choi2009 --only outages": "of an installed wheel: make anywhere",
    "xdg-open": "opens a browser",
    "adb ": "needs a phone",
    "PYTHONPATH=. .venv/bin/python benchmarks/in_a_guest.py": "a quarter of an hour in a guest",
    "PYTHONPATH=tests .venv/bin/python -m support.page_robot": "of a run that was made: tests/browser/test_robot.py",
    "netwarp compare backends VIRTUAL_RUN": "of the run that the line before it makes",
    "netwarp compare backends choi2009": "an hour on the wall clock: planned",
    "netwarp compare backends agreement": "half an hour on the wall clock: planned",
    "netwarp compare backends SPEC --backends virtual,hosts": "needs machines: tests/hosts has the laboratory",
    "netwarp run physics": "minutes: planned",
    "netwarp run recovery --set kernel=7.3": "needs the second kernel: planned",
    "netwarp run rfc9438 --set kernel=7.3": "needs the second kernel: planned",
    "netwarp run rfc9438 --only hystart": "half a minute: tests/guest/experiments/test_rfc9438.py",
    "netwarp run rfc9438 --only large-c": "needs a kernel of its own: planned",
    "sed 's/bic_scale": "needs a kernel's source",
    "netwarp run roots": "some of its cells fail by themselves: planned",
    "netwarp run harm": "minutes: planned",
    "netwarp search ": "minutes: tests/guest/engine/test_search.py",
    "python benchmarks/search_points.py": "of a box that was run whole: tests/unit/engine/test_optimiser.py",
    "make harm": "minutes: tests/guest/engine/test_search.py",
    "netwarp run coexist": "minutes, or needs another kernel: planned",
    "netwarp run watch": "needs the second kernel: planned",
    "netwarp run mine.toml --set flow.bulk": "a program of yours: tests/unit/experiment/test_quic_flows.py",
    "python experiments/golden.py compare results/bbr": "of the run that a line before it makes",
    "python experiments/signalling-incidents/explained.py": "minutes: tests/guest/engine/test_what_if.py",
    "netwarp run bbr": "minutes, or needs another kernel: planned",
    "netwarp sctp ": "half a minute each: tests/guest/engine/test_sctp_check.py",
    "netwarp explain capture.pcap": "of a capture of yours: tests/unit/captures/test_settings.py",
    "netwarp explain gnb.pcap": "of captures of yours: tests/unit/captures/test_settings.py",
    "netwarp explain gnb.pcap amf.pcap --what-if": "of captures of yours: tests/guest/engine/test_what_if.py",
    "netwarp explain --merge eth0": "of captures of yours: tests/unit/captures/test_settings.py",
    "netwarp explain CELL_DIR": "of a cell of yours: tests/unit/captures/test_settings.py",
    "python benchmarks/blind_settings.py": "minutes: tests/guest/captures/test_settings.py",
    "python benchmarks/blind_what_if.py": "minutes: tests/guest/engine/test_what_if.py",
    "netwarp run lee2008": "minutes: planned",
    "netwarp run min2013 --only": "minutes to an hour on the wall clock: planned",
    "netwarp run ha2005 --only sizes": "minutes on the wall clock: planned",
    "netwarp run schedules": "minutes: planned",
    "python experiments/schedules/planted_bugs.py": "builds eleven kernels: tests/unit/experiment/test_planted_bugs.py",
    "netwarp run SPEC --shard": "of a matrix of runners: planned, and test_golden_runs.py",
    "netwarp analyze --flow": "of one capture: tests/unit/cli/test_analyze.py",
    "tcpdump -i": "needs an interface with traffic: tests/unit/cli/test_analyze.py has the pipe",
    "netwarp archive merge shard-": "of the runs of other machines: test_golden_runs.py",
    "netwarp archive bundle ": "of the run that a line before it makes: test_golden_runs.py",
    "netwarp archive verify ": "of the run that a line before it makes: test_golden_runs.py",
    "netwarp kernel ": "of the one machine, then of another: test_kernel_transfer.py",
    "netwarp run SPEC --executor dask": "of a cluster: test_dask.py",
    "dask ": "of several machines: test_dask.py starts them so",
    "openssl req": "of several machines: tried by hand",
    "export DASK_": "of several machines: tried by hand",
    "for role in": "of several machines: tried by hand",
    "done": "of several machines: tried by hand",
    "netwarp selftest": "builds a kernel: tests/guest/selftests",
    "make ": "minutes: make -n, and the netwarp command is planned",
}
"""The beginnings of the lines that no test runs as they stand, and the reasons."""


@dataclass(frozen=True)
class Block:
    """A fenced block."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def lines(self) -> list[str]:
        """Its commands, one a line, without their comments; netwarp by its bare name."""
        joined = self.text.replace("\\\n", " ")
        found = (shlex.join(shlex.split(line, comments=True)) if "'" in line else line.split(" #")[0] for line in
                 joined.splitlines())  # fmt: skip
        return [line.strip().removeprefix("$ ").removeprefix(".venv/bin/") for line in found if line.strip()]


def blocks(page: Path) -> list[Block]:
    """Every fenced block of a page."""
    text = (ROOT / page).read_text()
    return [
        Block(page, 1 + text[: found.start()].count("\n"), found[1], found[2])
        for found in re.finditer(r"^```([^\n]*)\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    ]


def inline(page: Path) -> list[str]:
    """Every `netwarp ...` and `make ...` in its running text, but for grammars of arguments ([--x], <name>)."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.DOTALL | re.MULTILINE)
    found = re.findall(r"`(?:\.venv/bin/)?((?:netwarp|make) [^`]*)`", text)
    return [one for one in dict.fromkeys(found) if not re.search(r"[\[<]", one)]


def not_run(line: str) -> bool:
    """Whether it is one of NOT_RUN."""
    return any(line.startswith(begin) for begin in NOT_RUN)


def listed_names(section: str) -> list[str]:
    """The names in `code` that the items of its lists, and the rows of its tables, begin with."""
    heads: list[str] = re.findall(r"^(?:- |\| )(`.*?)(?: \(|: | \|)", section, re.DOTALL | re.MULTILINE)
    return [name for head in heads for name in re.findall(r"`([\w*]+)`", head)]
