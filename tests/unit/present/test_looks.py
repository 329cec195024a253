"""A variant has one colour and marker in all figures of a report, whichever factors a figure names it by."""

from __future__ import annotations

import netwarp
import pytest
from netwarp.present.looks import report_looks
from netwarp.present.run_data import read_run
from netwarp.present.style import Look
from support.report_kit import plan_of, spec_text, write_run

MORE = """\
[figure.one_outage]
metric = "goodput_bit_s"
x = "variant"
lines = ["outage"]
where = { failover = ["default", "-"] }
[figure.at_10]
metric = "goodput_bit_s"
x = "failover"
lines = ["outage", "variant"]
where = { outage = "10 s" }
[figure.all]
metric = "goodput_bit_s"
x = "failover"
lines = ["variant", "outage"]
where = { failover = ["default", "-"] }
[figure.by_variant]
metric = "goodput_bit_s"
x = "outage"
lines = ["variant"]
where = { failover = ["default", "-"] }
[figure.window]
series = ["goodput_bit_s"]
where = { outage = "10 s", failover = "-" }
[figure.windows]
series = ["throughput_bit_s"]
where = { outage = "10 s", failover = "rfc4960" }
"""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Look]:
    place = tmp_path_factory.mktemp("looks")
    text = spec_text() + MORE
    run = write_run(place / "run", plan_of(text, place))
    (place / "spec.toml").write_text(text.replace("EXPECTED", ""))
    netwarp.analyze(run.root, spec=place / "spec.toml")  # writes the tables of figures over time too
    return report_looks(read_run(run))


def shape(look: Look) -> tuple[str, str]:
    return look.light, look.marker


def test_a_variant_keeps_its_look_where_a_figure_names_it_by_other_factors(looks: dict[str, Look]) -> None:
    """Colours went by the names of lines: TCP was blue in one figure, orange in the next."""
    assert looks["variant=multi"] == looks["variant=multi|failover=default"]
    assert looks["variant=multi"] != looks["variant=multi|failover=rfc4960"]
    assert looks["outage=10 s|variant=tcp"].light == looks["variant=tcp"].light


def test_a_part_of_a_variant_has_its_colour_and_a_marker_of_its_own(looks: dict[str, Look]) -> None:
    outages = [looks[f"variant=tcp|outage={outage}"] for outage in ("0 s", "5 s", "10 s", "20 s")]
    assert {look.light for look in outages} == {looks["variant=tcp"].light}
    assert len({(look.marker, look.dash) for look in outages}) == 4
    assert {look.light for key, look in looks.items() if "multi" in key} & {look.light for look in outages} == set()


def test_a_curve_over_time_is_its_variants_and_a_second_path_is_not(looks: dict[str, Look]) -> None:
    curves = {key: look for key, look in looks.items() if key.startswith("window")}
    assert shape(curves["window|path |goodput_bit_s"]) == shape(looks["variant=tcp|outage=10 s"])
    first, second = (curves[f"windows|path {path}|throughput_bit_s"] for path in ("p1", "p2"))
    assert shape(first) == shape(looks["variant=multi|failover=rfc4960"])
    assert second.light not in {look.light for key, look in looks.items() if look is not second}
    assert {look.dash for look in curves.values()} == {"solid"}


def test_two_lines_of_a_figure_never_look_the_same(looks: dict[str, Look]) -> None:
    for names in (["outage"], ["outage", "variant"], ["variant", "outage"], ["variant", "failover"]):
        drawn = [look for key, look in looks.items() if [pair.split("=")[0] for pair in key.split("|")] == names]
        assert len({(look.light, look.marker, look.dash) for look in drawn}) == len(drawn) >= 2
