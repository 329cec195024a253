"""The rows of a table that belong to one flow: found once for all flows, however many there are."""

from __future__ import annotations

import numpy as np

from .capture import Capture
from .native import Ints, Rows


def rows_of_flow(capture: Capture, table: str, flow: int) -> Rows:
    """The rows of a table (one with a column `flow`) that are of a flow, in the order of the capture.

    Where the capture holds that flow alone they are the table itself, not a copy. The order by flows is kept with the
    capture, so that asking for each of many flows sorts once.
    """
    rows: Rows = getattr(capture, table)
    if len(capture.flows) == 1 and (not len(rows) or table != "packets"):
        return rows if flow == 0 else rows[:0]
    known: dict[str, tuple[Ints, Ints]] = vars(capture).setdefault("rows_by_flow", {})
    if table not in known:
        column = np.ascontiguousarray(rows["flow"])
        order = np.argsort(column, kind="stable")
        known[table] = (order, np.searchsorted(column[order], np.arange(len(capture.flows) + 1)))
    order, edges = known[table]
    return rows[order[edges[flow] : edges[flow + 1]]]
