"""The index of levels finds what comparing a selector with each combination finds."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from netwarp.core.outputs import ANY_LEVEL, EXPERIMENT, FLOW, matches
from netwarp.plan.level_index import NO_LEVEL, LevelIndex

NAMES = ("main", "other", "third")
LEVELS = ("1 s", "2 s", NO_LEVEL)
COMBINATIONS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(NAMES), max_size=3, unique=True),
        st.dictionaries(st.sampled_from(("x", "y", FLOW)), st.sampled_from(LEVELS), max_size=3),
    ),
    max_size=12,
)
SELECTORS = st.dictionaries(
    st.sampled_from(("x", "y", "unknown", EXPERIMENT, FLOW)),
    st.lists(st.sampled_from((*LEVELS, *NAMES, ANY_LEVEL, "3 s")), max_size=3).map(tuple),
    max_size=4,
)


@settings(max_examples=400)
@given(COMBINATIONS, SELECTORS)
def test_a_selector_finds_what_each_comparison_finds(
    everything: list[tuple[list[str], dict[str, str]]], selector: dict[str, tuple[str, ...]]
) -> None:
    expected = [levels for experiments, levels in everything if matches(levels, selector, experiments)]
    index = LevelIndex(everything)
    assert index.where(selector) == expected
    assert all(found is wanted for found, wanted in zip(index.where(selector), expected, strict=True))
    assert index.count(selector) == len(expected)
