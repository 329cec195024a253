"""The catalogue of metrics (catalogue.csv, one row per metric), and the arithmetic that a spec may do with them."""
