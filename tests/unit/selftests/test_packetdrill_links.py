"""Links beside a script lead netwarp, which may be root, to no other file."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.selftests.packetdrill.collection import Scripts


@pytest.mark.parametrize("name", ["defaults.sh", "set_sysctls.py"])
def test_a_link_beside_a_script_is_refused(name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.sh"
    folder = tmp_path / "scripts"
    folder.mkdir()
    for file in (secret, folder / "own.pkt", folder / "plain.sh"):
        file.write_text("0 a() = 0\n")
    assert Scripts(folder).files(folder / "own.pkt") == (folder / "plain.sh",)
    (folder / name).symlink_to(secret)
    with pytest.raises(SpecError, match=f"{name}: is a symbolic link"):
        Scripts(folder).files(folder / "own.pkt")
