"""The results of a calibration: comparisons of measured with configured, and curves of both."""

from __future__ import annotations

from ...core.types import Frozen


class Row(Frozen, frozen=True):
    """One comparison. ok = |measured - configured| <= bound (all in `unit`). measured None: there is none, not ok."""

    probe: str
    quantity: str
    configured: float
    measured: float | None
    bound: float
    unit: str
    ok: bool

    @classmethod
    def of(cls, probe: str, quantity: str, configured: float, measured: float | None, bound: float, unit: str) -> Row:
        """With its verdict. Half a millionth of a millionth is rounding."""
        ok = measured is not None and abs(measured - configured) <= bound + 1e-12 * abs(configured)
        return cls(probe, quantity, configured, measured, bound, unit, ok)


class Curve(Frozen, frozen=True):
    """Two lines for the eye: measured and configured over x."""

    probe: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    measured: tuple[float, ...]
    configured: tuple[float, ...]
    bars: bool = False
