"""SCTP ends that are bound to no address: the kernel tells its peer of an address that goes, and of one that comes."""

from __future__ import annotations

from pathlib import Path

import netwarp
import numpy as np
from netwarp.captures import read_captures
from netwarp.core.wire import ASCONF, ASCONF_ACK

ADDRESSES = "addresses come and go"


def test_an_address_that_goes_is_taken_out_of_the_association(tmp_path: Path) -> None:
    """An ASCONF that deletes it, and one that adds it when it is back, each answered (RFC 5061 4.2)."""
    run = netwarp.run("roots", only=["sctp"], where={"option": ADDRESSES}, out=tmp_path / "run", report=False)
    captures = [read_captures([path]) for path in run.path.glob("cells/*/capture/a-*.pcap*")]
    kinds = np.concatenate([capture.chunks["type"] for capture in captures]).tolist()
    assert kinds.count(ASCONF) >= 2 and kinds.count(ASCONF_ACK) == kinds.count(ASCONF)
