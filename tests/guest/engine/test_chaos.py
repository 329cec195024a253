"""`make chaos`, short: some kills on every back end. The command does a hundred; virtual has more in test_kills.py."""

from __future__ import annotations

import json
import random
from dataclasses import asdict
from pathlib import Path

import pytest
from support.chain_kit import Checkout
from support.chaos import Kill, chaos, kill_of, summary
from support.killable import TARGETS, family

SHORT = {"virtual": 2, "guest": 3, "netns": 2, "dask": 1}
"""The seed chooses with which target it begins. A run in a guest takes Python there some seconds to start."""


@pytest.mark.parametrize("backend", SHORT)
def test_some_kills(backend: str, checkout: Checkout, tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(1, 1 << 31)
    kills = chaos(checkout, tmp_path, {backend: SHORT[backend]}, seed, report=False)
    print(summary(kills, seed))
    assert len({kill.target for kill in kills}) == len(kills) <= len(TARGETS[backend])
    assert [kill for kill in kills if kill.left or kill.wrong] == []


def test_kills_that_left_something_are_counted() -> None:
    """The summary of kills that left something is not that of kills that did not."""
    well = Kill("virtual", "guest", 1.5, 0.01, (), 1, 0, "")
    left = Kill("virtual", "guest", 2.5, 0.02, ("mount x",), 1, 0, "")
    wrong = Kill("netns", "netwarp", 0.5, 0.03, (), 0, 2, "other tables")
    said = summary([well, left, wrong], 7)
    assert "1 of 3 kills left nothing" in said and "seed 7" in said
    assert "1.50 to 2.50 s" in said and "2 wall-clock cells" in said
    assert kill_of(json.dumps(asdict(left))) == left


def test_the_family_of_a_process_is_all_of_it() -> None:
    import os
    import subprocess
    import sys

    nested = f"import subprocess, sys; subprocess.run([{sys.executable!r}, '-c', 'input()'])"
    with subprocess.Popen([sys.executable, "-c", nested], stdin=subprocess.PIPE) as process:
        while len(family(process.pid)) < 1:
            assert process.poll() is None
        assert set(family(process.pid)) < set(family(os.getpid()))
        assert process.stdin is not None
        process.stdin.close()
