"""`python -m embtool`."""

from embtool.cli import main

main()
