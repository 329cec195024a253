"""What a person types first: the Makefile's targets, what they are made from, and setup/bare.sh."""

import re
import tomllib

import pytest
from setup_kit import make

from orchestrator.kernel.recipe import CHECKOUT


def test_help_lists_every_experiment_and_every_promised_target() -> None:
    said = set(re.findall(r"^  make (\S+)", make("help"), re.MULTILINE))
    experiments = {spec.parent.name for spec in (CHECKOUT / "experiments").glob("*/spec.toml")}
    assert experiments
    assert experiments | {"setup", "test", "lint", "calibrate", "help", "clean"} <= said


def test_an_experiment_sets_up_first_and_takes_options() -> None:
    said = make("-n", "choi2009", "ARGS=--jobs 1").splitlines()
    at = {
        word: next(number for number, line in enumerate(said) if word in line)
        for word in ("setup/packages.sh run", "orchestrator.kernel build --if-missing", "netwarp run choi2009 --jobs 1")
    }
    assert list(at.values()) == sorted(at.values())


@pytest.mark.parametrize(
    ("goal", "kinds"),
    [
        ("setup", "run"),
        ("choi2009", "run"),
        ("lint", "run test"),
        ("chaos", "run test"),
        ("android", "run android"),
        ("test", "run test android"),
    ],
)
def test_a_target_installs_all_that_it_needs_at_once(goal: str, kinds: str) -> None:
    asked = [line.split("packages.sh ")[1] for line in make("-n", goal).splitlines() if "setup/packages.sh" in line]
    assert asked[0] == kinds
    assert {kind for line in asked for kind in line.split()} == set(kinds.split()), "what comes later only looks again"


def test_the_locks_pin_every_package_by_hash_and_name_no_index() -> None:
    for name in ("requirements.lock", "requirements-dev.lock"):
        text = (CHECKOUT / name).read_text()
        assert "://" not in text
        assert "--index" not in text
        entries = re.split(r"\n(?=\S)", text.strip())
        packages_ = [entry for entry in entries if not entry.startswith("#")]
        assert packages_
        for entry in packages_:
            assert re.match(r"[a-z0-9.-]+==[^ ]+", entry), entry
            assert "--hash=sha256:" in entry, entry


def test_every_dependency_is_locked() -> None:
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    locked = {
        name: set(re.findall(r"^([a-z0-9.-]+)==", (CHECKOUT / name).read_text(), re.MULTILINE))
        for name in ("requirements.lock", "requirements-dev.lock")
    }

    def names(requirements: list[str]) -> set[str]:
        return {re.split(r"[<>=~! ]", requirement)[0].replace("_", "-") for requirement in requirements}

    assert names(project["project"]["dependencies"]) <= locked["requirements.lock"]
    assert names(project["build-system"]["requires"]) <= locked["requirements.lock"]
    assert names(project["dependency-groups"]["dev"]) <= locked["requirements-dev.lock"]
