"""lee2008's model, the readings of it, and its Table 3."""
