"""Directories that a guest cannot see: a run in them is refused before it begins."""

from __future__ import annotations

from pathlib import Path

import netwarp
import pytest
from netwarp.core.errors import SpecError
from netwarp.sandbox.netns import NetnsBackend
from netwarp.sandbox.virtual import VirtualBackend
from support.specs import BASE


@pytest.mark.parametrize("place", ["/dev/shm/run", "/dev", "/tmp/../dev/shm/a/b"])
def test_not_below_dev(place: str, tmp_path: Path) -> None:
    """A guest has a /dev of its own: its kernel would end in a panic, without its init."""
    backend = VirtualBackend(tmp_path / "linux", tmp_path)
    with pytest.raises(SpecError, match="below /dev, of which a guest sees nothing"):
        backend.check_place(Path(place))
    NetnsBackend(tmp_path).check_place(Path(place))  # it has the host's


@pytest.mark.parametrize("place", ["/device", "/run/dev/shm", "results/x"])
def test_elsewhere(place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    VirtualBackend(tmp_path / "linux", tmp_path).check_place(Path(place))


def test_a_run_below_dev_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(BASE)
    out = Path("/dev/shm/netwarp-test-place")
    with pytest.raises(SpecError, match="below /dev"):
        netwarp.run(spec, out=out, backend="virtual")
    assert not out.exists()
    (tmp_path / "results").symlink_to("/dev/shm")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match="below /dev"):
        netwarp.run(spec, backend="virtual")
