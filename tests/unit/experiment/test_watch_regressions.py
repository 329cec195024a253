"""The known regressions of experiments/watch: each patch names its commits, and a kernel can be built with it."""

from __future__ import annotations

import re

from netwarp.guestkernel.variant import patched
from support.checkout import ROOT

FOLDER = ROOT / "experiments/watch/regressions"


def test_each_patch_names_the_commit_that_it_undoes() -> None:
    patches = sorted(FOLDER.glob("*.patch"))
    assert len(patches) >= 4
    listed = (FOLDER.parent / "regressions.py").read_text()
    for patch in patches:
        assert patched(patch).label == patch.stem
        head = patch.read_text().partition("\n--- a/")[0]
        assert head.startswith("Linux 6.12. ") and re.search(r"\b[0-9a-f]{12}\b", head), patch
        assert f'"{patch.stem}"' in listed, patch
