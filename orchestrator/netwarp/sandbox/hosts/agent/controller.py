"""The messages between the agent and the controller: a JSON object a line, on standard input and output."""

from __future__ import annotations

import json
import os
from typing import Any


class Refused(Exception):
    """The reason why a command is not carried out, and a remedy."""

    def __init__(self, what: str, remedy: str = "") -> None:
        super().__init__(what)
        self.remedy = remedy


class Gone(Exception):
    """The controller has gone."""


def say(**message: Any) -> None:
    """One line to the controller."""
    write_all(json.dumps(message).encode() + b"\n")


def write_all(data: bytes) -> None:
    """Bytes to the controller."""
    while data:
        data = data[os.write(1, data) :]
