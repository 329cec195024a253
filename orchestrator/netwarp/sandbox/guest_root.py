"""Prepares a guest that needs a whole userland: this machine's files, unpacked packages above them, both read-only."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path

FILES = ("init", "rest", "guest.env")


def prepare_root(place: Path, packages: Path, rest: Path, settings: Mapping[str, str]) -> None:
    """Put the FILES into a guest's directory. packages: laid out as a root. rest: the program that goes on in the new
    root; it reads guest.env, the settings as variables of the shell.
    """
    for name, source in (("init", Path(__file__).with_name("guest_root.sh")), ("rest", rest)):
        shutil.copyfile(source, place / name)
        (place / name).chmod(0o755)
    values = {**settings, "PACKAGES": str(packages)}
    (place / "guest.env").write_text("".join(f"{name}={shlex.quote(value)}\n" for name, value in values.items()))
