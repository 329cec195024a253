"""Tests in a laboratory leave every machine as it was; without a laboratory they are skipped."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from support.laboratory import differences, state

_LAST: list[dict[str, list[str]]] = []
"""The state after the test before, if that test left what it found: a look takes ten seconds."""


@pytest.fixture(autouse=True)
def as_before(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every test leaves every machine as it was."""
    if "NETWARP_LAB_TEST" not in os.environ:
        pytest.skip("only in a laboratory: make lab-test")
    before = _LAST.pop() if _LAST else state()
    assert all("[sudoers]" in lines for lines in before.values())
    yield
    called = getattr(request.node, "callspec", None)
    after = state()
    assert differences(before, after, called.params.get("machine", "") if called else "") == []
    _LAST.append(after)
