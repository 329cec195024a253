"""The programs and libraries that `make apps` builds: the only list of them. Standard library only."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from .checkout import CHECKOUT

BUILD = CHECKOUT / "build"
"""The directory that `make apps` builds into."""


@dataclass(frozen=True)
class BuiltFile:
    """A file that `make apps` builds.

    path: relative to BUILD. in_cell: the name under which it is put into each cell's directory ("": it is not).
    guest_only: only guests need it. launcher: it starts a sandbox and has no part in what a cell measures.
    agents_only: only cells with agents need it. pages_only: only cells with pages need it. programs_only: only
    cells with a program of the user's.
    """

    path: str
    in_cell: str = ""
    guest_only: bool = False
    launcher: bool = False
    agents_only: bool = False
    pages_only: bool = False
    programs_only: bool = False


BUILT_FILES = (
    BuiltFile("bin/cell-init", in_cell="init"),
    BuiltFile("bin/sender", in_cell="bin/sender"),
    BuiltFile("bin/receiver", in_cell="bin/receiver"),
    BuiltFile("bin/agent", in_cell="bin/agent", agents_only=True),
    BuiltFile("bin/web-server", in_cell="bin/web-server", pages_only=True),
    BuiltFile("bin/web-client", in_cell="bin/web-client", pages_only=True),
    BuiltFile("bin/probe"),
    BuiltFile("bin/drill"),
    BuiltFile("lib/seed.so", in_cell="seed.so", guest_only=True),
    BuiltFile("lib/program-clock.so", in_cell="bin/program-clock.so", guest_only=True, programs_only=True),
    BuiltFile("lib/libnetwarp_analyzer.so"),
    BuiltFile("bin/guest-exec", launcher=True),
    BuiltFile("bin/netns-exec", launcher=True),
)
CELL_FILES = tuple(file for file in BUILT_FILES if file.in_cell)


def program_digests() -> dict[str, str]:
    """SHA-256 of every program that runs in a guest. With the kernel's hash they identify the instrument: two runs with
    equal hashes must give equal captures.
    """
    return {file.path: hashlib.sha256((BUILD / file.path).read_bytes()).hexdigest() for file in CELL_FILES}
