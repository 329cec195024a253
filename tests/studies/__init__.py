"""The study fuzzer: experiments as people write them, drawn through the Python front end, run, and held number by
number against an oracle that shares no line with netwarp (`make fuzz-studies`, docs/trust.md).
"""
