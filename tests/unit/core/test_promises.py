"""README's times and sizes are numbers that CI holds (.ci/promised.sh)."""

from __future__ import annotations

import re
import subprocess

import pytest
from support.checkout import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def promised(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([ROOT / ".ci" / "promised.sh", *arguments], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("target", ["choi2009", "test"])
def test_a_command_that_takes_longer_than_README_says_fails(target: str) -> None:
    status, said = promised("minutes", target)
    assert status == 0
    minutes = int(said)
    assert promised("minutes", target, str(60 * minutes))[0] == 0
    assert promised("minutes", target, str(60 * minutes + 1))[0] == 1
    assert f"promised.sh minutes {target}" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_what_is_not_promised_is_told() -> None:
    assert promised("minutes", "nothing") == (1, "README promises no minutes of make nothing \n")


def test_disk_is_held() -> None:
    status, said = promised("disk", str(ROOT / "docs"))
    assert status == 0 and said.startswith("disk: 1 of at most ")


def test_README_has_no_other_time_or_size() -> None:
    """A number of minutes, MB or GB that nothing checks."""
    numbers = re.findall(r"[^ ]+ [^ ]+ [\d.]+ (?:minutes?|hours?|MB|GB)\b", README)
    assert len(numbers) >= 3
    assert [text for text in numbers if not text.startswith("at most ")] == []
