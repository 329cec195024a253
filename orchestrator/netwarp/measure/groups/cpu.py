"""Metrics of the CPU time that a flow's two programs took. Definitions: docs/metrics.md, CPU time.

By the kernel's account when a program ended (record `exit`: cpu_ns), which is there on the wall clock only: in virtual
time computing takes none.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...core.types import Flow
from ...store.init_records import Exit


def cpu_metrics(flow: Flow, exits: Mapping[str, Exit], delivered_bytes: int | None) -> dict[str, float | None]:
    """CPU seconds for each byte of new payload that arrived at the receiver. exits: program -> its end; in virtual time
    it tells no CPU time: then a flow does not have these metrics. delivered_bytes: None where nothing was captured.
    """
    cpu_ns = {name: ended.cpu_ns for name, ended in exits.items() if ended.cpu_ns is not None}
    if not cpu_ns:
        return {}
    took = {role: cpu_ns.get(f"{flow.name}.{role}") for role in ("sender", "receiver")}
    return {
        f"{role}_cpu_per_byte_s": None if ns is None or not delivered_bytes else ns / 1e9 / delivered_bytes
        for role, ns in took.items()
    }
