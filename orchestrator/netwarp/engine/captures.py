"""Analyses captures of any origin (docs/analyze.md)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..captures import FileSummary, summarise_points
from ..core.errors import CaptureError, SpecError
from ..core.inside import InsidePath

if TYPE_CHECKING:
    from ..captures import Join
    from ..captures.explanation import Explanation
    from ..core.types import Cell

PACKED = ("", ".zst", ".gz", ".xz", ".bz2", ".lz4")
CAPTURES = (*(f"*.{kind}{packed}" for kind in ("pcap", "pcapng") for packed in PACKED), "*.cap")
FORMAT = 1
"""Version of the objects that as_json() makes; raised when their keys change."""
MOST_EXPLAINED = 10


@dataclass(frozen=True, slots=True)
class AnalyzedCaptures:
    """The analysis of captures: a summary of each, and the hops between them if they were joined. refused: for each
    capture that could not be read, a sentence with its name and the reason.
    """

    files: tuple[FileSummary, ...]
    join: Join | None = None
    refused: tuple[str, ...] = ()

    def as_json(self, *, flows_in_parts: bool = False) -> dict[str, Any]:
        """The object of `netwarp analyze CAPTURE --json`. flows_in_parts: see FileSummary.as_json."""
        files = [file.as_json(flows_in_parts=flows_in_parts) for file in self.files]
        value: dict[str, Any] = {"format": FORMAT, "files": files}
        if self.refused:
            value["refused"] = list(self.refused)
        return value if self.join is None else value | {"join": self.join.as_json()}


def analyze_captures(
    paths: Sequence[str | Path],
    *,
    join: bool = False,
    one_clock: bool = False,
    merge: bool = False,
    full: bool = False,
    packet_filter: str | None = None,
    flow: int | None = None,
    stop_fd: int | None = None,
    captured_at: Sequence[str] = (),
    explained: int = 0,
) -> AnalyzedCaptures:
    """Analyse captures: pcap and pcapng files, also compressed (gzip, zstd, xz, bzip2, lz4); a directory stands for the
    captures in it.

    join: the captures are of one run; compute loss and delay of each hop. one_clock: with join, all times are of one
    clock. merge: the captures are the interfaces of one node; make one summary. full: analyse every connection of
    captures of any size. packet_filter: a filter in libpcap's language; other packets are skipped. flow: of one capture
    point, analyse only the connection with that number in its summary. stop_fd: reading ends when this descriptor is
    readable, and the packets read until then are analysed. captured_at: addresses of the host that captured.
    explained: for `explain`, which keeps every packet, so many connections.

    Of several captures, those that cannot be read are listed in `refused` and the others are analysed. Raises
    CaptureError if none can be read (joined or merged: if any cannot), SpecError.
    """
    if one_clock and not join:
        raise SpecError("--one-clock says something about joined captures: give --join too")
    if join and merge:
        raise SpecError(
            "--join and --merge: a join is of captures at different points, merged are the interfaces of one node; "
            "merge the files of each node alone, without --join"
        )
    points = _points([Path(path) for path in paths], merge)
    if flow is not None and (join or len(points) != 1):
        raise SpecError(
            f"--flow {flow}: a number in one summary: give one capture (or --merge several), without --join"
        )
    files = [file for _, group in points for file in group]
    joined = None
    if join:
        from ..captures import join_captures

        for file in files:
            if isinstance(file, InsidePath):  # a link or a pipe is refused as it is opened
                continue
            if not file.exists():
                raise CaptureError(f"{file}: no such capture")
            if not file.is_file():
                raise CaptureError(
                    f"{file}: joining reads a capture twice, which a pipe does not allow: save it as a file first"
                )
        cell = all(cell for cell, _ in points)
        joined = join_captures(files, one_clock=one_clock or cell, whole=cell, packet_filter=packet_filter)
    errors: list[CaptureError] = []
    together = join or merge or len(points) == 1
    files_read = summarise_points(
        [group for _, group in points],
        full=full,
        packet_filter=packet_filter,
        flow=flow,
        stop_fd=stop_fd,
        captured_at=captured_at,
        explained=explained,
        refused=None if together else errors.append,
    )
    if not files_read:
        raise CaptureError("\n".join(map(str, errors)))
    return AnalyzedCaptures(files_read, joined, tuple(map(str, errors)))


@dataclass(frozen=True, slots=True)
class ExplainedCaptures:
    """The connections of some captures, explained. refused: as of AnalyzedCaptures."""

    connections: tuple[Explanation, ...]
    refused: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """The object of `netwarp explain --json`."""
        connections = [each.as_json() for each in self.connections]
        return {"format": FORMAT, "connections": connections, "refused": list(self.refused)}


def explain_captures(
    paths: Sequence[str | Path],
    *,
    merge: bool = False,
    packet_filter: str | None = None,
    captured_at: Sequence[str] = (),
    most: int = MOST_EXPLAINED,
) -> ExplainedCaptures:
    """Explain the largest `most` connections of captures: what happened, what each end was set to, and what was the
    network's part. paths, merge, packet_filter, captured_at and errors: as of analyze_captures. One connection that
    several captures hold is explained once.
    """
    from ..captures.explanation import explain

    analyzed = analyze_captures(
        paths, merge=merge, full=True, packet_filter=packet_filter, captured_at=captured_at, explained=most
    )
    return ExplainedCaptures(tuple(explain(analyzed.files, most)), analyzed.refused)


def captures_of(directory: Path) -> list[Path]:
    """The captures in a directory, or in the folder capture/ of a cell's directory. No link in either is followed.
    Raises StoreError: capture/ is a link.
    """
    whole = InsidePath.at(directory)
    of_cell = whole / "capture"
    folder = of_cell if of_cell.is_dir() else whole
    return sorted({capture for pattern in CAPTURES for capture in folder.glob(pattern)})


def _points(paths: Sequence[Path], merge: bool) -> list[tuple[bool, list[Path]]]:
    """The capture points, each with its files, and whether all are of one netwarp cell (then on one clock). A cell's
    files are grouped by node.
    """
    points: list[tuple[bool, list[Path]]] = []
    for path in (Path("/dev/stdin") if str(given) == "-" else given for given in paths):
        if not path.is_dir():
            points.append((False, [path]))
            continue
        from ..store.run_dir import CellDir

        captures = captures_of(path)
        if not captures and (path / "plan.json").is_file():
            cells = sorted(each.name for each in (path / "cells").glob("*") if each.is_dir())
            example = f"; for example {path / 'cells' / cells[0]}" if cells else ""
            raise CaptureError(f"{path}: is the directory of a whole run: name one of its cells{example}")
        if not captures:
            raise CaptureError(
                f"{path}: neither a run directory (it has no plan.json) nor a directory of captures (it has no *.pcap, "
                "*.pcapng or *.cap, plain or packed)"
            )
        cell = CellDir(Path(str(captures[0])).parent.parent)
        if cell.cell.is_file():
            points += [(True, group) for group in _by_node(cell.read_cell(), captures)]
        else:
            points += [(False, [file]) for file in captures]
    if merge:
        if any(cell for cell, _ in points):
            raise SpecError("--merge: the captures of a cell are merged by host already")
        merged = [file for _, group in points for file in group]
        if len({os.path.realpath(file) for file in merged}) < len(merged):
            raise CaptureError("one file is given twice: merged, every packet of it would be a retransmission")
        return [(False, merged)]
    return points


def _by_node(cell: Cell, captures: Sequence[Path]) -> list[list[Path]]:
    """A cell's captures (<node>-<link>) grouped by host; those of a router stay separate, since its packets pass
    two interfaces.
    """
    hosts = {node.name for node in cell.nodes if node.kind == "host"}
    nodes = {f"{each.node}-{each.link}": each.node for each in cell.captures if each.node in hosts}
    groups: dict[str, list[Path]] = {}
    for capture in captures:
        stem = capture.name.split(".pcap")[0]
        groups.setdefault(nodes.get(stem, stem), []).append(capture)
    return list(groups.values())
