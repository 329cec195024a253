"""Makes the report: one folder that opens offline, from tables and derived files, never from captures."""

from .pages.build import make_report
from .pages.calibration import write_calibration_page

__all__ = ["make_report", "write_calibration_page"]
