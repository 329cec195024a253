"""Begins a study: the files that it names (traces, sizes, messages, pages) are beside this one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import netwarp


def begin(name: str, keys: Mapping[str, Any]) -> netwarp.Experiment:
    """An experiment with these keys of the top."""
    return netwarp.Experiment(name, **keys)


def again(document: Mapping[str, object]) -> netwarp.Experiment:
    """The experiment of a document, such as a shrunk one."""
    return netwarp.Experiment.from_dict(document)
