"""The report: one folder that opens offline, made from tables and derived files, never from a capture."""

from .build import make_report
from .calibration_page import write_calibration_page

__all__ = ["make_report", "write_calibration_page"]
