"""Every file of a run directory, read and written as a type."""
