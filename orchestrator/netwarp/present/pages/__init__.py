"""Whole pages: a run, a cell, captures, an agreement, a calibration."""
