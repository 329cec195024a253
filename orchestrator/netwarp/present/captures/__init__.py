"""Findings about any captures, as text, page and CSV files."""
