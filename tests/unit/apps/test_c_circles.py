"""No C file of apps/ depends on itself through others: by its includes, and by the symbols its object asks for."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.checkout import ROOT

FOLDERS = sorted(path.name for path in (ROOT / "apps").iterdir() if path.is_dir())


def symbols(path: Path) -> list[tuple[str, str]]:
    """(kind, name) of each symbol of an object, as nm prints them."""
    lines = subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout.splitlines()
    return [(line.split()[-2], line.split()[-1]) for line in lines]


def dependencies(folder: str) -> dict[str, set[str]]:
    """The units (X.c with X.h) that each unit of the folder includes or calls."""
    objects = ROOT / "build" / ("pic" if folder == "analyzer" else "obj") / folder
    needs: dict[str, set[str]] = {}
    undefined: dict[str, set[str]] = {}
    defined: dict[str, str] = {}
    for path in sorted((ROOT / "apps" / folder).glob("*.[ch]")):
        needs.setdefault(path.stem, set()).update(
            Path(name).stem for name in re.findall('#include "([^"]+)"', path.read_text())
        )
        if path.suffix == ".c" and (objects / f"{path.stem}.o").exists():
            table = symbols(objects / f"{path.stem}.o")
            undefined[path.stem] = {name for kind, name in table if kind == "U"}
            defined.update({name: path.stem for kind, name in table if kind in "TDBR"})
    assert undefined, objects
    for unit, names in undefined.items():
        needs[unit] |= {defined[name] for name in names if name in defined}
    return {unit: names & needs.keys() - {unit} for unit, names in needs.items()}


@pytest.mark.parametrize("folder", FOLDERS)
def test_no_unit_depends_on_itself(folder: str) -> None:
    """Units that depend on nothing that is left are taken away, until none is left; a circle stays."""
    left = dependencies(folder)
    while free := {unit for unit, names in left.items() if not names & left.keys()}:
        left = {unit: names for unit, names in left.items() if unit not in free}
    assert not left
