"""Makes tables and verdicts from measurements. Nothing here reads a capture."""

from .claims import Judged, judge
from .run_results import Results
from .verdicts import Decided, decide
from .write import write_measurements, write_tables, write_timelines

__all__ = ["Decided", "Judged", "Results", "decide", "judge", "write_measurements", "write_tables", "write_timelines"]
