"""The report: one folder that opens offline, made from tables and derived files, never from a capture."""
