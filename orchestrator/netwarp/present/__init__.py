"""Makes the report: one folder that opens offline, from tables and derived files, never from captures."""
