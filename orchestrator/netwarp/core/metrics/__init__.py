"""The metrics there are (catalogue.csv, one row each), and the arithmetic that a spec may do with them."""
