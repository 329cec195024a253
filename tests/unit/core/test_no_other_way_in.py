"""Rooms that touch run directories open, list, move and remove files by InsidePath alone (core/inside.py): its methods
follow no link. A call that takes a path in another way is named here with what it is for, or it is refused.
"""

from __future__ import annotations

import ast
from pathlib import Path

import netwarp

ROOMS = ("store", "engine", "measure", "results", "present", "captures", "sandbox", "cli")
BY_A_PATH = {
    "os": {"open", "unlink", "remove", "rename", "replace", "link", "symlink", "rmdir", "mkdir", "makedirs", "scandir",
           "listdir", "walk", "chmod", "chown", "truncate", "fspath"},
    "shutil": {"rmtree", "copy", "copy2", "copyfile", "copytree", "move"},
    "tempfile": {"mkstemp", "mkdtemp", "TemporaryDirectory", "NamedTemporaryFile", "TemporaryFile"},
    "io": {"open"},
}  # fmt: skip
ALLOWED = {
    "store/run_locations.py": "results/NAME and --out, which lie above a run directory",
    "store/compressed.py": "names in an open folder, by its descriptor",
    "sandbox/privileges.py": "a name in an open folder, by its descriptor",
    "sandbox/kernel_sysctls.py": "/proc/sys, and a scratch directory of its own",
    "sandbox/netns.py": "a scratch directory of its own",
    "sandbox/spinning.py": "/proc",
    "sandbox/guest_root.py": "a guest's root in a scratch directory",
    "sandbox/hosts/backend.py": "a scratch directory of its own",
    "sandbox/hosts/held_machines.py": "a scratch directory of its own",
    "sandbox/hosts/agent/": "on a machine under test, in its own directory",
    "captures/native.py": "a file in a run directory by its descriptor, any other by its path",
    "engine/bundles.py": "a scratch directory of its own, into which a bundle is unpacked",
    "engine/cluster_files.py": "the programs' cache of a dask worker",
    "engine/local_workers.py": "a pipe's descriptor",
    "engine/selftests.py": "the selftests' own output",
    "engine/packetdrill.py": "the selftests' own output",
    "engine/watch.py": "the watch's own folder",
    "engine/watch_bisect.py": "a scratch directory of its own",
    "present/captures/page_sections.py": "a capture that the user names",
    "present/letter_widths.py": "a scratch directory of its own",
    "store/bundle_files.py": "a bundle file that the user names, and a scratch directory of its own",
    "cli/": "files that the user names",
}


def _calls(tree: ast.AST) -> list[tuple[int, str]]:
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id == "open":
            found.append((node.lineno, "open"))
        module = called.value if isinstance(called, ast.Attribute) else None
        if isinstance(called, ast.Attribute) and isinstance(module, ast.Name):
            found += [(node.lineno, f"{module.id}.{called.attr}")] * (called.attr in BY_A_PATH.get(module.id, ()))
    return found


def test_a_run_directory_has_one_way_in() -> None:
    root = Path(netwarp.__file__).parent
    others = []
    for room in ROOMS:
        for file in sorted((root / room).rglob("*.py")):
            name = str(file.relative_to(root))
            if not name.startswith(tuple(ALLOWED)):
                others += [f"{name}:{line}: {call}" for line, call in _calls(ast.parse(file.read_text()))]
    assert others == [], "use the methods of InsidePath"


def test_a_call_by_a_path_is_found() -> None:
    text = "open(x)\nos.replace(a, b)\nshutil.rmtree(x)\nx.open()\nx.replace(y)\n"
    assert _calls(ast.parse(text)) == [(1, "open"), (2, "os.replace"), (3, "shutil.rmtree")]
