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
