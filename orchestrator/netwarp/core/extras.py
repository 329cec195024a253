"""The one command that installs what an option needs and a set-up leaves out: the extras of pyproject.toml."""

from __future__ import annotations

import re
import shlex
import sys

from .checkout import INSTALLED


def install_extra(extra: str) -> str:
    """The command for an extra: `data`, `cluster` or `hosts`."""
    if not INSTALLED:
        return "make setup EXTRAS=all"
    from importlib.metadata import requires

    packages = [line.partition(";") for line in requires("netwarp") or ()]
    wanted = [name.strip() for name, _, only in packages if re.fullmatch(rf"\s*extra == '{extra}'", only)]
    return shlex.join([sys.executable, "-m", "pip", "install", *wanted])
