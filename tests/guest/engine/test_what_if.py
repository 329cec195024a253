"""The answer of `netwarp explain --what-if` against the original cell, run with the change."""

import html
from pathlib import Path
from typing import Any

import netwarp
import netwarp.engine.replay_fits as replay_fits
import pytest
from netwarp.captures import read_captures
from netwarp.captures.first_difference import packets_since
from netwarp.captures.sctp.association import Association
from netwarp.captures.sctp.stalls import association_course
from netwarp.core.errors import CaptureError
from netwarp.engine.what_if import DRAWS, what_if
from netwarp.measure.cell_records import read_cell_records
from netwarp.store.conclusion import read_conclusion


def outage(rto_min: str, *, both_ways: bool) -> dict[str, Any]:
    """Messages of NGAP (PPID 60) over three streams at random gaps through an outage; b answers over two."""
    messages = {"gaps": {"exponential": "400 ms"}, "sizes": "120 B"}
    backwards = {"reverse": messages | {"streams": 2}, "receiver": {"ppid": 60}} if both_ways else {}
    return {
        "format": 1,
        "name": "outage",
        "duration": "16 s",
        "node": {"a": {}, "b": {}},
        "link": {"p1": {"between": ["a", "b"], "rtt": "20 ms"}},
        "flow": {
            "s": {
                "from": "a", "to": "b", "protocol": "sctp", "paths": ["p1"], "stop": "15 s", "messages": messages,
                "sender": {"rto_min": rto_min, "nodelay": True, "streams": 3, "ppid": 60}, **backwards,
            }
        },
        "event": {"cut": {"action": "cut", "link": "p1", "at": "6 s", "for": "700 ms"}},
    }  # fmt: skip


def sender_capture(run: netwarp.Run) -> Path:
    (capture,) = run.path.glob("cells/*/capture/a-p1.pcap*")
    return capture


def test_the_answer_of_all_settings_that_match_holds_the_cell_with_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay_fits, "NARROWER", 0)
    monkeypatch.setattr(replay_fits, "PHASES", ())
    field, truth = (
        netwarp.run(outage(rto, both_ways=True), out=tmp_path / rto[0], report=False) for rto in ("1 s", "300 ms")
    )
    found = what_if([*field.path.glob("cells/*")], ["a.rto_min=300 ms"], out=tmp_path / "w")
    streams = [{message.stream for message in messages} for messages in found.inputs.messages]
    assert streams == [{0, 1, 2}, {0, 1}] and found.inputs.payload_protocol == (60, 60)
    assert found.match.whole, found.match.parting
    assert found.replays and found.spec.is_file()
    assert len(found.changed) == 2 * DRAWS * len(found.replays)
    assert {variant.draw for variant in found.changed} == set(range(2 * DRAWS))
    stall = found.field[0].stalls[0]
    association = Association(read_captures([sender_capture(truth)]), 0)
    begin_ns, end_ns = (int(association.row[name]) for name in ("first_ns", "last_ns"))
    true_s = association_course(association, begin_ns, end_ns).waits_s[stall.tsn]
    said = next(each for each in found.outages if (each.end, each.tsn) == (0, stall.tsn))
    assert 0.9 * said.low_s - 0.05 <= true_s <= 1.1 * said.high_s + 0.05
    assert true_s < 0.9 * stall.wait_s, "the change matters"
    assert found.fits is not None and len(found.fits.matching) > 1, "the capture does not show all settings"
    assert "" in {fit.differs for fit in found.fits.matching}
    concluded = read_conclusion(found.run.directory)
    assert concluded is not None and concluded.answer.startswith("With a.rto_min = 300 ms: the outage of what ")
    said = [each.text for part in concluded.parts for each in part.sentences]
    assert any(f"{len(found.fits.matching)} of {found.fits.tried} sets" in text for text in said)
    assert found.run.page is not None and concluded.answer in html.unescape(found.run.page.read_text())


def test_a_capture_that_begins_amid_the_association_is_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first three seconds are cut off, with the handshake."""
    monkeypatch.setattr(replay_fits, "NARROWER", 0)
    monkeypatch.setattr(replay_fits, "PHASES", ())
    field = netwarp.run(outage("1 s", both_ways=False), out=tmp_path / "field", report=False)
    (cell,) = field.plan.cells
    whole = sender_capture(field)
    t0_ns = read_cell_records(field.directory.cell(cell.id).init_log).ready.t0_realtime_ns
    (tmp_path / "late").mkdir()
    late = packets_since(whole, t0_ns + 3_000_000_000, tmp_path / "late")
    with pytest.raises(CaptureError, match="--captured-at ADDRESS"):
        what_if([late], ["a.rto_min=300 ms"], out=tmp_path / "nowhere")
    # the first packet is a SACK, so the end that sends the data is b
    found = what_if([late], ["b.rto_min=300 ms"], captured_at=["10.0.0.1"], out=tmp_path / "w")
    assert not found.inputs.begun and found.match.whole, found.match.parting
    assert found.answered
    (outage_then,) = found.outages
    assert outage_then.high_s < 0.95 * outage_then.was_s, "the change matters"
