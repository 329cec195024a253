"""Experiments written in Python: they say what a spec.toml says, and their errors name the line of the call."""

from __future__ import annotations

import inspect
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import netwarp
import pytest
from netwarp.core.errors import SpecError
from netwarp.experiment import EXAMPLE_SPEC, AnyExperiment, Study, load_experiment
from netwarp.experiment.grammar import FACTOR_KEYS, TOP
from netwarp.plan import make_plan
from support import study_keys
from support.checkout import ROOT

SPECS = sorted((ROOT / "experiments").glob("*/spec.toml"))


def joins() -> tuple[netwarp.Experiment, Any]:
    """An experiment like that of the README, and its link."""
    study = netwarp.Experiment("joins", duration="60 s")
    a, b = study.host("a"), study.host("b")
    way = study.link("way", a, b, rate="50 Mbit/s", queue="1 bdp", rtt="20 ms")
    for n in range(4):
        study.flow(f"f{n}", a, b, protocol="tcp", paths=[way], start=f"{n * 10} s")
    study.factor("queue", ["0.5 bdp", "4 bdp"], sets=way.queue)
    return study, way


def by_calls(document: dict[str, Any]) -> Study:
    """A document said again, table by table, in Python."""
    top = {key: value for key, value in document.items() if key not in ("format", "name") and TOP[key].type != "map"}
    factors = top.pop("factor", {})
    study = Study(document["name"], **top)
    for section, method in {"node": study.node, "event": study.event, "experiment": study.experiment,
                            "metric": study.metric, "table": study.table, "figure": study.figure,
                            "answer": study.answer}.items():  # fmt: skip
        for name, keys in document.get(section, {}).items():
            method(name, **keys)
    for name, keys in document.get("link", {}).items():
        study.link(name, *keys.pop("between", ()), **keys)
    for name, keys in document.get("flow", {}).items():
        study.flow(name, keys.pop("from", None), keys.pop("to", None), **keys)
    for name, keys in factors.items():
        own = {key: value for key, value in keys.items() if key in FACTOR_KEYS and key not in ("level", "levels")}
        levels, changes = keys.get("levels", ()), keys.get("level", {})
        study.factor(name, {level: changes.get(level, {}) for level in levels} if changes else levels, **own)
    return study


@pytest.mark.parametrize("path", SPECS, ids=lambda path: path.parent.name)
def test_every_experiment_said_in_python_makes_the_same_cells(path: Path, tmp_path: Path) -> None:
    document = tomllib.loads(path.read_text())
    for file in path.parent.iterdir():
        if file.is_file():
            (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "spec.toml").write_text(by_calls(document).to_toml())
    plans = [make_plan(load_experiment(place), repetitions=1) for place in (tmp_path, path)]
    assert plans[0] == plans[1] and len(plans[0].cells) > 1


def test_the_experiment_of_the_readme_plans() -> None:
    block = re.search(r"```python\n(.*?)run = ", (ROOT / "README.md").read_text(), re.DOTALL)
    assert block is not None
    names: dict[str, Any] = {}
    exec(block[1], names)
    cells = names["study"].plan().cells
    assert [cell.factors["queue"] for cell in cells] == ["0.5 bdp", "4 bdp"] and len(cells[0].flows) == 4


def test_text_dict_path_and_python_are_one_experiment(tmp_path: Path) -> None:
    study, _ = joins()
    (tmp_path / "spec.toml").write_text(study.to_toml())
    ways: list[AnyExperiment] = [
        study,
        study.to_toml(),
        tomllib.loads(study.to_toml()),
        tmp_path,
        load_experiment(study),
    ]
    plans = [make_plan(load_experiment(way)) for way in ways]
    assert all(plan == plans[0] for plan in plans) and len(plans[0].cells) == 2
    assert study.plan() == plans[0]
    assert load_experiment(EXAMPLE_SPEC).text.decode() == EXAMPLE_SPEC


def test_handles_stand_for_names_and_dotted_keys() -> None:
    study, way = joins()
    assert f"{way} {way.queue} {way.forward.rate}" == "way link.way.queue link.way.forward.rate"
    rate = study.parameter("speed", "2 Mbit/s")
    delay = study.factor("delay", ["1 ms", "2 ms"])
    study.link("other", "a", "b", rate=rate.value, queue="10 packets", one_way_delay=delay.level)
    study.factor("speeds", ["1 Mbit/s"], sets=rate)
    study.experiment("main", factors=[delay])
    assert study.spec().experiments[0].factors == ("delay",)
    assert 'sets = "parameter.speed"' in study.to_toml()
    assert "queue" in dir(way)
    with pytest.raises(AttributeError, match=r"link\.way has no key 'quuee', did you mean .queue."):
        _ = way.quuee


def test_claims_and_sources_stand_in_the_experiment_itself() -> None:
    study, _ = joins()
    study.source("paper", title="A paper")
    study.claim(
        "C1", text="More queue, more goodput.", source="paper", kind="greater", metric="goodput_bit_s", flow="f0",
        a={"queue": "4 bdp"}, b={"queue": "0.5 bdp"},
    )  # fmt: skip
    study.set(headline=["C1"])
    plan = make_plan(load_experiment(study.to_toml()))
    assert [claim.id for claim in plan.claims] == ["C1"] == list(plan.headline) and plan.sources[0].name == "paper"


def misspelt(study: Any, way: Any) -> None:
    study.event("cut", acton="cut", link=way, at="10 s")


def wrong_unit(study: Any, way: Any) -> None:
    study.link("x", "a", "b", rate="10 ms", queue="1 bdp")


def unknown_host(study: Any, way: Any) -> None:
    study.flow("g", "a", "c", protocol="tcp", paths=[way])


def missing_key(study: Any, way: Any) -> None:
    study.factor("other", ["1 bdp"], sets="link.wya.queue")


def wrong_level(study: Any, way: Any) -> None:
    study.factor("other", ["1 bdp", "2 packtes"], sets=way.queue)


def twice(study: Any, way: Any) -> None:
    study.host("a")


def no_value(study: Any, way: Any) -> None:
    study.set(title=object())


def no_end(study: Any, way: Any) -> None:
    endless: dict[str, Any] = {}
    study.set(default=endless | {"link": endless})
    endless["link"] = endless
    study.set(parameter=endless)


def half_a_letter(study: Any, way: Any) -> None:
    study.set(title="\ud800")


@pytest.mark.parametrize(
    ("mistake", "key", "said"),
    [
        (misspelt, "event.cut.acton", 'unknown key "acton", did you mean "action"?'),
        (wrong_unit, "link.x.rate", "'10 ms' is a time, but a rate is wanted"),
        (unknown_host, "flow.g.to", 'there is no node "c"; there is: a, b'),
        (missing_key, "factor.other.sets", 'there is no link "wya", did you mean "way"?'),
        (wrong_level, "factor.other.levels[1]", "unknown unit 'packtes', did you mean \"packets\"?"),
        (twice, "node.a", "already; leave one of the two out"),
        (no_value, "title", "is a object, which no key of a spec holds"),
        (no_end, "parameter.link", "nested deeper than 16 levels"),
        (half_a_letter, "title", "half of a surrogate pair"),
    ],
)
def test_an_error_names_the_line_of_the_call(mistake: Callable[[Any, Any], None], key: str, said: str) -> None:
    study, way = joins()
    mistake(study, way)
    line = inspect.getsourcelines(mistake)[1] + len(inspect.getsourcelines(mistake)[0]) - 1
    with pytest.raises(SpecError) as caught:
        study.plan()
    first = str(caught.value).splitlines()[0]
    file = re.escape(str(Path(__file__).relative_to(ROOT)))
    assert re.match(rf"{file}:{line}: {re.escape(key)}\S*: ", first) and said in first, first


def test_a_dict_and_a_text_name_the_position_too() -> None:
    with pytest.raises(SpecError, match=rf"{Path(__file__).name}:\d+: nod: unknown key"):
        netwarp.load_experiment({"format": 1, "name": "x", "duration": "1 s", "nod": {}})
    with pytest.raises(SpecError, match="the text:2: duration: 10 is a bare number"):
        netwarp.load_experiment("format = 1\nduration = 10\n")


def test_the_types_of_the_python_front_end_are_those_of_the_grammar() -> None:
    assert study_keys.OUT.read_text() == study_keys.formatted(), "tests/support/study_keys.py writes them anew"
