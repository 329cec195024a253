"""Writes experiment/study_keys.pyi from the grammar: `.venv/bin/python tests/support/study_keys.py`."""

from __future__ import annotations

import keyword
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from netwarp.experiment import (
    arrivals,
    grammar,
    laws,
    loops,
    options,
    page_flows,
    programs,
    read_claims,
    read_heartbeats,
    read_messages,
)
from netwarp.experiment.fields import Field

OUT = Path(__file__).parents[2] / "orchestrator/netwarp/experiment/study_keys.pyi"
HEAD = """\
# The keys of an experiment written in Python, for editors and type checkers: made from the grammar by
# tests/support/study_keys.py. docs/spec.md explains them.
# ruff: noqa: PYI051  (an editor offers the literals, and a text may hold a placeholder)

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

from .study import Handle, Key

Name: TypeAlias = str | Handle
Names: TypeAlias = Sequence[str | Handle]
Levels: TypeAlias = Mapping[str, str | Sequence[str]]
Texts: TypeAlias = str | Key | Sequence[str | Key]"""
RESOLVED_NAMES = (
    "Aqm",
    "BurstLoss",
    "Policer",
    "Slots",
    "Trace",
    "AckThinning",
    "Direction",
    "BothWays",
    "Repeated",
    "Node",
    "Link",
    "Switch",
    "Path",
    "Phase",
    "End",
    "Page",
    "Objects",
    "Program",
    "Agent",
    "Burst",
    "Sender",
    "Receiver",
    "Starts",
    "Sizes",
    "Arrivals",
    "Stops",
    "Law",
    "Messages",
    "Heartbeats",
    "Reverse",
    "Flow",
    "Event",
    "Shape",
    "Fair",
    "Measure",
    "Default",
    "Resolved",
    "Level",
    "Top",
)
"""Tables whose texts may hold placeholders."""
LOOP = Field("open", "")
EACH = {loops.EACH: Field("open", loops.EXAMPLE)}
"""Loops, which are expanded before anything else reads them (experiment/loops.py)."""
TABLES: dict[str, tuple[Mapping[str, Field], str]] = {
    "Aqm": (grammar.AQM, ""),
    "BurstLoss": (grammar.DIRECTION["burst_loss"].fields or {}, ""),
    "Policer": (grammar.POLICER, ""),
    "Slots": (grammar.SLOTS, ""),
    "Trace": (grammar.TRACE, ""),
    "AckThinning": (grammar.ACK_THINNING, ""),
    "Direction": (grammar.DIRECTION, ""),
    "BothWays": (grammar.BOTH_WAYS, "Direction"),
    "Repeated": (grammar.REPEATED, "BothWays"),
    "Agent": (options.ALL_AGENTS, ""),
    "Node": (grammar.NODE, ""),
    "Link": (grammar.LINK, "BothWays"),
    "Switch": (grammar.SWITCH, ""),
    "Path": (grammar.PATH, ""),
    "Phase": (grammar.PHASE, ""),
    "End": (grammar.END, ""),
    "Objects": (page_flows.OBJECTS, ""),
    "Page": (page_flows.PAGE, ""),
    "Program": (programs.PROGRAM, ""),
    "Burst": (options.BURST, ""),
    "Sender": (options.of_role("sender"), ""),
    "Receiver": (options.of_role("receiver"), ""),
    "Starts": (grammar.STARTS, ""),
    "Sizes": (arrivals.SIZE, ""),
    "Arrivals": (arrivals.ARRIVALS, ""),
    "Stops": (grammar.STOPS, ""),
    "Law": (laws.LAWS, ""),
    "Heartbeats": (read_heartbeats.HEARTBEATS, ""),
    "Messages": (read_messages.MESSAGES, ""),
    "Reverse": (read_messages.REVERSE, "Messages"),
    "Flow": (grammar.FLOW, ""),
    "Event": (grammar.EVENT, "BothWays"),
    "Shape": (grammar.SHAPE, ""),
    "Fair": (grammar.FAIR, ""),
    "Span": (grammar.SPAN, ""),
    "Measure": (grammar.MEASURE, ""),
    "Default": ((grammar.RESOLVED["default"].fields or {}) | dict.fromkeys(loops.SECTIONS, LOOP), ""),
    "Resolved": (grammar.RESOLVED, ""),
    "Level": (grammar.LEVEL, "Resolved"),
    "Schedule": (grammar.SCHEDULE, ""),
    "Factor": ({key: field for key, field in grammar.FACTOR_KEYS.items() if key not in ("level", "levels")}, ""),
    "Experiment": (grammar.EXPERIMENT | EACH, ""),
    "Metric": (grammar.METRIC, ""),
    "Table": (grammar.TABLE | EACH, ""),
    "Figure": (grammar.FIGURE | EACH, ""),
    "Reason": (grammar.REASON, ""),
    "Cost": (grammar.COST, ""),
    "Answer": (grammar.ANSWER, ""),
    "Source": (read_claims.SOURCE, ""),
    "Word": (read_claims.WORD, ""),
    "Column": (read_claims.COLUMN, ""),
    "Amendment": (read_claims.AMENDMENT, ""),
    "Summary": (read_claims.SUMMARY, ""),
    "Claim": ({key: field for key, field in read_claims.CLAIM.items() if key != "id"} | EACH, ""),
    "Top": (
        {
            key: field
            for key, field in {
                **grammar.TOP,
                **{key: read_claims.FILE[key] for key in ("headline", "summary")},
                loops.LOOP: LOOP,
            }.items()
            if key not in ("format", "name", "expected", "factor", *grammar.SECTIONS) and field.type != "map"
        },
        "Resolved",
    ),
}
"""Name -> its fields, and the table whose keys it has too."""
HANDLES = {
    "Aqm": "Key",
    "BurstLoss": "Key",
    "Policer": "Key",
    "Slots": "Key",
    "Trace": "Key",
    "AckThinning": "Key",
    "Direction": "Key",
    "BothWays": "Direction",
    "Agent": "Key",
    "Phase": "Key",
    "End": "Key",
    "Objects": "Key",
    "Page": "Key",
    "Sizes": "Key",
    "Arrivals": "Key",
    "Program": "Key",
    "Burst": "Key",
    "Sender": "Key",
    "Receiver": "Key",
    "Law": "Key",
    "Messages": "Key",
    "Heartbeats": "Key",
    "Reverse": "Messages",
    "Node": "Handle",
    "Link": "BothWays, Handle",
    "Flow": "Handle",
    "Event": "BothWays, Handle",
}
"""Tables whose keys are at hand (`way.queue`), and the base of each."""


def table_of(fields: Mapping[str, Field]) -> str:
    """The name of a table by its fields."""
    return next(
        name for name, (known, _) in TABLES.items() if set(fields) in (set(known), set(known) - {*loops.SECTIONS})
    )


def type_of(field: Field, placeholders: bool) -> str:
    """The Python type of a key's values."""
    inner = table_of(field.fields) + "Keys" if field.fields else ""
    match field.type:
        case "quantity" if inner:
            return f"str | {inner}"
        case "quantity" | "text":
            return "str"
        case "choice":
            choices = ", ".join(f'"{choice}"' for choice in field.choices)
            return f"Literal[{choices}]" + (" | str" if placeholders else "")
        case "name":
            return "Name"
        case "names":
            return f"Sequence[str | Handle | {inner}]" if inner else "Names"
        case "texts":
            return "Texts"
        case "integer":
            return "int"
        case "switch":
            return "bool"
        case "levels":
            return "Levels"
        case "table":
            return inner
        case "tables":
            return f"Sequence[{inner}]"
        case "map":
            return f"Mapping[str, {inner}]"
    return f"{inner} | str | Sequence[object]" if inner else "object"


def own(name: str) -> dict[str, Field]:
    """The fields of a table without those of its base."""
    fields, base = TABLES[name]
    return {key: field for key, field in fields.items() if not base or key not in TABLES[base][0]}


def written(key: str) -> str:
    """A key as Python can write it."""
    return f"{key}_" if keyword.iskeyword(key) else key


def lines() -> Iterator[str]:
    """The file."""
    yield HEAD
    for name, (_, base) in TABLES.items():
        yield f"\nclass {name}Keys({base + 'Keys' if base else 'TypedDict'}, total=False):"
        for key, field in own(name).items():
            code = f"    {written(key)}: {type_of(field, name in RESOLVED_NAMES)}"
            example = f"  # {field.example}" if field.example else ""
            yield code + (example if len(code + example) <= 120 else "")
    for name, base in HANDLES.items():
        yield f"\nclass {name}({base}):"
        for key, field in own(name).items():
            inner = table_of(field.fields) if field.fields and field.type in ("table", "open") else "Key"
            yield f"    {written(key)}: {inner}"


def text() -> str:
    """The module as it should be."""
    return "\n".join(lines()) + "\n"


def formatted() -> str:
    """The same as ruff lays it out."""
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(OUT), "-"]
    return subprocess.run(command, input=text(), capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    OUT.write_text(formatted())
