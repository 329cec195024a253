"""An oracle of a cell's numbers. It imports nothing of netwarp: captures are read by `struct`, from RFC 791, 8200,
9293, 9260, 8684 and 768; metrics are computed from docs/metrics.md, the kernel's counters read from its own messages.
"""
