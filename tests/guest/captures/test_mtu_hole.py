"""A path-MTU black hole is told as such, and an outage is not."""

from pathlib import Path
from typing import Any

import netwarp
import pytest


def experiment(event: dict[str, Any]) -> dict[str, Any]:
    return {
        "format": 1,
        "name": "hole",
        "duration": "20 s",
        "node": {"a": {}, "b": {}},
        "link": {"p1": {"between": ["a", "b"], "rtt": "20 ms"}},
        "flow": {
            "s": {
                "from": "a", "to": "b", "protocol": "sctp", "paths": ["p1"], "stop": "18 s", "message_size": "1200 B",
                "sender": {
                    "burst": {"sizes": ["1200 B", "80 B"], "every": "1 s"}, "nodelay": True, "rto_max": "2 s",
                    "unordered": True,
                },
            }
        },
        "event": {"fault": {"link": "p1", "at": "5 s", "for": "8 s", **event}},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("event", "told"),
    [({"action": "blackhole", "longer_than": "1000 B"}, True), ({"action": "cut"}, False)],
)
def test_a_hole_is_told_and_an_outage_is_not(event: dict[str, Any], told: bool, tmp_path: Path) -> None:
    run = netwarp.run(experiment(event), out=tmp_path / "run", report=False)
    (capture,) = run.path.glob("cells/*/capture/a-p1.pcap*")
    (explained,) = netwarp.explain_captures([capture]).connections
    assert any("path-MTU black hole" in sentence for sentence in explained.network) == told
