"""experiments/schedules/bugs: the list is the patches, and they are spread as the list says."""

from __future__ import annotations

import re
from collections import Counter

from support.checkout import ROOT

BUGS = ROOT / "experiments" / "schedules" / "bugs"


def test_the_list_is_the_patches() -> None:
    rows = re.findall(r"^\| `([\w-]+)` \| .* \| (.*) \|$", (BUGS / "README.md").read_text(), re.MULTILINE)
    assert sorted(name for name, _ in rows) == sorted(path.stem for path in BUGS.glob("*.patch"))
    assert sum(fix != "-" for _, fix in rows) >= 6


def test_three_or_more_are_of_each_protocol_and_each_is_of_one_file() -> None:
    folders = Counter()  # type: Counter[str]
    for path in BUGS.glob("*.patch"):
        (target,) = re.findall(r"^\+\+\+ b/(\S+)$", path.read_text(), re.MULTILINE)
        folder = target.rpartition("/")[0]
        assert folder == {"sctp": "net/sctp", "tcp": "net/ipv4", "mptcp": "net/mptcp"}[path.stem.split("-")[0]]
        folders[folder] += 1
    assert len(folders) == 3 and min(folders.values()) >= 3, folders


def test_the_later_promises_are_those_below_the_line() -> None:
    """The count of what the earlier promises find leaves these out."""
    folder = BUGS.parent
    _, below = (folder / "claims.toml").read_text().split("# Added when the planted bugs")
    later = re.search(r"LATER = frozenset\(\[(.*?)\]\)", (folder / "planted_bugs.py").read_text(), re.DOTALL)
    assert later is not None
    assert set(re.findall(r'"([\w-]+)"', later[1])) == set(re.findall(r'\bid = "([\w-]+)"', below))
