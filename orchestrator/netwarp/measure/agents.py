"""The work of a cell's agents: packets sent again, held back for good, lost; windows closed. docs/agents.md."""

from __future__ import annotations

from collections.abc import Sequence

from ..core.types import Cell
from ..store import compressed
from ..store.app_records import Freeze, Retransmit, read_app_log
from ..store.init_records import Dump
from ..store.ndjson import of_kind
from ..store.run_dir import CellDir
from ..testbed.agents import agent_id, agents_of, forwarding
from ..testbed.nftables import decode_rules


def agent_metrics(cell: Cell, directory: CellDir, dumps: Sequence[Dump]) -> dict[str, float | None]:
    """Metrics of a cell with agents on the forwarding path, over all of them; {} for another.

    dumps: of their rules at the end. An agent's own records are whole lines up to the moment it was killed.
    """
    nodes = forwarding(cell)
    if not nodes:
        return {}
    counted = [decode_rules(dump.data()) for dump in dumps]
    known = [rules for rules in counted if rules is not None]
    whole = len(known) == len(nodes)
    paths = [directory.apps / f"{agent_id(node)}.ndjson" for node in nodes]
    records = [record for path in paths if compressed.exists(path) for record in read_app_log(path)]
    return {
        "agent_retransmitted_packets": float(len(of_kind(records, Retransmit))),
        "agent_suppressed_packets": float(sum(rules.suppressed for rules in known)) if whole else None,
        "agent_lost_packets": float(sum(rules.lost for rules in known)) if whole else None,
        "agent_freezes": float(len(of_kind(records, Freeze)))
        if any(agent.kind == "mtcp" for agent in agents_of(cell).values())
        else None,
    }
