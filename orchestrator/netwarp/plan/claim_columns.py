"""Copies claims for the levels of a column, for example an older stack beside today's."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from ..core.outputs import Claim, Column, Levels


def with_columns(
    claims: Sequence[Claim], columns: Sequence[Column], usual: Levels, fits_one: Callable[[Claim], bool]
) -> Iterator[Claim]:
    """Every claim, each followed by its copies for the columns whose cells the plan has. Only claims under the spec's
    own condition are copied.

    usual: factor -> its usual level. fits_one: whether every selector of a claim matches exactly one cell. A claim that
    itself names another level of the column's factor compares levels and is not copied.
    """
    of_column = {column.name: {c.id for c in claims if _copied(c, column, usual, fits_one)} for column in columns}
    for claim in claims:
        yield claim
        for column in columns:
            there = of_column[column.name]
            if claim.condition or not (claim.id in there or (claim.of and set(claim.of) <= there)):
                continue
            a, b = (tuple({**selector, **column.where} for selector in side) for side in (claim.a, claim.b))
            yield msgspec.structs.replace(claim, condition=column.where, column=column.name, a=a, b=b)


def _copied(claim: Claim, column: Column, usual: Levels, fits_one: Callable[[Claim], bool]) -> bool:
    if not claim.a or claim.condition:
        return False
    selectors = (*claim.a, *claim.b)
    plain = all(
        set(usual.get(factor, ())) & set(selector.get(factor, ())) for selector in selectors for factor in column.where
    )
    if not plain or claim.over in column.where:
        return False
    a, b = (tuple({**selector, **column.where} for selector in side) for side in (claim.a, claim.b))
    return fits_one(msgspec.structs.replace(claim, a=a, b=b))
