"""The two sides of `netwarp sctp check`: products, their files, settings, and what is said of mistakes."""

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment.sctp_sides import LINUX, products, read_side

OPEN5GS = """\
logger:
  file: /var/log/open5gs/amf.log
global:
  sctp:
    spp_hbinterval: 10000   # ms
    srto_min: 300
    srto_max: 6000
    sinit_max_attempts: 6
    # srto_initial: 1
    sctp_unheard_of: 3
"""
SRSRAN = """\
cu_cp:
  amf:
    sctp_rto_initial: 500
    sctp_rto_min: -1
    sctp_assoc_max_retx: 12
"""
KAMAILIO = """\
loadmodule "sctp.so"
modparam("sctp", "srto_min", 400)
modparam("sctp", "sack_freq", 1)
"""


def test_products_have_values_with_their_sources() -> None:
    side = read_side("srsran-gnb")
    assert side.settings["rto_min"] == "120 ms"
    assert "cu_cp_unit_config.h" in side.sources["rto_min"]
    assert {"srsran-gnb", "open5gs", "free5gc-amf", "kamailio"} <= set(products())
    assert "linux-2.6.10-like" not in products(), "an old kernel is no product"
    assert read_side(LINUX).settings == {}


def test_an_end_that_listens_sends_no_init() -> None:
    side = read_side("srsran-gnb")
    assert "init_attempts" in side.options(connects=True)
    assert "init_attempts" not in side.options(connects=False)


def test_settings_lie_over_a_product() -> None:
    side = read_side("open5gs, sack_delay=40 ms, path_max_retrans=3")
    assert side.settings["sack_delay"] == "40 ms" and side.settings["path_max_retrans"] == 3
    assert side.settings["rto_max"] == "5 s"
    assert read_side("rto_min=300ms").settings == {"rto_min": "300ms"}


@pytest.mark.parametrize(
    ("text", "title", "expected"),
    [
        (OPEN5GS, "open5gs", {"heartbeat_interval": "10000 ms", "rto_min": "300 ms", "rto_max": "6000 ms",
                              "rto_initial": "3 s", "init_attempts": 6}),
        (SRSRAN, "srsRAN Project", {"rto_initial": "500 ms", "association_max_retrans": 12, "rto_max": "500 ms"}),
        (KAMAILIO, "kamailio", {"rto_min": "400 ms", "sack_frequency": 1}),
    ],
)  # fmt: skip
def test_a_configuration_file_is_known_by_its_keys(
    tmp_path: Path, text: str, title: str, expected: dict[str, object]
) -> None:
    file = tmp_path / "it.conf"
    file.write_text(text)
    side = read_side(str(file))
    assert title in side.title
    assert {key: side.settings[key] for key in expected} == expected
    assert ("rto_min" in side.settings) == (title != "srsRAN Project"), "-1 is the system's value"
    assert side.ignored == (("sctp_unheard_of",) if title == "open5gs" else ())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("open5g", 'did you mean "open5gs"'),
        ("open5gs,rto_mim=3 s", 'did you mean "rto_min"'),
        ("rto_min", "no file, no key=value and no product"),
        ("rto_min=300", 'rto_min=300: 300 is a bare number; .*; write for example "1 s"'),
    ],
)
def test_mistakes_are_said_with_what_is_known(words: str, said: str) -> None:
    with pytest.raises(SpecError, match=said):
        read_side(words)


def test_a_file_without_known_keys_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("a: 1\n")
    with pytest.raises(SpecError, match="holds none of the keys"):
        read_side(str(tmp_path / "x.yaml"))
