"""calibration.json: measured against configured properties of links."""

from __future__ import annotations

from ..core.frozen import Frozen


class ProbeRow(Frozen, frozen=True):
    """One comparison. ok: |measured - configured| <= bound (all in `unit`). measured None: there is no measured value;
    not ok.
    """

    probe: str
    quantity: str
    configured: float
    measured: float | None
    bound: float
    unit: str
    ok: bool

    @classmethod
    def of(
        cls, probe: str, quantity: str, configured: float, measured: float | None, bound: float, unit: str
    ) -> ProbeRow:
        """A row with its verdict. A difference of up to 1e-12 of the configured value is rounding and is added to the
        bound.
        """
        ok = measured is not None and abs(measured - configured) <= bound + 1e-12 * abs(configured)
        return cls(probe, quantity, configured, measured, bound, unit, ok)


class Curve(Frozen, frozen=True):
    """Two curves for a figure: measured and configured values over x."""

    probe: str
    title: str
    x_label: str
    y_label: str
    x: tuple[float, ...]
    measured: tuple[float, ...]
    configured: tuple[float, ...]
    bars: bool = False


class Calibration(Frozen, frozen=True):
    """calibration.json. `key`: hash of the kernel and the programs; with another key the calibration must be
    repeated.
    """

    key: str
    kernel_release: str
    kernel_sha256: str
    backend: str
    date_utc: str
    rows: tuple[ProbeRow, ...]
    curves: tuple[Curve, ...] = ()
    host_load_1min: float | None = None
    """On the wall clock: the greatest of its cells."""

    @property
    def passed(self) -> int:
        """The number of comparisons within their bounds."""
        return sum(row.ok for row in self.rows)
