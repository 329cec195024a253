"""The two sides of `netwarp sctp check`: products, their files, settings, and what is said of mistakes."""

from pathlib import Path

import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment.sctp_sides import LEAST_MARKS, LINUX, _marks, products, read_side
from netwarp.experiment.sctp_traps import traps

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


AMF = """\
amf:
  sbi: {server: [{address: 127.0.0.5}]}
  ngap: {server: [{address: 127.0.0.5}]}
  guami: [{plmn_id: {mcc: 999, mnc: 70}}]
  plmn_support: []
  network_name: {full: Open5GS}
  amf_name: open5gs-amf0
"""
MME = """\
Identity = "mme.localdomain";
Realm = "localdomain";
ListenOn = "127.0.0.2";
LoadExtension = "dbg_msg_dumps.fdx";
ConnectPeer = "hss.localdomain" { ConnectTo = "127.0.0.8"; };
"""


@pytest.mark.parametrize(("text", "title", "rto_max"), [(AMF, "open5gs", "5 s"), (MME, "freeDiameter", "5 s")])
def test_a_file_that_sets_nothing_of_sctp_has_its_products_own_values(
    tmp_path: Path, text: str, title: str, rto_max: str
) -> None:
    file = tmp_path / "amf.yaml"
    file.write_text(text)
    side = read_side(str(file))
    assert title in side.title and side.settings["rto_max"] == rto_max
    assert side.remarks == ("amf.yaml sets nothing of SCTP, so the product's own values hold",)


def test_every_products_marks_are_its_own() -> None:
    """A file of one's marks alone is read as that product."""
    for name in products():
        marks = _marks(name)
        if marks:
            best = max(products(), key=lambda other: len(set(_marks(other)) & set(marks)))
            assert best == name and len(marks) >= LEAST_MARKS


def test_a_zero_leaves_the_value_of_the_system(tmp_path: Path) -> None:
    file = tmp_path / "amf.yaml"
    file.write_text("sctp: {srto_min: 0, srto_max: 6000, sinit_max_attempts: 0}")
    side = read_side(str(file))
    assert "rto_min" not in side.settings and "init_attempts" not in side.settings
    assert side.settings["rto_max"] == "6000 ms"
    assert side.remarks == ("srto_min, sinit_max_attempts: 0 leaves the value of the system (RFC 6458 8.1)",)


def of(settings: dict[str, object], *, connects: bool = True, paths: int = 1) -> list[str]:
    return [trap.setting for trap in traps(settings, connects=connects, paths=paths)]


def test_what_linux_has_by_itself_is_no_trap() -> None:
    assert [of({}, connects=connects, paths=paths) for connects in (True, False) for paths in (1, 2)] == [[]] * 4


def test_settings_that_do_something_else_are_told_with_their_source() -> None:
    assert of({"rto_min": "1 s", "rto_max": "1 s", "association_max_retrans": 3}) == ["rto_max", "rto_initial"][:1]
    (trap,) = traps({"rto_min": "1 s", "rto_max": "1 s", "rto_initial": "1 s"}, connects=True, paths=1)
    assert "11 timeouts end the association after 11 s" in trap.words and "RFC 9260 6.3.3 E2" in trap.words
    assert of({"init_max_timeout": "2 ms"}) == ["init_max_timeout"]
    assert of({"init_max_timeout": "2 ms"}, connects=False) == ["init_max_timeout", "init_max_timeout"]
    assert of({"init_attempts": 3}, connects=False) == ["init_attempts"]
    assert of({"association_max_retrans": 11}, paths=2) == of({"path_max_retrans": 4}, paths=2)
    assert of({"association_max_retrans": 10}, paths=2) == []
    assert of({"rto_initial": "100 ms"}) == ["rto_initial"]
    assert of({"heartbeat_interval": "off"}, paths=2) == ["heartbeat_interval"]


def test_free5gcs_two_milliseconds_are_told(tmp_path: Path) -> None:
    file = tmp_path / "amfcfg.yaml"
    file.write_text("configuration: {sctp: {numOstreams: 3, maxInstreams: 5, maxAttempts: 2, maxInitTimeout: 2}}")
    side = read_side(str(file))
    found = [trap.words for trap in traps(side.settings, connects=False, paths=1)]
    assert any("2 ms: the kernel takes milliseconds, and seconds may be meant" in text for text in found)


@pytest.mark.parametrize("number", ["9" * 5000, "-" + "9" * 5000])
def test_a_number_of_any_length_is_refused_or_read(number: str, tmp_path: Path) -> None:
    (tmp_path / "amf.yaml").write_text(OPEN5GS.replace("300", number))
    with pytest.raises(SpecError, match=r"srto_min: 9999\S* has more digits than a setting"):
        read_side(str(tmp_path / "amf.yaml"))
    with pytest.raises(SpecError, match="rto_min"):
        read_side(f"rto_min={number}")
