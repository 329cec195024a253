"""Where a run may be written."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.store.run_locations import need_outside_dev


@pytest.mark.parametrize("place", ["/dev/shm/run", "/dev", "/tmp/../dev/shm/a/b"])
def test_not_below_dev(place: str) -> None:
    """A guest has a /dev of its own: its kernel would end in a panic, without its init."""
    with pytest.raises(SpecError, match="below /dev, of which a guest sees nothing"):
        need_outside_dev(Path(place))


def test_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "results").symlink_to("/dev/shm")
    with pytest.raises(SpecError, match="below /dev"):
        need_outside_dev(tmp_path / "results" / "run")


@pytest.mark.parametrize("place", ["/device", "/run/dev/shm", "results/x"])
def test_elsewhere(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    need_outside_dev(Path(place))
