"""The metrics that exist: names, units and titles, one table for each group."""
