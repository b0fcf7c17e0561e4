"""`python -m embtool`: Python ends as it always does, which profilers and debuggers need."""

from embtool.cli import run

run()
