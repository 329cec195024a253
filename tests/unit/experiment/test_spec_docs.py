"""docs/spec.md is true: its examples are in the grammar, and every key of the grammar is in it."""

from __future__ import annotations

import re

import pytest
from netwarp.core.units import parse_quantity
from netwarp.experiment.factors import FACTOR_KEYS
from netwarp.experiment.fields import Field, check_keys
from netwarp.experiment.grammar import EXPERIMENT, FIGURE, LEVEL, RESOLVED, SECTIONS, SHAPE, TABLE, TOP
from netwarp.experiment.loops import expand_claims, expand_outputs
from netwarp.experiment.options import OPTIONS
from netwarp.experiment.problems import Problems
from netwarp.experiment.read_claims import CLAIM, FILE, KINDS
from netwarp.experiment.toml_positions import parse_toml
from support.checkout import ROOT

PAGE = (ROOT / "docs" / "spec.md").read_text()
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_example_is_in_the_grammar(number: int) -> None:
    problems = Problems()
    document = parse_toml(BLOCKS[number].encode(), f"block {number}", problems)
    assert document is not None, BLOCKS[number]
    if document.get("claim") is not None:
        check_keys(expand_claims(document, CLAIM, (), problems), FILE, problems)
    else:
        document = expand_outputs(document, problems)
        top = {key: child for key, child in document.table().items() if key != "factor"}
        check_keys(document.with_value(top), TOP, problems, fill=True)
        factors = document.get("factor")
        for factor in factors.table().values() if factors is not None else ():
            check_keys(factor, FACTOR_KEYS, problems)
            for level in (factor.get("level") or factor.with_value({})).table().values():
                check_keys(level, LEVEL, problems, fill=True)
    problems.check()


def test_every_key_is_explained() -> None:
    keys = {*TOP, *RESOLVED, *FACTOR_KEYS, *EXPERIMENT, *TABLE, *FIGURE, *SHAPE, *OPTIONS}
    keys |= {key for section in SECTIONS.values() for key in section}
    keys |= {key for field in FILE.values() for key in (field.fields or {})} | set(KINDS)
    missing = sorted(key for key in keys if not re.search(rf"(?<![A-Za-z_]){key}(?![A-Za-z_])", PAGE))
    assert missing == []


def fields_of(fields: dict[str, Field]) -> list[tuple[str, Field]]:
    found = list(fields.items())
    for field in fields.values():
        found += fields_of(dict(field.fields or {}))
    return found


def test_every_example_in_a_message_is_right() -> None:
    """What an error proposes must itself be accepted."""
    pairs = fields_of({**TOP, **LEVEL, **FACTOR_KEYS}) + [(name, option.field) for name, option in OPTIONS.items()]
    seen = 0
    for name, field in pairs:
        if field.type == "quantity":
            for example in re.findall(r'"([^"]+)"', field.example):
                found = parse_quantity(example)
                assert found.kind in field.kinds, (name, example)
                if found.kind == field.kinds[0]:
                    assert (field.low or 0) <= found.value <= (field.high or 2**63), (name, example)
                seen += 1
        elif field.type in ("choice", "name", "names", "integer", "switch", "levels", "tables", "table"):
            if field.example.startswith("["):  # a section is shown by its header
                continue
            problems = Problems()
            document = parse_toml(f"{name} = {field.example}\n".encode(), "example", problems)
            assert document is not None, (name, field.example)
            check_keys(document, {name: field}, problems)
            problems.check()
            seen += 1
    assert seen > 60
