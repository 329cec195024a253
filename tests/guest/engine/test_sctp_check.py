"""`netwarp sctp check`: a pair whose timers do not fit is told so, with cures that its own cells show."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import netwarp.engine.sctp_check as sctp_check
import pytest
from netwarp.experiment.sctp_sides import read_side
from netwarp.store.conclusion import read_conclusion


def test_a_pair_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sctp_check, "CUTS", (1, 20))
    monkeypatch.setattr(sctp_check, "QUIET_S", 100)
    a, b = read_side("srsran-gnb"), read_side("open5gs")
    checked = sctp_check.check_sctp(a, b, out=tmp_path / "run", jobs=2)
    assert set(checked.run.outcomes) == {"COMPLETED"}
    texts = [each.text for each in checked.findings]
    (needless,) = (each for each in checked.findings if "are sent twice" in each.text)
    assert needless.weight > 0.01 and needless.cells
    assert needless.remedy.count("(run: 0 % sent twice)") == 2, "both cures were run"
    # 120 + 240 + 8 or 9 of 500 ms before the 11th expiry, each up to 8/63 late
    (outage,) = (text for text in texts if "ends the association" in text)
    assert outage.startswith("an outage of 20 s ends the association: A gives up after ")
    assert 4.5 < float(outage.split("after ")[1].split(" s")[0]) < 5.7
    concluded = read_conclusion(checked.run.directory)
    assert concluded is not None and concluded.answer == f"{len(texts)} things are wrong, found in 16 cells."
    assert [each.text for each in concluded.parts[0].sentences] == texts
    checked.write_junit(tmp_path / "it.xml")
    root = ElementTree.parse(tmp_path / "it.xml").getroot()
    assert len(root.findall(".//failure")) == len(checked.findings)
    assert {each["weight"] > 0 for each in checked.as_json()["findings"]} == {True}
