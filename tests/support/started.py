"""The programs that this checkout's Python starts by name, found in its source."""

import ast
import functools
from pathlib import Path

STARTING = frozenset({"run", "Popen", "check_call", "check_output"})
LOOKING = frozenset({"find_executable", "which"})
FOLDERS = ("orchestrator", "tests", "benchmarks")


@functools.cache
def calls(root: Path) -> list[tuple[Path, ast.Call, str]]:
    """Every call in a Python file of the checkout: the file, the call, what is called (`subprocess.run`)."""
    assert all((root / folder).is_dir() for folder in FOLDERS)
    return [
        (path, node, ast.unparse(node.func))
        for folder in FOLDERS
        for path in sorted((root / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]


def started(root: Path) -> dict[str, list[str]]:
    """Program -> where it is started (`file:line`): the first word of a list that is written there or named."""
    found: dict[str, list[str]] = {}
    for path, call, function in calls(root):
        if function.startswith("subprocess.") and function.rpartition(".")[2] in STARTING and call.args:
            name = _first(call.args[0])
        else:
            continue
        if name is not None and "/" not in name:
            found.setdefault(name, []).append(f"{path.relative_to(root)}:{call.lineno}")
    return found


def looked_up(root: Path) -> dict[str, list[str]]:
    """Program -> where its file is looked for."""
    found: dict[str, list[str]] = {}
    for path, call, function in calls(root):
        if function.rpartition(".")[2] in LOOKING and call.args:
            name = _text(call.args[0])
            if name is not None and "/" not in name:
                found.setdefault(name, []).append(f"{path.relative_to(root)}:{call.lineno}")
    return found


def _first(command: ast.expr) -> str | None:
    return _text(command.elts[0]) if isinstance(command, ast.List) and command.elts else None


def _text(value: ast.expr) -> str | None:
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
