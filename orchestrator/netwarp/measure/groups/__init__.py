"""Groups of metrics, each computed from one flow's packets."""
