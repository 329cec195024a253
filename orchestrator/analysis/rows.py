"""The rows of a table that belong to one flow: found once for all flows, however many there are."""

from __future__ import annotations

import numpy as np

from .capture import Capture
from .native import Rows


def rows_of_flow(capture: Capture, table: str, flow: int) -> Rows:
    """The rows of a table (one with a column `flow`) that are of a flow, in the order of the capture.

    Where the capture holds that flow alone they are the table itself, not a copy.
    """
    rows: Rows = getattr(capture, table)
    if len(capture.flows) == 1 and (not len(rows) or table != "packets"):
        return rows if flow == 0 else rows[:0]
    if table not in capture.by_flow:
        column = np.ascontiguousarray(rows["flow"])
        order = np.argsort(column, kind="stable")
        capture.by_flow[table] = (order, np.searchsorted(column[order], np.arange(len(capture.flows) + 1)))
    order, edges = capture.by_flow[table]
    return rows[order[edges[flow] : edges[flow + 1]]]
