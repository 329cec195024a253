"""Computes the metrics, series and checks of a cell from its captures. The only room that knows both packets
and cells.
"""
