"""HEARTBEATs at listed instants, in place of the kernels' own (`heartbeats = { file = ... }`)."""

from pathlib import Path

import netwarp
from netwarp.captures import read_captures
from netwarp.captures.sctp.association import Association
from netwarp.experiment.toml_writer import toml_text
from netwarp.measure.cell_records import read_cell_records

START_S = 0.5
SPEC = {
    "format": 1,
    "name": "beats",
    "duration": "40 s",
    "node": {"a": {}, "b": {}},
    "link": {name: {"between": ["a", "b"], "rtt": "20 ms"} for name in ("p1", "p2")},
    "flow": {
        "s": {
            "from": "a", "to": "b", "protocol": "sctp", "paths": ["p1", "p2"], "start": f"{START_S} s",
            "messages": {"gaps": "2 s", "sizes": "100 B"}, "reverse": {"gaps": "3 s", "sizes": "100 B"},
            "sender": {"heartbeat_interval": "1 s"}, "heartbeats": {"file": "beats.csv", "until": "25 s"},
        }
    },
}  # fmt: skip
BEATS = [
    (0.2, "sender", "p2"), (0.3, "receiver", "p2"), (7.000001, "receiver", "p1"), (7.000001, "sender", "p2"),
    (21.5, "sender", "p1"), (24.6, "sender", "p2"),
]  # fmt: skip


def test_both_ends_send_those_that_are_listed_and_the_kernels_own_later(tmp_path: Path) -> None:
    (tmp_path / "spec").mkdir()
    (tmp_path / "spec" / "spec.toml").write_text(toml_text(SPEC))
    lines = ["time_s,end,path", *(f"{at},{end},{path}" for at, end, path in BEATS)]
    (tmp_path / "spec" / "beats.csv").write_text("\n".join(lines) + "\n")
    done = netwarp.run(tmp_path / "spec", out=tmp_path / "run", report=False)
    (cell,) = done.plan.cells
    assert done.complete, done.table("cells")
    directory = done.directory.cell(cell.id)
    t0_ns = read_cell_records(directory.init_log).ready.t0_realtime_ns
    found: list[tuple[int, str, str]] = []
    until_ns = 25_000_000_000
    own = 0
    for role, node in (("sender", "a"), ("receiver", "b")):
        capture = read_captures(sorted(directory.capture.glob(f"{node}-*.pcap*")))
        beats = Association(capture, 0).heartbeats
        assert beats.answered[beats.time_ns - t0_ns < until_ns].all(), "an unconfirmed path is confirmed by them too"
        names = ["p1" if "10.0.0." in capture.address(int(path), 0) else "p2" for path in beats.path]
        rows = zip(beats.direction.tolist(), beats.time_ns.tolist(), names, strict=True)
        mine = ("sender", "receiver").index(role)
        sent = [(time_ns - t0_ns, role, name) for direction, time_ns, name in rows if direction == mine]
        found += [each for each in sent if each[0] < until_ns]
        if role == "sender":
            own = len(sent) - sum(each[1] == role for each in found)
    listed = [each for each in sorted(BEATS) if START_S + each[0] < 25]
    assert len(listed) == len(BEATS) - 1 and own > 5, "the kernel's own, about 1 s apart, in 15 s"
    assert [(end, path) for _, end, path in sorted(found)] == [(end, path) for _, end, path in listed]
    for (time_ns, *_), (at_s, *_) in zip(sorted(found), listed, strict=True):
        assert 0 <= time_ns - round((START_S + at_s) * 1e9) - 1000 < 50_000
