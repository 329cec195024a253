"""Makes a finding small: leaves changes out while it still shows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .changes import Change

MOST_ROUNDS = 12


def minimised(
    changes: tuple[Change, ...], still: Callable[[Sequence[tuple[Change, ...]]], Sequence[bool]]
) -> tuple[Change, ...]:
    """The fewest of these changes, none of which can be left out alone.

    still: given candidates, whether each shows the finding; all of one call may run at once. Of several that do, the
    first is taken, so that the answer does not hang on their order in time.
    """
    part = max(len(changes) // 2, 1)
    for _ in range(MOST_ROUNDS):
        if len(changes) < 2:
            break
        smaller = [left for at in range(0, len(changes), part) if (left := changes[:at] + changes[at + part :])]
        shown = still(smaller)
        kept = next((each for each, shows in zip(smaller, shown, strict=True) if shows), None)
        if kept is not None:
            changes = kept
            part = max(min(part, len(changes) // 2), 1)
        elif part == 1:
            break
        else:
            part //= 2
    return changes
