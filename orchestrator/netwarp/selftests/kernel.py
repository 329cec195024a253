"""The guest kernel for the tests: this checkout's recipe and what the tests' own `config` files ask for besides."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from ..guestkernel.config import Option
from ..guestkernel.recipe import Recipe

COLLECTIONS = ("net", "net/mptcp", "net/netfilter")
"""Always asked for, so that one kernel serves all of them."""
_OURS = frozenset(["MODULES", "HW_RANDOM", "UML_RANDOM", "LOCALVERSION_AUTO", "HZ", "64BIT"])
"""Never taken from the tests: determinism depends on them."""
_JITTER = frozenset(["INET_ESP", "INET_ESP_OFFLOAD", "INET6_ESP", "INET6_ESP_OFFLOAD", "XFRM_ESP"])
"""Not taken either: they select a generator that waits at boot until the clock's steps vary (crypto/jitterentropy.c),
which on the virtual clock they never do.
"""


def selftest_recipe(recipe: Recipe, options: Mapping[str, str]) -> Recipe:
    """The recipe with the tests' options; one that User-Mode Linux or this source cannot have is left out."""
    more = {name: value for name, value in options.items() if name not in _OURS | _JITTER}
    kept = tuple(option for option in recipe.fragment if option.name not in more)
    return dataclasses.replace(
        recipe,
        fragment=kept + tuple(Option(name, None if value == "n" else value) for name, value in sorted(more.items())),
        where_possible=frozenset(more) - frozenset(option.name for option in recipe.fragment),
    )
