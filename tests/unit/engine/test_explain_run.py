"""`explain` of a whole run's directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from netwarp.core.errors import CaptureError
from netwarp.engine.captures import explain_captures


def test_a_runs_directory_is_told_from_one_without_captures(tmp_path: Path) -> None:
    (tmp_path / "run" / "cells" / "main_r0_0123456789").mkdir(parents=True)
    (tmp_path / "run" / "plan.json").write_text("{}")
    with pytest.raises(CaptureError, match="is the directory of a whole run: name one of its cells") as caught:
        explain_captures([tmp_path / "run"])
    assert str(tmp_path / "run" / "cells" / "main_r0_0123456789") in str(caught.value)
    with pytest.raises(CaptureError, match="neither a run directory"):
        explain_captures([tmp_path])
