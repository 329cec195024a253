"""plan.json and outputs.json: the cells of a run and its outputs; spec/: the files they were made from."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ..core.errors import StoreError
from ..core.frozen import from_json, to_json
from ..plan.types import OUTPUTS, Outputs, Plan
from .run_dir import RunDir, read_json, write_atomic, write_json

Fields = dict[str, msgspec.Raw]
_CELLS: type[msgspec.Struct] = msgspec.defstruct(
    "_CELLS",
    [
        (field.name, field.type) if field.required else (field.name, field.type, field.default)
        for field in msgspec.structs.fields(Plan)
        if field.name not in OUTPUTS
    ],
    forbid_unknown_fields=True,
    kw_only=True,
)
"""The contents of plan.json: all of a plan but its outputs."""


def write_plan(run: RunDir, plan: Plan) -> None:
    """Write both files. plan.json is written last: a directory with it is a run."""
    write_outputs(run, plan)
    write_json(run.plan, {name: value for name, value in _fields(plan).items() if name not in OUTPUTS})


def write_outputs(run: RunDir, plan: Plan) -> None:
    """Write outputs.json alone; the cells stay as they are."""
    write_json(run.outputs, {name: value for name, value in _fields(plan).items() if name in OUTPUTS})


def read_plan(run: RunDir) -> Plan:
    """The plan of a run with its outputs. Raises StoreError."""
    if run.root.is_file():
        raise StoreError(
            f"{run.root}: is a file, and this wants a run directory; open a bundle first: "
            f"mkdir DIR && tar xf {run.root} -C DIR"
        )
    if not run.root.exists():
        raise StoreError(
            f"{run.root}: there is no such directory; the newest run of an experiment is results/NAME/latest"
        )
    cells, outputs = read_json(run.plan, _CELLS, "whole_bytes"), read_json(run.outputs, Outputs)
    return Plan(**msgspec.structs.asdict(outputs), **msgspec.structs.asdict(cells))


def keep_texts(run: RunDir, texts: Mapping[str, bytes]) -> None:
    """Store the files of a spec as spec/<name>, replacing those that were there."""
    run.spec.remove_tree(ignore_errors=True)
    for name, text in texts.items():
        write_atomic(run.spec / name, text)


def _fields(plan: Plan) -> Fields:
    return from_json(to_json(plan), Fields)
