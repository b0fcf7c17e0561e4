"""The one sink of every command: records in; a table, JSON, TSV, CSV or npy out.

Data goes to standard output (or the file of `-o`), everything else to standard error.
"""

from embtool.output.notes import report, report_refusal
from embtool.output.sink import FORMATS, Sink, choose_format

__all__ = ["FORMATS", "Sink", "choose_format", "report", "report_refusal"]
