"""digests.json: the SHA-256 of the files that a run wrote, by which a file that somebody changed afterwards is noticed.

A bundle has it too. Its own digest, published elsewhere, stands for all of them; it proves nothing against its author.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from ..core.errors import StoreError
from ..core.limits import limits
from ..core.names import Digest
from .run_dir import RunDir, read_json, write_atomic

Kind = Literal[
    "plan", "spec", "captures", "judgement", "derived numbers", "tables", "app records", "cell records", "calibration"
]  # fmt: skip
Names = dict[Annotated[str, msgspec.Meta(max_length=400)], Digest]
OF_THE_PLAN = ("plan.json", "outputs.json")
CALIBRATION = "calibration.json"
OF_A_CELL: dict[str, Kind] = {
    "cell.json": "plan",
    "outcome.json": "judgement",
    "derived/packets.json": "captures",
    "derived/judgement.json": "judgement",
    "derived/checks.json": "judgement",
    "derived/measurements.json": "derived numbers",
}
OF_THE_CELL_ITSELF = ("environment.json", "init.ndjson", "init.ndjson.zst")
REMOVED_LATER: tuple[Kind, ...] = ("app records", "cell records")
"""What `--keep` and a bundle leave out."""
NOT_ALWAYS_LISTED: tuple[Kind, ...] = ("cell records", "calibration")
"""Lists of older versions have none of these."""
LEFT_OUT = ("tables/measurements.csv", "tables/windows.csv")
"""Tables that a bundle leaves out: the cells have their own numbers."""


def kind_of(name: str) -> Kind:
    """The kind of a file of a run, by its name in the run directory."""
    if name.startswith("spec/"):
        return "spec"
    if name.startswith("tables/"):
        return "tables"
    if name.startswith("cells/"):
        of_cell = name.split("/", 2)[-1]
        return "cell records" if of_cell in OF_THE_CELL_ITSELF else OF_A_CELL.get(of_cell, "app records")
    return "calibration" if name == CALIBRATION else "plan"


def files_of(run: RunDir) -> dict[str, Path]:
    """The files of a run that digests.json lists -> their paths."""
    files: dict[str, Path] = {name: run.root / name for name in (*OF_THE_PLAN, CALIBRATION)}
    for folder in (run.spec, run.tables):
        files |= {str(path.relative_to(run.root)): path for path in folder.rglob("*")}
    for cell_id in run.finished():
        cell = run.cell(cell_id)
        files |= {f"cells/{cell_id}/{name}": cell.root / name for name in (*OF_A_CELL, *OF_THE_CELL_ITSELF)}
        files |= {f"cells/{cell_id}/apps/{path.name}": path for path in cell.apps.glob("*.ndjson*")}
    listed = {name: path for name, path in files.items() if not name.endswith((".parquet", ".part"))}
    return {name: path for name, path in sorted(listed.items()) if path.is_file()}


def digests_of(run: RunDir) -> dict[str, str]:
    """Name -> SHA-256 of every such file as it is now. Raises StoreError, OSError."""
    return {name: file_digest(path, "bytes") for name, path in files_of(run).items()}


def file_digest(path: Path, limit: str) -> str:
    """SHA-256 of a file. limit: the one of its size. Raises StoreError, OSError."""
    if path.stat().st_size > getattr(limits(), limit):
        raise StoreError(f"{path}: has {limits().beyond(limit)}")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_digests(run: RunDir, kept: Mapping[str, str] = MappingProxyType({})) -> None:
    """Write digests.json. kept: digests that stay, of files that are not what the run wrote. Raises StoreError."""
    write_atomic(run.digests, digests_text(run, kept))


def digests_text(run: RunDir, kept: Mapping[str, str] = MappingProxyType({})) -> bytes:
    """The content of digests.json, of the files as they are now. Raises StoreError, OSError."""
    return msgspec.json.format(msgspec.json.encode({**digests_of(run), **kept}), indent=1) + b"\n"


def changed_sources(run: RunDir) -> dict[str, str]:
    """Of the files that an analysis reads, and the hashes of captures that it makes again: those that are not what the
    run wrote -> what the list says of them. Raises StoreError.
    """
    changed = set(check_digests(run).changed)
    listed = read_json(run.digests, Names) if changed else {}
    return {name: listed[name] for name in sorted(changed & listed.keys()) if not _is_analysed(name)}


def changed_in_cells(run: RunDir, ids: Mapping[str, str]) -> dict[str, str]:
    """Of the cells of these ids -> those that they are to have elsewhere: files that are not what the run wrote, by
    their names there -> what the list says of them. Raises StoreError.
    """
    changed = set(check_digests(run).changed)
    listed = read_json(run.digests, Names) if changed else {}
    parts = {name: name.split("/", 2) for name in changed & listed.keys() if name.startswith("cells/")}
    return {f"cells/{ids[part[1]]}/{part[2]}": listed[name] for name, part in parts.items() if part[1] in ids}


def _is_analysed(name: str) -> bool:
    """If an analysis writes it."""
    return kind_of(name) in ("tables", "derived numbers") or name.endswith(("/judgement.json", "/checks.json"))


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """A run's files against digests.json. digest: SHA-256 of that file itself; "": the run has none.

    equal: kind -> how many files are what the run wrote. changed: the names of those that are not, or are missing, or
    are not in the list.
    """

    digest: str = ""
    equal: dict[str, int] | None = None
    changed: tuple[str, ...] = ()


def check_digests(run: RunDir) -> StoredFiles:
    """Compare the files of a run directory, or of an opened bundle, with its list. Raises StoreError."""
    if not run.digests.exists():
        return StoredFiles()
    listed, there = read_json(run.digests, Names), digests_of(run)
    equal: Counter[str] = Counter()
    kinds = {kind_of(name) for name in listed}
    older = set(NOT_ALWAYS_LISTED) - kinds
    changed = [name for name in there if name not in listed and kind_of(name) not in older]
    for name, digest in listed.items():
        if name in there and there[name] == digest:
            equal[kind_of(name)] += 1
        elif name in there or not (name in LEFT_OUT or kind_of(name) in REMOVED_LATER):
            changed.append(name)
    return StoredFiles(hashlib.sha256(run.digests.read_bytes()).hexdigest(), dict(equal), tuple(sorted(changed)))
