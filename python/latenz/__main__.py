"""`python -m latenz` is the command line."""

from latenz.cli import main

main()
