"""Short names of capture files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def point_names(paths: Sequence[str]) -> list[str]:
    """Short names that differ: the files' without their suffixes, else with as many folders as it takes."""
    parts = [[*Path(path).parts[:-1], _stem(Path(path).name)] for path in paths]
    for depth in range(1, max(len(one) for one in parts) + 1):
        names = ["/".join(one[-depth:]) for one in parts]
        if len(set(names)) == len(names):
            return names
    return list(paths)


def _stem(name: str) -> str:
    for suffix in (".zst", ".gz", ".pcapng", ".pcap", ".cap"):
        name = name.removesuffix(suffix) or name
    return name
