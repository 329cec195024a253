"""Flows that arrive at random: `arrivals = { process = "poisson", rate = "5 /s", size = "30 kB" }`, and sizes that are
drawn from a distribution or from a file beside the spec.

A size is the inverse of its distribution function at one uniform number, so the k-th flow of two variants, which have
the same uniform number, has the same size.
"""

from __future__ import annotations

import csv
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from ..core.messages import Law
from .fields import Field, Reader, check_keys, quantity
from .laws import LAWS, read_law
from .problems import Problems
from .side_files import SideFile
from .toml_positions import Item

Process = Literal["poisson", "regular"]
PROCESSES: tuple[Process, ...] = get_args(Process)
S = 10**9
LARGEST_FILE_BYTES = 1 << 20
MOST_SIZES = 100_000
LARGEST_BYTES = 10**12
_DATA = quantity("data", example='"30 kB"', low=1, high=LARGEST_BYTES)
SIZE_EXAMPLE = (
    '"30 kB", { lognormal = { median = "9 kB", sigma = "1.4" }, most = "10 MB" }, '
    '{ published = "web-search" } or { file = "sizes.csv" }'
)
SIZE: dict[str, Field] = {
    **LAWS,
    "published": Field("choice", '"web-search"', choices=("web-search",)),
    "file": Field("open", '"sizes.csv"'),
    "most": quantity("data", example='"10 MB"', low=1, high=LARGEST_BYTES),
}
ARRIVALS: dict[str, Field] = {
    "process": Field("choice", '"poisson"', choices=PROCESSES),
    "rate": quantity("frequency", example='"5 /s"', low=1e-6, high=1e6),
    "size": Field("open", SIZE_EXAMPLE, fields=SIZE),
    "stop": quantity("time", example='"50 s"'),
}
EXAMPLE = '{ process = "poisson", rate = "5 /s", size = "30 kB" }'
WEB_SEARCH = (
    (0, 0.0), (10_000, 0.15), (20_000, 0.20), (30_000, 0.30), (50_000, 0.40), (80_000, 0.53), (200_000, 0.60),
    (1_000_000, 0.70), (2_000_000, 0.80), (5_000_000, 0.90), (10_000_000, 0.97), (30_000_000, 1.0),
)  # fmt: skip
"""Flows of a web search cluster (M. Alizadeh et al., DCTCP, SIGCOMM 2010, figure 4) as tabulated by HPCC's authors
(traffic_gen/WebSearch_distribution.txt): size in bytes, share of the flows that are no larger.
"""


@dataclass(frozen=True, slots=True)
class Sizes:
    """A distribution of sizes: a law, or a table of (bytes, share of the flows that are no larger). listed: each row of
    the table is a flow, and the shares say nothing.
    """

    law: Law | None = None
    table: tuple[tuple[int, float], ...] = ()
    listed: bool = False
    most_bytes: int = LARGEST_BYTES

    @property
    def drawn(self) -> bool:
        """True if two flows may have two sizes."""
        return self.law is None or self.law.kind != "fixed"

    def at(self, share: float) -> int:
        """The size in bytes that this share of the flows (0 <= share < 1) does not exceed."""
        if self.law is not None:
            size = self.law.at(share)
        elif self.listed:
            size = self.table[int(share * len(self.table))][0]
        else:
            size = _between(self.table, share)
        return max(1, min(self.most_bytes, round(size)))


def _between(table: Sequence[tuple[int, float]], share: float) -> float:
    """The size at a share, linear between two rows of a distribution function."""
    above = bisect_right([row[1] for row in table], share)
    if above == 0 or above == len(table):
        return table[min(above, len(table) - 1)][0]
    (low, at_low), (high, at_high) = table[above - 1], table[above]
    return low + (high - low) * (share - at_low) / (at_high - at_low)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Flows that begin one after another from `from_ns` to `until_ns` (from T0), `rate_s` of them a second."""

    process: Process
    rate_s: float
    sizes: Sizes
    from_ns: int
    until_ns: int
    item: Item

    @property
    def drawn(self) -> bool:
        """True if the seed changes them."""
        return self.process == "poisson" or self.sizes.drawn


def read_arrivals(item: Item, start_ns: int, duration_ns: int, problems: Problems) -> Arrivals | None:
    """The arrivals of a flow; None after saying what is wrong."""
    before, reader = len(problems), Reader(item, ARRIVALS, problems)
    check_keys(item, ARRIVALS, problems)
    needed = [reader.need(key) for key in ("process", "rate", "size")]
    rate, size, stop = reader.quantity("rate"), item.get("size"), reader.whole("stop")
    process = reader.choice("process", PROCESSES, "poisson")
    if stop is not None and not start_ns < stop <= duration_ns:
        reader.wrong("stop", "must be after the flow's start, and not after the end of the cell (duration)")
    sizes = None if size is None else _sizes(size, problems)
    if not all(needed) or rate is None or sizes is None or len(problems) > before:
        return None
    return Arrivals(process, float(rate.value), sizes, start_ns, duration_ns if stop is None else stop, item)


def _sizes(item: Item, problems: Problems) -> Sizes | None:
    before = len(problems)
    if not isinstance(item.value, dict):
        law = read_law(item, _DATA, SIZE_EXAMPLE, problems)
        return None if law is None else Sizes(law)
    reader = Reader(item, SIZE, problems)
    check_keys(item, SIZE, problems)
    most, rows, published = reader.whole("most") or LARGEST_BYTES, item.get("file"), reader.text("published")
    laws = {key: child for key, child in item.value.items() if key in LAWS}
    if (rows is not None) + (published is not None) + bool(laws) != 1:
        problems.add(item, f"has one of a law, a published distribution and a file; for example size = {SIZE_EXAMPLE}")
    if len(problems) > before:
        return None
    if laws:
        law = read_law(item.with_value(laws), _DATA, SIZE_EXAMPLE, problems)
        return None if law is None else Sizes(law, most_bytes=most)
    if rows is None:
        return Sizes(table=WEB_SEARCH, most_bytes=most)
    if not _is_table(rows):
        problems.add(rows, 'has to stand where the size is written; for example size = { file = "sizes.csv" }')
        return None
    table = tuple((int(str(row.items()[0].value)), float(str(row.items()[1].value))) for row in rows.items())
    return Sizes(table=table, listed=not any(share for _, share in table), most_bytes=most)


def _is_table(item: Item) -> bool:
    return bool(item.items()) and all(len(row.items()) == 2 for row in item.items())


def read_sizes(text: str) -> list[tuple[int, float]]:
    """The rows of a file: (bytes, share of the flows that are no larger; 0 in all rows where each line is a flow).

    One size in bytes a line, or a CSV file with the columns size_bytes and share, whose last share is 1. Raises
    ValueError.
    """
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    try:
        rows = list(csv.reader(lines))
    except csv.Error as error:
        raise ValueError(f"is no CSV: {error}") from error
    if rows and rows[0] and rows[0][0].strip() == "size_bytes":
        head, *rows = rows
        if [name.strip() for name in head] not in (["size_bytes"], ["size_bytes", "share"]):
            raise ValueError("has the columns size_bytes and, of a distribution function, share")
    if not rows or len(rows) > MOST_SIZES:
        raise ValueError(f"has {len(rows)} sizes; it needs 1 to {MOST_SIZES}")
    columns = {len(row) for row in rows}
    if columns not in ({1}, {2}):
        raise ValueError("needs one size in bytes a line, or size_bytes,share")
    try:
        table = [(int(row[0]), float(row[1]) if len(row) > 1 else 0.0) for row in rows]
    except ValueError as error:
        raise ValueError(f"has a line without whole bytes: {error}") from error
    if any(not 0 <= size <= LARGEST_BYTES for size, _ in table):
        raise ValueError(f"has a size that is not from 0 to {LARGEST_BYTES} bytes")
    function = columns == {2}
    if function and (table != sorted(table) or any(table[n][1] > table[n + 1][1] for n in range(len(table) - 1))):
        raise ValueError("must rise from line to line, in size and in share")
    if function and (table[-1][1] != 1 or table[0][1] < 0):
        raise ValueError("must end with the share 1: that of all flows")
    return table


def _rows_of_sizes(content: bytes) -> list[tuple[int, float]]:
    return read_sizes(content.decode("utf-8-sig"))


SIZE_FILE = SideFile(("arrivals.size",), "file", ("csv", "txt"), "sizes.csv", LARGEST_FILE_BYTES, _rows_of_sizes)
